/** In-flight shares: fair by need, whole, never more than the cap among them, gone with a process that is gone. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inFlight } from '../../src/redis/scripts.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();

async function fleet(cap: number) {
  const { keys } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { inFlightMax: cap, minInFlight: 0, maxInFlight: 1000 },
    { nowUs: T0 },
  );
  const ask = (processId: string, need: number, nowUs = T0, reports = true) =>
    inFlight(fixture.redis, {
      keys,
      processId,
      need,
      reports,
      exact: false,
      fallback: FALLBACK,
      nowUs,
    });
  return { keys, ask };
}

test('one process alone has the whole cap, whatever it needs', async () => {
  const { ask } = await fleet(24);
  expect(await ask('a', 0)).toMatchObject({ share: 24, fair: 24, processes: 1, reporting: 1 });
});

test('a second process waits for what the first holds, and both settle at their fair parts', async () => {
  const { ask } = await fleet(10);
  await ask('a', 10);
  expect(await ask('b', 10)).toMatchObject({ share: 0, fair: 5, processes: 2 });
  expect(await ask('a', 10)).toMatchObject({ share: 5 });
  expect(await ask('b', 10)).toMatchObject({ share: 5 });
});

test('max-min by need: small needs are met first, the rest is parted evenly, spare goes to all', async () => {
  const { ask } = await fleet(24);
  const settle = async (needs: Record<string, number>) => {
    for (const [name, need] of Object.entries(needs)) await ask(name, need);
    const shares: number[] = [];
    for (const [name, need] of Object.entries(needs)) shares.push((await ask(name, need)).share);
    return shares;
  };
  expect(await settle({ a: 3, b: 20, c: 20 })).toEqual([3, 10, 11]);
  expect(await settle({ a: 3, b: 6, c: 3 })).toEqual([7, 10, 7]);
  expect(await settle({ a: 0, b: 100, c: 0 })).toEqual([0, 24, 0]);
});

test('a process that is gone lapses after 3 s', async () => {
  const { ask } = await fleet(10);
  await ask('a', 10);
  expect((await ask('b', 10, T0 + 2.9 * S)).share).toBe(0);
  expect(await ask('b', 10, T0 + 3 * S)).toMatchObject({ share: 10, processes: 1 });
});

test('C02: a clock that stepped back keeps the living and lets the dead lapse', async () => {
  const { ask } = await fleet(10);
  await ask('a', 10);
  const back = T0 - 3600 * S;
  expect((await ask('b', 10, back)).share).toBe(0);
  expect((await ask('b', 10, back + 3 * S)).share).toBe(10);
});

test('processes without completions are counted, not bound', async () => {
  const { ask } = await fleet(10);
  expect(await ask('blind', 5, T0, false)).toMatchObject({
    share: Infinity,
    processes: 1,
    reporting: 0,
  });
  expect(await ask('a', 5)).toMatchObject({ share: 10, processes: 2, reporting: 1 });
});

test('no cap is no bound; without params the numbers of the call rule', async () => {
  const { keys, ask } = await fleet(0);
  expect((await ask('a', 5)).share).toBe(Infinity);
  await fixture.redis.del(keys.params, keys.inFlight);
  const fallback = { ...FALLBACK, inFlightMax: 6 };
  const reply = await inFlight(fixture.redis, {
    keys,
    processId: 'a',
    need: 1,
    reports: true,
    fallback,
    nowUs: T0,
  });
  expect(reply).toMatchObject({ share: 6, inForce: { managed: false, inFlightMax: 6, rate: 10 } });
});

test('C13: the shares are never kept for ever', async () => {
  const { keys, ask } = await fleet(5);
  await ask('a', 1);
  expect(await fixture.redis.pttl(keys.inFlight)).toBeGreaterThan(0);
});

test('any fleet, needs, caps and deaths: granted shares never pass the cap that granted them', async () => {
  const asks = fc.record({
    process: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    need: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(0, 1, 1000)),
    afterUs: fc.integer({ min: 0, max: 1_500_000 }),
    cap: fc.option(fc.integer({ min: 1, max: 60 }), { freq: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(asks, { minLength: 1, maxLength: 30 }), async (story) => {
      let cap = 20;
      let now = T0;
      const { keys, ask } = await fleet(cap);
      const held = new Map<string, { share: number; atUs: number }>();
      for (const each of story) {
        now += each.afterUs;
        if (each.cap !== null) {
          cap = each.cap;
          await changeParams(fixture.redis, keys, { inFlightMax: cap }, { nowUs: now });
        }
        const reply = await ask(each.process, each.need, now);
        held.delete(each.process);
        for (const [name, { atUs }] of held) if (now - atUs >= 3 * S) held.delete(name);
        const others = [...held.values()].reduce((sum, one) => sum + one.share, 0);
        expect(reply.share).toBeGreaterThanOrEqual(0);
        expect(Number.isInteger(reply.share)).toBe(true);
        expect(reply.share === 0 || reply.share + others <= cap).toBe(true);
        expect(reply.processes).toBe(held.size + 1);
        held.set(each.process, { share: reply.share, atUs: now });
      }
      // Once all have asked twice under one cap, the whole cap is given out.
      const names = [...held.keys()];
      for (let round = 0; round < 2; round++) for (const name of names) await ask(name, 7, now);
      let sum = 0;
      for (const name of names) sum += (await ask(name, 7, now)).share;
      expect(sum).toBe(cap);
    }),
    { numRuns: 60 },
  );
});
