/** Limiters that anyone's daemons may lead: how they are registered, and who leads which. */
import type { Redis } from 'ioredis';
import { adopt } from '../../src/actuate/adopt.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { loadedPolicy } from './policies.js';

/** Adopted by a person, so that a daemon needs no file of it. */
export async function registerLimiter(redis: Redis, name: string): Promise<void> {
  const limiter = { name, rate: 100, capacity: 50 };
  const bounds = { rate: { min: 20, max: 400 } };
  const loaded = loadedPolicy({ limiter, bounds, mode: 'auto' }, 'x.ts');
  const actor = { kind: 'person' as const, name: 'kim' };
  // No lease: a daemon may lead it at once.
  await adopt(redis, loaded, { actor, leaseMs: 0, nowMs: Date.now() });
}

/** The pid behind each lease; null: nobody's. */
export async function leadersOf(
  redis: Redis,
  names: readonly string[],
): Promise<(number | null)[]> {
  const texts = await redis.mget(names.map((name) => limiterKeys({ name }).lease));
  return texts.map((text) => (text ? Number(text.split(':')[1]) : null));
}
