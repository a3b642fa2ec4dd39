/** A limiter's beat of one second: all that it tells and asks Redis by itself, in one write. Stage: enforce. */
import { inOneWrite } from '../redis/gather-writes.js';
import type { RedisClient } from './options.js';

const BEAT_MS = 1_000;

export interface Beat {
  end(): void;
}

/** `send` begins all that goes out with a beat, and gives what to wait for; should a part reject, `failed` hears it. */
export function startBeat(
  redis: RedisClient,
  send: () => unknown[],
  failed: (error: Error) => void,
): Beat {
  async function beat() {
    await Promise.all(inOneWrite(redis, send));
  }
  const timer = setInterval(() => void beat().catch(failed), BEAT_MS);
  timer.unref();
  return { end: () => clearInterval(timer) };
}
