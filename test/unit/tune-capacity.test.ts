/** The capacity's formulas, each with the sentence that says which bound binds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sizeOf } from '../../src/tune/capacity.js';
import { offPeakOf } from '../../src/tune/from-history.js';
import { madeUp } from '../support/history.js';

const eight = { p999Ms: 80, slotsPerInstance: 1, instances: 8 };

test('80 ms, 1 slot, 8 instances: 70', () => {
  expect(sizeOf(eight)).toMatchObject({ capacity: 70, binds: 'slots', bySlots: 70, slots: 8 });
  expect(sizeOf(eight).sentence).toBe('The slots bind: 1000 ÷ 80 ms × 1 × 8 × 0.7 = 70.');
});

test('never above connections ÷ hold time, and the sentence says which binds', () => {
  const wide = sizeOf({ ...eight, connections: 20, holdMs: 15 });
  expect(wide).toMatchObject({ capacity: 70, binds: 'slots', byConnections: 1333 });
  expect(wide.sentence).toContain('20 connections ÷ 15 ms = 1333 a second');
  const narrow = sizeOf({ ...eight, connections: 2, holdMs: 40 });
  expect(narrow).toMatchObject({ capacity: 50, binds: 'connections', byConnections: 50 });
  expect(narrow.sentence).toMatch(/^The connections bind: 2 connections ÷ 40 ms = 50 a second/);
});

test('capacity is at least a second of the rate; a rate beyond the connections is lowered', () => {
  expect(sizeOf({ ...eight, rate: 90.2 })).toMatchObject({
    capacity: 91,
    rate: 90.2,
    binds: 'rate',
  });
  expect(sizeOf({ ...eight, rate: 60 })).toMatchObject({ capacity: 70, binds: 'slots' });
  const cut = sizeOf({ ...eight, rate: 90, connections: 2, holdMs: 40 });
  expect(cut).toMatchObject({ capacity: 50, rate: 50, binds: 'connections' });
  expect(cut.sentence).toContain('lowered from 90/s to 50/s');
});

test('for any service: capacity ≥ rate, capacity ≤ connections ÷ hold time, one token at least, all finite', () => {
  const positive = (max: number) => fc.double({ min: 0.01, max, noNaN: true });
  fc.assert(
    fc.property(
      fc.record({
        p999Ms: positive(1e5),
        slotsPerInstance: fc.integer({ min: 1, max: 1000 }),
        instances: fc.integer({ min: 1, max: 1000 }),
        rate: fc.option(positive(1e5), { nil: undefined }),
        pool: fc.option(fc.tuple(fc.integer({ min: 1, max: 500 }), positive(1e4)), { nil: null }),
      }),
      ({ pool, ...service }) => {
        const [connections, holdMs] = pool ?? [];
        const sized = sizeOf({ ...service, connections, holdMs });
        expect(Number.isInteger(sized.capacity)).toBe(true);
        expect(sized.capacity).toBeGreaterThanOrEqual(1);
        // A second of the rate, rounded up.
        if (sized.rate !== null) expect(sized.capacity).toBeGreaterThanOrEqual(sized.rate);
        if (sized.byConnections !== null) {
          expect(sized.capacity).toBeLessThanOrEqual(Math.max(1, sized.byConnections));
        }
      },
    ),
  );
});

test('the off-peak P99.9 is that of calm minutes, and thin minutes do not make it too low', () => {
  // Busy half: 400 ms. Calm half: 80 ms.
  const rows = madeUp({ days: 2, change: (row) => ({ p999Ms: row.ok > 6000 ? 400 : 80 }) });
  expect(offPeakOf(rows)).toMatchObject({ p999Ms: 80 });
  // 60 answers a minute, of which the slowest is 50 … 109 ms: their 99.9th percentile is near the top, not the middle.
  const thin = madeUp({
    days: 7,
    mean: 1,
    swing: 0,
    change: (_row, i) => ({ p999Ms: 50 + (i % 60) }),
  });
  expect(offPeakOf(thin)!.p999Ms).toBeGreaterThan(103);
  expect(offPeakOf(thin.slice(0, 60))).toBeNull();
});
