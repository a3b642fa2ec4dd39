/** Hashes of one limiter, and the time of the node that holds them. Stage: sense, actuate. */
import type { Cluster } from 'ioredis';
import type { LimiterKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { effectiveScript } from './scripts.gen.js';

export interface Hashes {
  /** In the order asked for; a missing one is empty. */
  hashes: Record<string, string>[];
  nowUs: number;
}

/**
 * One pipeline; on a cluster one command each. There a client follows a slot that has moved only if all commands of a
 * pipeline say so, and TIME, which has no key, never does.
 */
export async function readHashes(
  redis: RedisClient,
  keys: LimiterKeys,
  names: readonly string[],
): Promise<Hashes> {
  if (isCluster(redis)) {
    const [time, ...hashes] = await Promise.all([
      runScript(redis, { script: effectiveScript, keys: [keys.params], args: [''] }),
      ...names.map((name) => redis.hgetall(name)),
    ]);
    return { hashes, nowUs: Number((time as unknown[])[0]) };
  }
  const pipeline = redis.pipeline().time();
  for (const name of names) pipeline.hgetall(name);
  const replies = (await pipeline.exec()) ?? [];
  const [time, ...hashes] = replies.map(([error, value]) => {
    if (error) throw error;
    return value;
  }) as [[string | number, string | number], ...Record<string, string>[]];
  return { hashes, nowUs: Number(time[0]) * 1_000_000 + Number(time[1]) };
}

/** Also one made by another copy of ioredis. */
export function isCluster(redis: RedisClient): redis is Cluster {
  return (redis as { isCluster?: boolean }).isCluster === true;
}

/** Each server that holds data and takes writes. */
export function masters(redis: RedisClient): Exclude<RedisClient, Cluster>[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}
