/** Who takes most of a limiter, or is denied most, in the last minutes. Stage: cli, api. */
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import { MINUTE_MS, type TopKind } from '../redis/top-fields.js';
import { mergeMinutes, type TopSubject, topOf } from '../report/top-window.js';
import type { Session } from './limiters.js';

/** Minutes by the word that people write. */
export const TOP_MINUTES = { '1m': 1, '5m': 5, '60m': 60 } as const;

export interface TopView {
  limiter: string;
  by: TopKind;
  /** Redis ms. */
  sinceMs: number;
  atMs: number;
  total: number;
  /** Each count may be so much too low. */
  error: number;
  /** Takes with a subject, and those of them that were read. */
  seen: number;
  read: number;
  subjects: TopSubject[];
}

export async function readTop(
  { redis }: Session,
  address: LimiterAddress,
  { by, minutes, limit }: { by: TopKind; minutes: number; limit: number },
): Promise<TopView> {
  const keys = limiterKeys(address);
  const atMs = await redisNowMs(redis);
  const last = Math.floor(atMs / MINUTE_MS);
  const first = last - minutes;
  const wanted = Array.from({ length: minutes + 1 }, (_, i) => keys.top(first + i));
  const window = mergeMinutes(await Promise.all(wanted.map((key) => redis.hgetall(key))));
  const { total, error } = window[by];
  return {
    limiter: address.name,
    by,
    ...{ sinceMs: first * MINUTE_MS, atMs, total, error },
    ...{ seen: window.seen, read: window.read },
    subjects: topOf(window, by, limit),
  };
}
