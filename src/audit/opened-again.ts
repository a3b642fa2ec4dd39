/** What an exporter asks Redis for when its place was opened again, or cannot be: ids since the last head, and the oldest entry that waits. Stage: audit. */
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { readExporters } from '../redis/retention.js';
import type { RedisClient } from '../redis/run-script.js';
import { compareIds, storedMs } from '../redis/stream-id.js';
import { type Position, positionOf } from './export-line.js';
import type { IdCover } from './id-cover.js';
import { follows, type StreamEntry } from './new-entries.js';

/** What a killed exporter wrote after its last head: a minute of a law that moves each second, and some. */
const MOST_SINCE_HEAD = 1_000;

/** Goes on with the ids since the head that stands last in the place, if Redis still has each entry after it. */
export async function coverAgain(
  redis: RedisClient,
  address: LimiterAddress,
  cover: IdCover,
  { headed, position }: { headed: Position | null; position: Position | null },
): Promise<void> {
  const limiter = address.name;
  if (headed === null || position === null) return;
  const ids: string[] = [];
  let at = headed;
  if (headed.hash !== position.hash) {
    const range = [`(${headed.id}`, position.id, 'COUNT', MOST_SINCE_HEAD] as const;
    const found = (await redis.xrange(limiterKeys(address).audit, ...range)) as StreamEntry[];
    for (const entry of found) {
      if (!follows(at, entry)) return;
      const [id, fields] = entry;
      at = positionOf({ id, fields });
      ids.push(id);
    }
  }
  if (at.hash !== position.hash || at.id !== position.id) return;
  cover.begin(limiter);
  for (const id of ids) cover.add(limiter, id);
}

/**
 * When the oldest entry was stored that a place lacks which cannot be asked: after what was seen to be there
 * (`reached`, ids by limiter), or what any daemon said of it last. null: it lacks none.
 */
export async function oldestWaiting(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  place: string,
  reached: ReadonlyMap<string, string>,
): Promise<number | null> {
  let oldest: number | null = null;
  for (const address of addresses) {
    const keys = limiterKeys(address);
    const told = (await readExporters(redis, keys)).find(({ name }) => name === place);
    const [seen, said] = [reached.get(address.name) ?? '0-0', told?.through ?? '0-0'];
    const after = compareIds(seen, said) < 0 ? said : seen;
    const [next] = await redis.xrange(keys.audit, `(${after}`, '+', 'COUNT', 1);
    if (next === undefined) continue;
    const atMs = storedMs({ id: next[0] });
    if (oldest === null || atMs < oldest) oldest = atMs;
  }
  return oldest;
}
