/** What lies around a revision: the changes beside it, for how long it stood and what that cost, the episode it is of. Stage: cli, api. */
import { readEntries, type StoredEntry } from '../actuate/audit.js';
import { isReadable, readEntry } from '../actuate/entry.js';
import { costOf } from '../audit/episode-cost.js';
import type { EpisodeCost } from '../audit/episodes.js';
import { HISTORY_MINUTE_MS, HISTORY_MINUTES, readHistoryMinutes } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import type { RedisClient } from '../redis/run-script.js';
import { storedMs } from '../redis/stream-id.js';
import { type EpisodeView, episodeAt } from './episodes.js';

/** A change beside another. */
export interface Neighbour {
  epoch: number;
  revision: number;
  /** When Redis stored it. */
  atMs: number;
  actor: string;
  reason: string;
  sentence: string;
}

export interface AroundView {
  /** null: it is the first, or what was before it is trimmed. */
  previous: Neighbour | null;
  /** null: it is still the newest. */
  next: Neighbour | null;
  stood: {
    fromMs: number;
    /** null: it still stands. */
    untilMs: number | null;
    forMs: number;
    /** From the roll-ups of its minutes; null: there are none. */
    cost: EpisodeCost | null;
  };
  episode: EpisodeView | null;
}

const PAGE = 100;

export async function readAround(
  redis: RedisClient,
  address: LimiterAddress,
  entry: StoredEntry,
): Promise<AroundView> {
  const [nowMs, before, next, episode] = await Promise.all([
    redisNowMs(redis),
    readEntries(redis, address, { kind: 'change', before: entry.id, limit: 1 }),
    nextChange(redis, address, entry.id),
    episodeAt(redis, address, entry.id),
  ]);
  const previous = before.entries[0];
  const fromMs = storedMs(entry);
  const untilMs = next === null ? null : storedMs(next);
  const endMs = untilMs ?? nowMs;
  return {
    previous: previous === undefined ? null : neighbour(previous),
    next: next === null ? null : neighbour(next),
    stood: {
      ...{ fromMs, untilMs },
      forMs: Math.max(0, endMs - fromMs),
      cost: await costBetween(redis, address, fromMs, endMs),
    },
    episode,
  };
}

async function nextChange(
  redis: RedisClient,
  address: LimiterAddress,
  id: string,
): Promise<StoredEntry | null> {
  let from = `(${id}`;
  for (;;) {
    const page = await redis.xrange(limiterKeys(address).audit, from, '+', 'COUNT', PAGE);
    for (const [nextId, fields] of page) {
      const entry = readEntry(nextId, fields);
      if (isReadable(entry) && entry.kind === 'change') return entry;
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) return null;
    from = `(${last[0]}`;
  }
}

async function costBetween(
  redis: RedisClient,
  address: LimiterAddress,
  fromMs: number,
  untilMs: number,
): Promise<EpisodeCost | null> {
  const last = Math.floor(untilMs / HISTORY_MINUTE_MS);
  const first = Math.max(last - HISTORY_MINUTES, Math.floor(fromMs / HISTORY_MINUTE_MS));
  const minutes = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const rows = await readHistoryMinutes(redis, limiterKeys(address), minutes);
  return costOf(rows, fromMs, untilMs);
}

function neighbour({ id, epoch, revision, body }: StoredEntry): Neighbour {
  const { actor, reason, sentence } = body;
  return { epoch, revision, atMs: storedMs({ id }), actor: actor.name, reason, sentence };
}
