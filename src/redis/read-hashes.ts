/** Hashes of limiters, and the time of the node that holds them. Stage: sense, actuate. */
import type { Cluster } from 'ioredis';
import type { LimiterKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { effectiveScript } from './scripts.gen.js';

export interface Hashes {
  /** In the order asked for; a missing one is empty. */
  hashes: Record<string, string>[];
  /** Read after them: nothing in them is newer. */
  nowUs: number;
}

/**
 * On a cluster one command each: there a client follows a slot that has moved only if all commands of a pipeline say
 * so, and TIME, which has no key, never does.
 */
export async function readHashes(
  redis: RedisClient,
  keys: LimiterKeys,
  names: readonly string[],
): Promise<Hashes> {
  if (isCluster(redis)) {
    const hashes = await Promise.all(names.map((name) => redis.hgetall(name)));
    const time = await runScript(redis, {
      script: effectiveScript,
      keys: [keys.params],
      args: [''],
    });
    return { hashes, nowUs: Number((time as unknown[])[0]) };
  }
  const pipeline = redis.pipeline();
  for (const name of names) pipeline.hgetall(name);
  const replies = ((await pipeline.time().exec()) ?? []).map(([error, value]) => {
    if (error) throw error;
    return value;
  });
  const [seconds, micros] = replies.pop() as [string | number, string | number];
  const nowUs = Number(seconds) * 1_000_000 + Number(micros);
  return { hashes: replies as Record<string, string>[], nowUs };
}

/** Also one made by another copy of ioredis. */
export function isCluster(redis: RedisClient): redis is Cluster {
  return (redis as { isCluster?: boolean }).isCluster === true;
}

/** Each server that holds data and takes writes. */
export function masters(redis: RedisClient): Exclude<RedisClient, Cluster>[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}
