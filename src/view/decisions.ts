/** Sampled decisions of the last minute; whoever looks has services sample for some seconds more. Stage: api. */
import { type LimiterAddress, type LimiterKeys, limiterKeys } from '../redis/keys.js';
import { redisNowMs } from '../redis/redis-time.js';
import type { RedisClient } from '../redis/run-script.js';
import {
  ASK_TTL_MS,
  type DecisionSample,
  readSample,
  SAMPLE_FIELD,
  SAMPLES_KEPT,
  type TailAsk,
} from '../redis/tail-fields.js';

/** Without what tells samples apart from each other. */
export type DecisionView = Omit<DecisionSample, 'u' | 'n'>;

/** Newest first: those that this ratio would have chosen. */
export async function readSamples(
  redis: RedisClient,
  address: LimiterAddress,
  { asker, ratio, limit }: { asker: string; ratio: number; limit: number },
): Promise<DecisionView[]> {
  const keys = limiterKeys(address);
  const untilMs = (await redisNowMs(redis)) + ASK_TTL_MS;
  const wish: TailAsk = { ratio, untilMs, salt: '' };
  await redis.hset(keys.tail, asker, JSON.stringify(wish));
  await redis.pexpire(keys.tail, ASK_TTL_MS);
  return storedSamples(redis, keys, ({ u }) => u < ratio, limit);
}

/** Of those that somebody asked for of late, the newest that are wanted. */
export async function storedSamples(
  redis: RedisClient,
  keys: LimiterKeys,
  wanted: (sample: DecisionSample) => boolean,
  limit: number,
): Promise<DecisionView[]> {
  const entries = await redis.xrevrange(keys.samples, '+', '-', 'COUNT', SAMPLES_KEPT);
  return entries
    .flatMap(([, fields]) => readSample(fields[fields.indexOf(SAMPLE_FIELD) + 1] ?? '') ?? [])
    .filter(wanted)
    .slice(0, limit)
    .map(({ u: _u, n: _n, ...sample }) => sample);
}
