/** Fitting a plant: known plants are found again from what they would have reported, and what cannot be known is refused. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseHistory } from '../../src/sim/history.js';
import { leastSquares } from '../../src/sim/least-squares.js';
import { carriedOf, peakPerSecond, serviceOf } from '../../src/sim/service.js';
import { fitPlant, type HistoryPoint } from '../../src/testing.js';
import { historyOf } from './support.js';

/** Points that lie on a curve: what minutes would be without chance. */
function onCurve(a: number, alpha: number, beta: number, loads: readonly number[]): HistoryPoint[] {
  return loads.map((n, i) => {
    const meanMs = a * (1 + alpha * n + beta * (n * n + 2 * n));
    return { atMs: 60_000 * i, okPerSecond: (1000 * n) / meanMs, meanMs, inFlight: n };
  });
}

test('without chance the law is found to the last digit', () => {
  const plants = fc.record({
    a: fc.double({ min: 1, max: 2000, noNaN: true }),
    atPeak: fc.double({ min: 5, max: 500, noNaN: true }),
    alpha: fc.double({ min: 0, max: 0.2, noNaN: true }),
  });
  fc.assert(
    fc.property(plants, ({ a, atPeak, alpha }) => {
      const beta = 1 / atPeak ** 2;
      const loads = Array.from({ length: 40 }, (_, i) => ((i + 1) / 40) * atPeak);
      const fit = fitPlant(onCurve(a, alpha, beta, loads));
      if (fit.kind === 'refused') throw new Error(fit.message);
      expect(fit.leisureMs / a).toBeCloseTo(1, 4);
      expect(fit.service.alpha).toBeCloseTo(alpha, 4);
      expect(fit.service.beta / beta).toBeCloseTo(1, 2);
      expect(fit.quality).toBeGreaterThan(0.9999);
    }),
    { numRuns: 100 },
  );
});

describe('from simulated history with all its chance', () => {
  test.each([
    [50, 100],
    [200, 40],
    [800, 30],
  ])(
    '%i a second at %i ms: capacity within 12, leisure within 5 percent',
    (perSecond, leisureMs) => {
      const service = { ...serviceOf({ capacityPerSecond: perSecond, leisureMs }), pool: null };
      const fit = fitPlant(
        historyOf(service, perSecond, { seconds: perSecond < 100 ? 2400 : 500 }),
      );
      if (fit.kind === 'refused') throw new Error(fit.message);
      expect(fit.capacityPerSecond / carriedOf(service)).toBeGreaterThan(0.88);
      expect(fit.capacityPerSecond / carriedOf(service)).toBeLessThan(1.12);
      expect(fit.leisureMs / service.app.meanMs).toBeGreaterThan(0.95);
      expect(fit.leisureMs / service.app.meanMs).toBeLessThan(1.05);
    },
  );

  test.each([
    [50, 100],
    [200, 40],
    [400, 100],
  ])(
    '%i a second at %i ms with a database, which the law knows nothing of: within 20 percent',
    (perSecond, leisureMs) => {
      const service = serviceOf({ capacityPerSecond: perSecond, leisureMs });
      const fit = fitPlant(
        historyOf(service, perSecond, { seconds: perSecond < 100 ? 2400 : 500 }),
      );
      if (fit.kind === 'refused') throw new Error(fit.message);
      expect(fit.capacityPerSecond / perSecond).toBeGreaterThan(0.8);
      expect(fit.capacityPerSecond / perSecond).toBeLessThan(1.2);
      expect(fit.leisureMs / leisureMs).toBeGreaterThan(0.95);
      expect(fit.leisureMs / leisureMs).toBeLessThan(1.05);
      expect(fit.service.workers).toBeGreaterThan(4);
    },
  );

  test('never near the knee: refused, with what it carries at the least', () => {
    const service = serviceOf({ capacityPerSecond: 200, leisureMs: 40 });
    const fit = fitPlant(historyOf(service, 200, { top: 0.5, seconds: 500 }));
    expect(fit).toMatchObject({ kind: 'refused', reason: 'no_knee' });
    if (fit.kind === 'fitted') return;
    expect(fit.atLeastPerSecond).toBeGreaterThan(80);
    expect(fit.atLeastPerSecond).toBeLessThan(125);
    expect(fit.message).toMatch(
      /never came near the knee.*at least 1?\d\d\/s; how much more is unknown/,
    );
  });

  test('fewer than two under way: chance and contention look alike', () => {
    const service = serviceOf({ capacityPerSecond: 20, leisureMs: 30 });
    const fit = fitPlant(historyOf(service, 20, { seconds: 2400 }));
    expect(fit.kind).toBe('refused');
  });
});

