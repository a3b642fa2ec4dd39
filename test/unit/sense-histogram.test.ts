import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addBins, binOf, quantileOfBins } from '../../src/histogram.js';
import { type Bins, GAMMA, MAX_BIN, MIN_BIN } from '../../src/sense/readings.js';

function binsOf(values: number[]): Bins {
  const bins: Bins = {};
  for (const value of values) addBins(bins, { [binOf(value)!]: 1 });
  return bins;
}

test('a quantile is within 1 % of the true nearest-rank quantile', () => {
  const ms = fc.double({ min: 0.01, max: 100_000, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(ms, { minLength: 1, maxLength: 200 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, q) => {
        const sorted = [...values].sort((a, b) => a - b);
        const truth = sorted[Math.max(1, Math.ceil(q * sorted.length)) - 1]!;
        const got = quantileOfBins(binsOf(values), q)!;
        expect(Math.abs(got - truth) / truth).toBeLessThan(0.0101);
      },
    ),
  );
});

test('a bin holds what lies above γ^(i-1) and up to γ^i; the ends are clamped', () => {
  expect(binOf(1)).toBe(0);
  expect(Object.is(binOf(0.999), 0)).toBe(true);
  expect(binOf(GAMMA ** 10 * 0.9999)).toBe(10);
  expect(binOf(GAMMA ** 10 * 1.0001)).toBe(11);
  expect(binOf(0)).toBe(MIN_BIN);
  expect(binOf(-3)).toBe(MIN_BIN);
  expect(binOf(1e-9)).toBe(MIN_BIN);
  expect(binOf(Number.POSITIVE_INFINITY)).toBe(MAX_BIN);
});

test('C64: nothing has no quantile, NaN has no bin, a bad q is an error and not an endless loop', () => {
  expect(quantileOfBins({}, 0.95)).toBeNull();
  expect(quantileOfBins({ 3: 0 }, 0.95)).toBeNull();
  expect(binOf(Number.NaN)).toBeUndefined();
  for (const q of [Number.NaN, 95, -0.1])
    expect(() => quantileOfBins({ 3: 1 }, q)).toThrow(/0 … 1/);
});

test('adding bins adds their counts', () => {
  const into: Bins = { 1: 2 };
  addBins(into, { 1: 3, 7: 1 });
  expect(into).toEqual({ 1: 5, 7: 1 });
});
