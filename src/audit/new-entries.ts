/** What a log holds that its export does not yet, and where it goes on when it is not where the export ended. Stage: audit. */
import { GENESIS_HASH } from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { isCluster } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import { compareIds, fieldOf } from '../redis/stream-id.js';
import { type GapLine, type Position, positionOf } from './export-line.js';

export type StreamEntry = [id: string, fields: string[]];

/** Entries of one limiter, oldest first. */
export interface Fresh {
  address: LimiterAddress;
  entries: StreamEntry[];
}

/** Entries of one reading, over all logs that it asks for. */
const AT_ONCE = 1_000;
const KEYS_AT_ONCE = 50;
/** How far back a log is read to find where it left what was exported. */
const LOOK_BACK = 500;

/**
 * The entries after the id that `after` gives for each log, read with one command: on a Cluster of one log alone.
 * `full`: there are more.
 */
export async function readFresh(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  after: (limiter: string) => string,
): Promise<{ fresh: Fresh[]; full: boolean }> {
  const group = isCluster(redis) ? 1 : KEYS_AT_ONCE;
  const count = Math.ceil(AT_ONCE / Math.min(group, Math.max(1, addresses.length)));
  const keys = addresses.map((address) => limiterKeys(address).audit);
  const ids = addresses.map(({ name }) => after(name));
  const reply = (await redis.xread('COUNT', count, 'STREAMS', ...keys, ...ids)) ?? [];
  const found = reply.map(([key, entries]) => ({
    address: addresses[keys.indexOf(key)]!,
    entries: entries as StreamEntry[],
  }));
  return { fresh: found, full: found.some(({ entries }) => entries.length >= count) };
}

/** Logs that are asked for together. */
export function inGroups(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
): LimiterAddress[][] {
  const size = isCluster(redis) ? 1 : KEYS_AT_ONCE;
  const groups: LimiterAddress[][] = [];
  for (let i = 0; i < addresses.length; i += size) groups.push(addresses.slice(i, i + size));
  return groups;
}

/** Does this entry follow what was exported? */
export function follows(position: Position | null, [id, fields]: StreamEntry): boolean {
  const prev = fieldOf(fields, 'prev');
  if (position === null) return prev === GENESIS_HASH;
  return prev === position.hash && compareIds(id, position.id) > 0;
}

/**
 * Where a log goes on that is not where its export ended, seen from `entry`, which does not follow: at the place where
 * it left what was exported (`holds` asks the export), at its beginning, or, when entries were taken out of its midst,
 * right there.
 */
export async function findGap(
  redis: RedisClient,
  address: LimiterAddress,
  position: Position | null,
  entry: StreamEntry,
  holds: (hashes: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<{ gap: Omit<GapLine, 'atMs'>; from: string }> {
  const key = limiterKeys(address).audit;
  // Newest first, this entry among them.
  const page = (await redis.xrevrange(key, entry[0], '-', 'COUNT', LOOK_BACK)) as StreamEntry[];
  const hashes = page.map(([id, fields]) => positionOf({ id, fields }).hash);
  const known = await holds(hashes);
  const told = (why: GapLine['why'], [id, fields]: StreamEntry) => ({
    gap: {
      ...{ v: 1 as const, kind: 'gap' as const, limiter: address.name, why },
      ...{ after: position?.id ?? null, before: id, prev: fieldOf(fields, 'prev') },
    },
    from: id,
  });
  for (let i = 0; i < page.length; i++) {
    const next = page[i - 1];
    if (!known.has(hashes[i]!)) continue;
    const forks = next !== undefined && known.has(fieldOf(next[1], 'prev'));
    return forks ? told('lost', next) : told('unlinked', next ?? entry);
  }
  const oldest = page.at(-1);
  if (oldest === undefined || page.length >= LOOK_BACK) return told('unlinked', entry);
  if (fieldOf(oldest[1], 'prev') === GENESIS_HASH) return told('anew', oldest);
  return told('trimmed', oldest);
}
