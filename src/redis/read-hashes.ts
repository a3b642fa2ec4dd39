/** Hashes of limiters, and the time of the node that holds them; what many ask for at once is read at once. Stage: sense, actuate. */
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

interface Wish {
  names: readonly string[];
  ok(found: Hashes): void;
  no(error: Error): void;
}

/** What is asked of a connection in one turn of the event loop. */
const asked = new WeakMap<RedisClient, Wish[]>();

/** Commands of one pipeline, so that Redis serves others in between. */
const MOST = 400;

/**
 * All reads of one turn of the event loop travel together: a tick of a thousand limiters is a few writes. On a cluster
 * one command each: there a client follows a slot that has moved only if all commands of a pipeline say so, and TIME,
 * which has no key, never does.
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
  return new Promise((ok, no) => {
    const wish = { names, ok, no };
    const wishes = asked.get(redis);
    if (wishes !== undefined) wishes.push(wish);
    else {
      asked.set(redis, [wish]);
      setImmediate(sendAll, redis);
    }
  });
}

function sendAll(redis: Exclude<RedisClient, Cluster>): void {
  const wishes = asked.get(redis) ?? [];
  asked.delete(redis);
  let part: Wish[] = [];
  let commands = 0;
  for (const wish of wishes) {
    part.push(wish);
    commands += wish.names.length;
    if (commands < MOST) continue;
    void send(redis, part);
    part = [];
    commands = 0;
  }
  if (part.length > 0) void send(redis, part);
}

/** A key of another type is the fault of the one who asked for it. */
async function send(redis: Exclude<RedisClient, Cluster>, wishes: readonly Wish[]): Promise<void> {
  try {
    const pipeline = redis.pipeline();
    for (const { names } of wishes) for (const name of names) pipeline.hgetall(name);
    const replies = (await pipeline.time().exec()) ?? [];
    const [failed, time] = replies.at(-1) ?? [new Error('no reply'), null];
    if (failed) throw failed;
    const [seconds, micros] = time as [string | number, string | number];
    const nowUs = Number(seconds) * 1_000_000 + Number(micros);
    let at = 0;
    for (const { names, ok, no } of wishes) {
      const mine = replies.slice(at, at + names.length);
      at += mine.length;
      const error = mine.find(([fault]) => fault)?.[0];
      if (error) {
        no(error);
        continue;
      }
      ok({ hashes: mine.map(([, value]) => value as Record<string, string>), nowUs });
    }
  } catch (error) {
    for (const { no } of wishes) no(error as Error);
  }
}

/** Also one made by another copy of ioredis. */
export function isCluster(redis: RedisClient): redis is Cluster {
  return (redis as { isCluster?: boolean }).isCluster === true;
}

/** Each server that holds data and takes writes. */
export function masters(redis: RedisClient): Exclude<RedisClient, Cluster>[] {
  return isCluster(redis) ? redis.nodes('master') : [redis];
}
