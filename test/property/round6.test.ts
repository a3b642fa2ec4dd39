import fc from 'fast-check';
import { expect, test } from 'vitest';
import { round6 } from '../../src/estimate/finite.js';

const usual = fc.tuple(
  fc.double({ min: 1, max: 10, noNaN: true }),
  fc.integer({ min: -20, max: 20 }),
);
const number = fc.oneof(
  usual.map(([digits, exponent]) => digits * 10 ** exponent),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.integer(),
);

test('six digits and no more, as its text would say but for a half in the last place', () => {
  fc.assert(
    fc.property(number, fc.boolean(), (size, negative) => {
      const value = negative ? -size : size;
      const rounded = round6(value);
      expect(Number(rounded.toPrecision(6))).toBe(rounded);
      const told = Number(value.toPrecision(6));
      const last = 10 ** (Math.floor(Math.log10(Math.abs(value) || 1)) - 5);
      expect(Math.abs(rounded - told)).toBeLessThanOrEqual(last * 1.001);
      expect(Math.abs(rounded - value)).toBeLessThanOrEqual(last * 0.501);
    }),
    { numRuns: 2000 },
  );
  for (const exact of [0, 1, 999999, 1000, 123456, 0.1, 1e6, 1e-6, 0.000123457]) {
    expect(round6(exact)).toBe(exact);
  }
  expect([round6(1234567), round6(0.1 + 0.2), round6(999999.5)]).toEqual([1234570, 0.3, 1e6]);
  expect([Number.NaN, Number.POSITIVE_INFINITY].map(round6)).toEqual([
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ]);
});
