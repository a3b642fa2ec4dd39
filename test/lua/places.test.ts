/** Shares and places of one cap: a fleet changes from one to the other, both ways, and never passes the cap. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inFlight, slots } from '../../src/redis/scripts.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
type Kind = 'shares' | 'places';

async function fleet(cap: number) {
  const { keys } = fixture.limiter();
  const params = { inFlightMax: cap, safeInFlight: cap };
  await seedParams(fixture.redis, keys, params, { nowUs: T0 });
  return {
    keys,
    cap: (to: number, nowUs: number) =>
      changeParams(fixture.redis, keys, { inFlightMax: to, safeInFlight: to }, { nowUs }),
    ask: (
      processId: string,
      need: number,
      nowUs: number,
      kind: Kind = 'shares',
      exact?: boolean | undefined,
    ) =>
      inFlight(fixture.redis, {
        keys,
        processId,
        need,
        reports: true,
        byPlace: kind === 'places',
        exact,
        fallback: FALLBACK,
        nowUs,
      }),
    place: (op: 'hold' | 'release', nowUs: number, ...ids: string[]) =>
      slots(fixture.redis, { keys, op, ids, fallback: FALLBACK, nowUs }),
  };
}

test('a cap smaller than the fleet is kept place by place, and 10 s after it was large enough no more', async () => {
  const { ask, cap } = await fleet(2);
  expect(await ask('a', 1, T0)).toMatchObject({ places: false, share: 2 });
  expect(await ask('b', 1, T0)).toMatchObject({ places: false });
  expect(await ask('c', 1, T0)).toMatchObject({ places: true, share: 0, reporting: 3 });
  expect(await ask('a', 1, T0 + S)).toMatchObject({ places: true, share: 2 });
  await cap(9, T0 + 2 * S);
  for (const name of ['a', 'b', 'c']) {
    expect((await ask(name, 0, T0 + 2 * S, 'places')).places).toBe(true);
  }
  expect((await ask('a', 0, T0 + 10.9 * S, 'places')).places).toBe(true);
  expect((await ask('a', 0, T0 + 11 * S, 'places')).places).toBe(false);
});

test('who says exact takes the others along; who says never is not taken', async () => {
  const { ask } = await fleet(50);
  await ask('a', 1, T0);
  expect((await ask('b', 1, T0, 'places', true)).places).toBe(true);
  expect((await ask('a', 1, T0)).places).toBe(true);
  expect(await ask('c', 1, T0, 'shares', false)).toMatchObject({ places: false, share: 0 });
});

test('never, under a cap smaller than the fleet: shares as they were, with none for some', async () => {
  const { ask } = await fleet(2);
  const names = ['a', 'b', 'c'];
  for (const name of names) await ask(name, 5, T0, 'shares', false);
  const sum = { share: 0 };
  for (const name of names) sum.share += (await ask(name, 5, T0, 'shares', false)).share;
  expect(sum.share).toBe(2);
});

test('what is under way under a share keeps its part; the rest of the share is free for places at once', async () => {
  const { ask, place } = await fleet(5);
  await ask('a', 5, T0);
  expect((await place('hold', T0, 'x')).done).toEqual([false]);
  expect((await ask('a', 3, T0, 'places', true)).share).toBe(3);
  expect((await place('hold', T0, 'x', 'y', 'z')).done).toEqual([true, true, false]);
  // It never gets more than it had, and less as its requests end.
  expect((await ask('a', 4, T0, 'places', true)).share).toBe(3);
  expect((await ask('a', 1, T0 + S, 'places', true)).share).toBe(1);
  expect((await place('hold', T0 + S, 'z', 'w', 'v')).done).toEqual([true, true, false]);
});

test('back to shares: what is held place by place counts against them until it has ended', async () => {
  const { ask, place } = await fleet(6);
  await ask('a', 0, T0, 'places', true);
  await place('hold', T0, 'p', 'q');
  expect((await ask('a', 6, T0, 'shares', false)).share).toBe(4);
  await place('release', T0, 'p', 'q');
  expect((await ask('a', 6, T0, 'shares', false)).share).toBe(6);
  expect((await place('hold', T0, 'r')).done).toEqual([false]);
});

test('shares of processes that died lapse for places too, after 3 s', async () => {
  const { ask, place } = await fleet(3);
  await ask('a', 3, T0);
  expect((await place('hold', T0 + 2.9 * S, 'x')).done).toEqual([false]);
  expect((await place('hold', T0 + 3 * S, 'x')).done).toEqual([true]);
});

test('C02: a clock set back: shares still count, and places are wanted no longer than before', async () => {
  const { ask, place } = await fleet(3);
  for (const name of ['a', 'b', 'c', 'd']) await ask(name, 1, T0);
  const back = T0 - 3_600 * S;
  expect((await place('hold', back, 'x')).done).toEqual([false]);
  for (const name of ['a', 'b', 'c', 'd']) await ask(name, 0, back, 'places');
  expect((await place('hold', back, 'x')).done).toEqual([true]);
  for (const name of ['a', 'b', 'c']) await ask(name, 0, back + 2 * S, 'places');
  expect((await ask('a', 0, back + 12.1 * S, 'places')).places).toBe(false);
});

test('any run of shares and places, of changes between them, of caps and deaths: no grant passes the cap', async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.record({
    afterUs: fc.constantFrom(0, 1, S / 2, S, 3 * S),
    cap: fc.option(fc.integer({ min: 1, max: 6 }), { freq: 8 }),
    what: fc.oneof(
      fc.record({
        process: name,
        need: fc.integer({ min: 0, max: 5 }),
        kind: fc.constantFrom<Kind>('shares', 'places'),
        exact: fc.constantFrom(undefined, undefined, true, false),
      }),
      fc.record({
        op: fc.constantFrom('hold' as const, 'hold' as const, 'release' as const),
        ids: fc.array(fc.constantFrom('p', 'q', 'r', 's', 't'), { minLength: 1, maxLength: 3 }),
      }),
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 30 }), async (steps) => {
      let cap = 4;
      let nowUs = T0;
      const all = await fleet(cap);
      const shares = new Map<string, { share: number; endUs: number }>();
      const places = new Map<string, number>();
      const used = () => [...shares.values()].reduce((sum, { share }) => sum + share, places.size);
      for (const each of steps) {
        nowUs += each.afterUs;
        for (const [key, { endUs }] of shares) if (endUs <= nowUs) shares.delete(key);
        for (const [key, endUs] of places) if (endUs <= nowUs) places.delete(key);
        if (each.cap !== null) {
          cap = each.cap;
          await all.cap(cap, nowUs);
        }
        const { what } = each;
        if ('process' in what) {
          const { process, need, kind, exact } = what;
          const before = shares.get(process)?.share ?? 0;
          const { share } = await all.ask(process, need, nowUs, kind, exact);
          shares.set(process, { share, endUs: nowUs + 3 * S });
          if (share > before) expect(used()).toBeLessThanOrEqual(cap);
          if (kind === 'places') expect(share).toBeLessThanOrEqual(Math.min(before, need));
        } else {
          const { done } = await all.place(what.op, nowUs, ...what.ids);
          for (const [i, id] of what.ids.entries()) {
            const had = places.has(id);
            if (what.op === 'release') places.delete(id);
            else if (done[i]) {
              places.set(id, nowUs + 5 * S);
              if (!had) expect(used()).toBeLessThanOrEqual(cap);
            }
          }
        }
      }
    }),
    { numRuns: 100 },
  );
});
