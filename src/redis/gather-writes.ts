/** Commands of one turn of the event loop leave in one write: a system call for each is a tenth of a busy daemon. Stage: enforce, daemon. */
import type { Cluster, Redis } from 'ioredis';
import { isCluster } from './read-hashes.js';
import type { RedisClient } from './run-script.js';

/**
 * From now on, and on each connection that follows. Nothing waits longer than for the end of what the event loop does
 * now, and the order of commands stays. Not for decisions on a request's path: there each microsecond counts.
 */
export function gatherWrites(redis: RedisClient): void {
  if (isCluster(redis)) {
    for (const node of redis.nodes()) gatherOf(node);
    (redis as Cluster).on('+node', gatherOf);
  } else gatherOf(redis);
}

/**
 * What `send` sends before it returns leaves in one write, with what that write waits for: for who sends now and then
 * on a connection where nothing else may wait.
 */
export function inOneWrite<T>(redis: RedisClient, send: () => T): T {
  const streams = isCluster(redis) ? redis.nodes().map((node) => node.stream) : [redis.stream];
  for (const stream of streams) stream?.cork();
  try {
    return send();
  } finally {
    for (const stream of streams) stream?.uncork();
  }
}

function gatherOf(redis: Redis): void {
  redis.on('connect', () => gather(redis.stream));
  if (redis.stream?.writable) gather(redis.stream);
}

const gathering = new WeakSet<Redis['stream']>();

function gather(stream: Redis['stream']): void {
  if (gathering.has(stream)) return;
  gathering.add(stream);
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  let held = false;
  stream.write = (...args: unknown[]) => {
    if (!held) {
      held = true;
      stream.cork();
      setImmediate(() => {
        held = false;
        stream.uncork();
      });
    }
    return write(...args);
  };
}
