/** Redis's time: leases, holds, stream ids and minutes go by it, not by this machine's. Stage: view, cli, api. */
import type { RedisClient } from './run-script.js';

/** Whole ms. */
export async function redisNowMs(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
