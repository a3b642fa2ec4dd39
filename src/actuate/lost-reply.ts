/** A write whose reply was lost: looked up in the audit log by its hash, and only then carried out again. Stage: actuate. */
import type { SealedEntry } from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/scripts.js';

/** How long to wait for Redis to answer again. */
const LOOK_FOR_MS = 3_000;
const LOOK_EVERY_MS = 100;
/** Others may have written since; more than this in a few seconds, nobody has. */
const NEWEST = 200;

/**
 * Runs `send`, which carries the entry to Redis by compare-and-set. When the connection breaks before the reply,
 * the log tells whether it got there; if not, it is sent once more: should the first arrive late after all, Redis
 * refuses one of the two. Rejects with the first fault when Redis does not come back in time.
 */
export async function onceDespiteLoss<R extends { status: string }>(
  redis: RedisClient,
  address: LimiterAddress,
  entry: SealedEntry,
  send: () => Promise<R>,
  written: (streamId: string) => R,
): Promise<R> {
  try {
    return await send();
  } catch (fault) {
    if (isAnswer(fault)) throw fault;
    const giveUpAt = performance.now() + LOOK_FOR_MS;
    let found = await look(redis, address, entry, giveUpAt, fault);
    if (found !== null) return written(found);
    const reply = await send();
    if (reply.status === 'ok') return reply;
    found = await look(redis, address, entry, giveUpAt, fault);
    return found === null ? reply : written(found);
  }
}

/** Redis itself refused, or a reply could not be read: it has not been lost. */
function isAnswer(fault: unknown): boolean {
  const name = (fault as Error | undefined)?.name;
  return name === 'ReplyError' || name === 'FlyballError' || name === 'TypeError';
}

/** The stream id of the entry, or null when it is not there. */
async function look(
  redis: RedisClient,
  address: LimiterAddress,
  entry: SealedEntry,
  giveUpAt: number,
  fault: unknown,
): Promise<string | null> {
  const key = limiterKeys(address).audit;
  for (;;) {
    const newest = await bounded(
      redis.xrevrange(key, '+', '-', 'COUNT', NEWEST).catch(() => null),
      Math.max(LOOK_EVERY_MS, giveUpAt - performance.now()),
    );
    if (newest !== null) {
      return newest.find(([, fields]) => fields.includes(entry.hash))?.[0] ?? null;
    }
    if (performance.now() + LOOK_EVERY_MS > giveUpAt) throw fault;
    await bounded(new Promise(() => {}), LOOK_EVERY_MS);
  }
}

/** What `promise` gives, or null after `ms`. */
function bounded<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout>;
  const late = new Promise<null>((ok) => {
    timer = setTimeout(ok, ms, null);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
