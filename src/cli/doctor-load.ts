/** `doctor --load`: how many decisions a second this Redis gives to one process here, on a limiter of its own that leaves nothing behind. Stage: cli. */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { createLimiter } from '../enforce/limiter.js';
import { limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { percentile } from '../tune/usable.js';
import type { Finding } from './doctor-finding.js';
import { number, span } from './text.js';

/** As many as a busy service has under way; they share round trips, as there. */
const AT_ONCE = 64;
const KEPT = 100_000;

export async function load(
  redis: RedisClient,
  prefix: string | undefined,
  forMs: number,
): Promise<Finding> {
  const name = `doctor-${randomBytes(6).toString('hex')}`;
  const startMs = Date.now();
  const limiter = createLimiter({
    ...{ name, redis, rate: 1e6, capacity: 1e6, topSubjects: false },
    ...(prefix === undefined ? {} : { prefix }),
    ...{ deadlineMs: 5000, onRedisError: 'closed' },
    // That no policy is adopted for it, and what it meets meanwhile: the finding says what matters.
    onWarning: () => {},
  });
  let decided = 0;
  let without = 0;
  const times: number[] = [];
  const began = performance.now();
  const left = () => forMs - (performance.now() - began);
  try {
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left() > 0) {
          const from = performance.now();
          const { source } = await limiter.take();
          if (source === 'closed') without += 1;
          decided += 1;
          times[decided % KEPT] = performance.now() - from;
        }
      }),
    );
  } finally {
    await limiter.close();
    await forget(redis, { name, prefix }, startMs);
  }
  const seconds = (performance.now() - began) / 1000;
  const p99 = percentile(times, 0.99) ?? 0;
  const message = `${number(Math.round(decided / seconds))} decisions/s from one process here, ${AT_ONCE} at once, for ${span(forMs)}; p99 ${number(Number(p99.toPrecision(2)))} ms`;
  if (without === 0) return { check: 'load', status: 'ok', message };
  return {
    ...{ check: 'load', status: 'warn' },
    message: `${message}; ${without} were not answered within 5 s`,
    mend: 'Redis does not keep up with one process: give it a core of its own, or draw in blocks (docs/performance.md).',
  };
}

/** All its keys have a TTL; they go at once all the same, where this user may. */
async function forget(
  redis: RedisClient,
  address: { name: string; prefix: string | undefined },
  startMs: number,
): Promise<void> {
  const keys = limiterKeys(address);
  const first = Math.floor(startMs / 1000) - 5;
  const last = Math.ceil(Date.now() / 1000) + 5;
  const seconds = Array.from({ length: last - first }, (_, i) => keys.telemetry(first + i));
  const names = [keys.bucket, keys.inFlight, keys.slots, keys.owed(false), ...seconds];
  await redis.unlink(...names).catch(() => {});
}
