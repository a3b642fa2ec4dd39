/** What many limiters' logs hold, newest first, reading no more of them than a page needs. Stage: cli, api. */
import { inStreamOrder } from '../audit/episodes.js';
import { FlyballError } from '../errors.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { endBefore } from '../redis/stream-id.js';

/** Where a page ends: the next begins after it. Of many limiters also by name, since ids of two may be the same. */
export interface Cursor {
  id: string;
  name?: string;
}

/** What one limiter gives to a page. */
export interface Part<T> {
  /** Newest first. */
  items: T[];
  /** There is more that is older. */
  more: boolean;
}

export interface NewestFirst<T> {
  limit: number;
  /** As the page before gave it. */
  before?: string | undefined;
  /** Stream id of an item, by which all are ordered. */
  idOf(item: T): string;
  /** At most `limit` items of one limiter, with ids below `before` (exclusive; undefined: from the newest). */
  read(address: LimiterAddress, before: string | undefined): Promise<Part<T>>;
}

interface Named<T> {
  name: string;
  item: T;
  id: string;
}

/** A page over all of `addresses`, and where the next one begins (null: nowhere). */
export async function newestFirst<T>(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  { limit, before, idOf, read }: NewestFirst<T>,
): Promise<{ items: { name: string; item: T }[]; next: string | null }> {
  const cursor = before === undefined ? null : readCursor(before);
  const one = addresses.length === 1;
  const heads = one
    ? addresses.map((address) => ({ address, id: '' }))
    : await headsOf(redis, addresses, cursor);
  let shown: Named<T>[] = [];
  let more = false;
  for (const { address, id } of heads) {
    const last = shown[limit - 1];
    // Heads come newest first, so all that follow are older than the page.
    if (last !== undefined && inStreamOrder({ id }, last) < 0) {
      more = true;
      break;
    }
    const part = await read(address, startOf(cursor, address.name));
    more ||= part.more;
    const named = part.items.map((item) => ({ name: address.name, item, id: idOf(item) }));
    const all = [...shown, ...named].sort(newestThenName);
    more ||= all.length > limit;
    shown = all.slice(0, limit);
  }
  const end = shown.at(-1);
  const next = !more || end === undefined ? null : one ? end.id : `${end.id}@${end.name}`;
  return { items: shown, next };
}

/** `1764500000000-0`, or of many limiters `1764500000000-0@checkout`. */
function readCursor(text: string): Cursor {
  const [, id, , name] = /^(\d{1,16}-\d{1,20})(@([a-z0-9][a-z0-9._-]{0,63}))?$/.exec(text) ?? [];
  if (id === undefined) {
    throw new FlyballError(
      'FLYBALL_E_CLI_USAGE',
      `before is ${JSON.stringify(text.slice(0, 80))}, and no place in the log. Give what the page before said as \`next\`.`,
    );
  }
  return name === undefined ? { id } : { id, name };
}

/** Of a limiter that comes after the cursor's by name, what has the same id is still to come. */
function startOf(cursor: Cursor | null, name: string): string | undefined {
  if (cursor === null) return undefined;
  return cursor.name !== undefined && name > cursor.name ? following(cursor.id) : cursor.id;
}

/** The least id above this one, so that an exclusive bound takes it in. */
export function following(id: string): string {
  const [ms, n] = id.split('-');
  return `${ms}-${BigInt(n!) + 1n}`;
}

/** Limiters that have anything below the cursor, by their newest. */
async function headsOf(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  cursor: Cursor | null,
): Promise<{ address: LimiterAddress; id: string }[]> {
  const heads = await Promise.all(
    addresses.map(async (address) => {
      const start = startOf(cursor, address.name);
      const from = start === undefined ? '+' : endBefore(start);
      const newest = await redis.xrevrange(limiterKeys(address).audit, from, '-', 'COUNT', 1);
      return { address, id: newest[0]?.[0] ?? '' };
    }),
  );
  return heads.filter(({ id }) => id !== '').sort((a, b) => inStreamOrder(b, a));
}

function newestThenName(a: { id: string; name: string }, b: { id: string; name: string }): number {
  return inStreamOrder(b, a) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}
