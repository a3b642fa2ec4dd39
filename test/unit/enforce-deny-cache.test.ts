/** The deny cache: what it repeats, until when, and what it forgets. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDenyCache } from '../../src/enforce/deny-cache.js';
import type { TakeWish } from '../../src/enforce/pending-take.js';
import type { InForce, TakeAnswer } from '../../src/redis/calls.js';

const inForce: InForce = {
  managed: true,
  epoch: 1,
  revision: 1,
  generation: 0,
  mode: 'auto',
  state: 'closed',
  gliding: false,
  rate: 1,
  capacity: 1,
  inFlightMax: 0,
  subjectRate: -1,
  subjectCapacity: 0,
};
const wish = (more: Partial<TakeWish> = {}): TakeWish => ({
  subject: 'ada',
  cost: 1,
  priority: 'default',
  onRedisError: 'local',
  signal: undefined,
  ...more,
});
const denial = (retryAfterMs: number | null): TakeAnswer => ({
  allowed: false,
  reason: 'rate',
  remaining: 0,
  retryAfterMs,
  delayMs: 0,
});

test('a denial is repeated until the take could pass, its time counted down', () => {
  const cache = createDenyCache();
  cache.learn(wish(), denial(401), inForce, 1000);
  expect(cache.find(wish(), 1000)?.answer.retryAfterMs).toBe(400);
  expect(cache.find(wish(), 1399)?.answer).toMatchObject({ allowed: false, retryAfterMs: 1 });
  expect(cache.find(wish(), 1400)).toBeNull();
});

test('a longer one, and one that no waiting ends, is asked of Redis again after 1 s', () => {
  for (const retryAfterMs of [60_000, null]) {
    const cache = createDenyCache();
    cache.learn(wish(), denial(retryAfterMs), inForce, 0);
    expect(cache.find(wish(), 999)?.answer.reason).toBe('rate');
    expect(cache.find(wish(), 1000)).toBeNull();
  }
});

test('only the very take that was denied: its subject, cost and priority', () => {
  const cache = createDenyCache();
  cache.learn(wish(), denial(500), inForce, 0);
  for (const other of [
    { subject: null },
    { subject: 'bob' },
    { cost: 0.5 },
    { priority: 'critical' as const },
  ]) {
    expect(cache.find(wish(other), 1)).toBeNull();
  }
});

test('nothing is learned without a revision, in a glide, in shadow', () => {
  for (const more of [{ managed: false }, { gliding: true }, { mode: 'shadow' as const }]) {
    const cache = createDenyCache();
    cache.learn(wish(), denial(500), { ...inForce, ...more }, 0);
    expect(cache.find(wish(), 1)).toBeNull();
  }
});

test('at most 10,000 subjects; the oldest denial goes first; clear forgets all', () => {
  const cache = createDenyCache();
  for (let i = 0; i <= 10_000; i++)
    cache.learn(wish({ subject: `u${i}` }), denial(500), inForce, 0);
  expect(cache.find(wish({ subject: 'u0' }), 1)).toBeNull();
  expect(cache.find(wish({ subject: 'u1' }), 1)).not.toBeNull();
  cache.clear();
  expect(cache.find(wish({ subject: 'u10000' }), 1)).toBeNull();
});

test('it never admits, and never holds longer than Redis said or 1 s', () => {
  const step = fc.record({
    subject: fc.constantFrom('a', 'b', null),
    retryAfterMs: fc.option(fc.integer({ min: 1, max: 3000 })),
    afterMs: fc.integer({ min: 0, max: 1500 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const cache = createDenyCache();
      let nowMs = 0;
      for (const { subject, retryAfterMs, afterMs } of steps) {
        cache.learn(wish({ subject }), denial(retryAfterMs), inForce, nowMs);
        nowMs += afterMs;
        const known = cache.find(wish({ subject }), nowMs);
        if (known) {
          expect(known.answer.allowed).toBe(false);
          expect(afterMs).toBeLessThan(Math.min(1000, retryAfterMs ?? 1000));
        }
      }
    }),
  );
});