test('too few points, and response time that does not follow load, are refused', () => {
  expect(fitPlant([])).toMatchObject({ reason: 'few_points', atLeastPerSecond: null });
  const loads = Array.from({ length: 19 }, (_, i) => i + 1);
  expect(fitPlant(onCurve(50, 0.05, 0.01, loads))).toMatchObject({ reason: 'few_points' });
  // Slow and quick minutes at every load.
  const curve = Array.from({ length: 200 }, (_, i) => 1 + (i % 20));
  const mixed = onCurve(50, 0.02, 1 / 100, curve).map((point, i) => {
    return { ...point, meanMs: point.meanMs * (i % 3 === 0 ? 6 : 0.2) };
  });
  expect(fitPlant(mixed)).toMatchObject({ kind: 'refused', reason: 'poor' });
});

test('outliers are set aside, and said', () => {
  const loads = Array.from({ length: 100 }, (_, i) => 0.2 * (i + 1));
  const points = onCurve(50, 0.02, 1 / 400, loads);
  for (const i of [3, 40]) points[i] = { ...points[i]!, meanMs: 40 * points[i]!.meanMs };
  const fit = fitPlant(points);
  if (fit.kind === 'refused') throw new Error(fit.message);
  expect(fit.leftOut).toBeGreaterThanOrEqual(2);
  expect(fit.leisureMs).toBeGreaterThan(45);
  expect(fit.leisureMs).toBeLessThan(55);
});

test('the spread of response times comes from p95 at leisure', () => {
  const loads = Array.from({ length: 60 }, (_, i) => 0.4 * (i + 1));
  // p95 of a lognormal of cv 0.5 is 1.95 × its mean.
  const points = onCurve(50, 0.02, 1 / 400, loads).map((p) => ({ ...p, p95Ms: 1.95 * p.meanMs }));
  const fit = fitPlant(points);
  expect(fit).toMatchObject({ service: { app: { cv: expect.closeTo(0.5, 1) } } });
});

test('the peak is that of the law, and a service carries less than it', () => {
  const service = { ...serviceOf({ capacityPerSecond: 300, leisureMs: 50 }), pool: null };
  const at = (n: number) => {
    const slower = 1 + service.alpha * (n - 1) + service.beta * n * (n - 1);
    return (1000 * n) / (service.app.meanMs * slower);
  };
  const all = Array.from({ length: service.workers }, (_, i) => at(i + 1));
  expect(peakPerSecond(service) / Math.max(...all)).toBeCloseTo(1, 2);
  expect(carriedOf(service)).toBeLessThan(peakPerSecond(service));
});

test('least squares never go below zero', () => {
  const rows = [
    [1, 0],
    [1, 1],
    [1, 2],
  ];
  expect(leastSquares(rows, [1, 3, 5]).map((x) => Number(x.toFixed(9)))).toEqual([1, 2]);
  expect(leastSquares(rows, [5, 3, 1])).toEqual([expect.closeTo(3), 0]);
});

describe('a history as people have it', () => {
  const points = [{ atMs: 0, okPerSecond: 10, meanMs: 50 }];

  test('JSON as a list or under points, CSV with the columns in any order', () => {
    expect(parseHistory(JSON.stringify(points), 'h.json')).toEqual(points);
    expect(parseHistory(JSON.stringify({ points }), 'h.json')).toEqual(points);
    expect(parseHistory('meanMs, atMs,okPerSecond,p95Ms,host\n50,0,10,,3\n\n', 'h.csv')).toEqual(
      points,
    );
  });

  test.each([
    ['[{"atMs":0,"okPerSecond":"10","meanMs":5}]', /point 1: okPerSecond is "10"; a number ≥ 0/],
    ['[{"atMs":0,"okPerSecond":10}]', /point 1: meanMs is missing/],
    ['[{"atMs":0,"okPerSecond":10,"meanMs":-5}]', /meanMs is -5/],
    ['[null]', /point 1: atMs is missing/],
    ['{"a":1}', /is no list of points/],
    ['[1,', /is no JSON/],
    ['atMs,meanMs\n1,2', /has no column okPerSecond/],
    ['atMs,okPerSecond,meanMs\n1,2,3\n1,x,3', /line 3: okPerSecond is null; a number/],
  ])('%s is refused by its place', (text, message) => {
    expect(() => parseHistory(text, 'h')).toThrow(message);
    expect(() => parseHistory(text, 'h')).toThrow(/FLYBALL_E_SIM_HISTORY|Write a JSON list/);
  });
});
