/** In-flight slots against a plain model: never more than the cap, held by time, returned once. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { slots } from '../../src/redis/scripts.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const LEASE = 5 * S;

const ask = (keys: LimiterKeys, op: 'hold' | 'release', ids: string[], nowUs: number, cap = 2) =>
  slots(fixture.redis, { keys, op, ids, nowUs, fallback: { ...FALLBACK, inFlightMax: cap } });

test('no more than the cap; renewing takes no second place; a release is idempotent and by id', async () => {
  const { keys } = fixture.limiter();
  expect((await ask(keys, 'hold', ['a', 'b', 'c'], T0)).done).toEqual([true, true, false]);
  expect((await ask(keys, 'hold', ['a', 'b'], T0 + S)).done).toEqual([true, true]);
  expect((await ask(keys, 'release', ['c', 'x'], T0 + S)).done).toEqual([false, false]);
  expect(await ask(keys, 'release', ['a', 'a'], T0 + S)).toMatchObject({
    held: 1,
    done: [true, false],
  });
  expect((await ask(keys, 'hold', ['c'], T0 + S)).done).toEqual([true]);
});

test('a dead holder’s slot returns after 5 s, one that renews keeps its own', async () => {
  const { keys } = fixture.limiter();
  await ask(keys, 'hold', ['dead', 'alive'], T0);
  await ask(keys, 'hold', ['alive'], T0 + 4 * S);
  expect((await ask(keys, 'hold', ['c'], T0 + LEASE - 1)).done).toEqual([false]);
  expect((await ask(keys, 'hold', ['c'], T0 + LEASE)).done).toEqual([true]);
  expect((await ask(keys, 'hold', ['dead'], T0 + LEASE)).done).toEqual([false]);
  expect((await ask(keys, 'release', ['dead'], T0 + LEASE)).done).toEqual([false]);
});

test('C16: a denied call writes nothing; C13: the key has a time to live', async () => {
  const { keys } = fixture.limiter();
  await ask(keys, 'hold', ['a', 'b'], T0);
  const before = await fixture.redis.dump(keys.slots);
  await ask(keys, 'hold', ['c', 'd'], T0 + S);
  expect(await fixture.redis.dump(keys.slots)).toEqual(before);
  expect(await fixture.redis.pttl(keys.slots)).toBeGreaterThan(5_000);
  expect(await fixture.redis.pttl(keys.slots)).toBeLessThanOrEqual(10_000);
});

test('C25: the cap is that of the params; lowered, nobody loses a slot, and none is given above it', async () => {
  const { keys } = fixture.limiter();
  await seedParams(fixture.redis, keys, { inFlightMax: 3, safeInFlight: 3 }, { nowUs: T0 });
  expect((await ask(keys, 'hold', ['a', 'b', 'c', 'd'], T0)).done).toEqual([
    true,
    true,
    true,
    false,
  ]);
  await changeParams(fixture.redis, keys, { inFlightMax: 1, safeInFlight: 1 }, { nowUs: T0 });
  expect((await ask(keys, 'hold', ['a', 'b', 'c'], T0 + S)).done).toEqual([true, true, true]);
  await ask(keys, 'release', ['a', 'b'], T0 + S);
  expect(await ask(keys, 'hold', ['d'], T0 + S)).toMatchObject({ cap: 1, held: 1, done: [false] });
});

test('a cap of 0 is no cap, and keeps nothing', async () => {
  const { keys } = fixture.limiter();
  expect((await ask(keys, 'hold', ['a', 'b', 'c'], T0, 0)).done).toEqual([true, true, true]);
  expect(await fixture.redis.exists(keys.slots)).toBe(0);
});

test('I5: a clock set back holds slots for one lease from then, not for the length of the step', async () => {
  const { keys } = fixture.limiter();
  await ask(keys, 'hold', ['a', 'b'], T0);
  const back = T0 - 23 * 3600 * S;
  expect((await ask(keys, 'hold', ['c'], back)).done).toEqual([false]);
  expect((await ask(keys, 'hold', ['c'], back + LEASE)).done).toEqual([true]);
});

test('any run of holds and releases equals the model', async () => {
  const step = fc.record({
    afterUs: fc.constantFrom(0, 1, S, 2 * S, LEASE - 1, LEASE),
    op: fc.constantFrom('hold' as const, 'hold' as const, 'release' as const),
    ids: fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 20 }),
      async (cap, steps) => {
        const { keys } = fixture.limiter();
        const model = new Map<string, number>();
        let nowUs = T0;
        for (const { afterUs, op, ids } of steps) {
          nowUs += afterUs;
          for (const [id, end] of model) if (end <= nowUs) model.delete(id);
          const done = ids.map((id) => {
            if (op === 'release') return model.delete(id);
            if (!model.has(id) && model.size >= cap) return false;
            model.set(id, nowUs + LEASE);
            return true;
          });
          expect(await ask(keys, op, ids, nowUs, cap)).toMatchObject({ done, held: model.size });
          expect(model.size).toBeLessThanOrEqual(cap);
        }
      },
    ),
    { numRuns: 60 },
  );
});
