/** Bounds, capacity, reserves and safe values that cannot hold together are faults of the policy. */
import { expect, test } from 'vitest';
import { faultsOf, LIMITER, only } from '../support/policy-faults.js';

test('bounds hold the policy’s own numbers, and auto needs them', () => {
  const auto = { limiter: { ...LIMITER, inFlightMax: 8 }, mode: 'auto' };
  expect(faultsOf(auto)).toEqual([
    expect.stringMatching(/^bounds\.rate is missing: mode 'auto'/),
    expect.stringMatching(/^bounds\.inFlight is missing: mode 'auto'/),
  ]);
  const rate = { min: 20, max: 400 };
  expect(only({ ...auto, bounds: { rate } })).toMatch(/^bounds\.inFlight is missing/);
  expect(faultsOf({ ...auto, bounds: { rate, inFlight: { min: 2, max: 64 } } })).toEqual([]);
  // A part that is faulty itself is not called missing too.
  expect(only({ ...auto, bounds: { rate: 5, inFlight: { min: 2, max: 64 } } })).toBe(
    'bounds.rate is 5, not an object in braces.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate: { min: 500, max: 600 } } })).toBe(
    'bounds.rate.min is 500 but limiter.rate is 100. Raise rate or lower min.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate: { min: 1, max: 50 } } })).toBe(
    'bounds.rate.max is 50 but limiter.rate is 100. Lower rate or raise max.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate, inFlight: { min: 1, max: 2 } } })).toBe(
    'bounds.inFlight bounds a cap that is not there. Give limiter.inFlightMax.',
  );
});

test('C87: the lowest capacity must hold the largest cost', () => {
  expect(only({ limiter: { ...LIMITER, maxCost: 500 } })).toMatch(
    /^limiter\.capacity is 200, below limiter\.maxCost 500: .*Raise it to at least 500\.$/,
  );
  const limiter = { ...LIMITER, maxCost: 50 };
  const bounds = { rate: { min: 1, max: 400 }, capacity: { min: 10, max: 400 } };
  expect(only({ limiter, bounds })).toMatch(
    /^bounds\.capacity\.min is 10, below limiter\.maxCost 50/,
  );
  const perSubject = { subject: 'user:{userId}', rate: 1, capacity: 5 };
  expect(only({ limiter: { ...limiter, perSubject } })).toMatch(
    /^limiter\.perSubject\.capacity is 5/,
  );
});

test('what cannot be given back cannot be counted by its end', () => {
  const paced = { ...LIMITER, algorithm: 'leaky-bucket' };
  expect(only({ limiter: { ...paced, count: 'failures' } })).toMatch(
    /^limiter\.count is 'failures', but a leaky bucket gives nothing back/,
  );
});

test('a reserve leaves room for one take, and what is shed first leaves more', () => {
  expect(only({ limiter: { ...LIMITER, reserve: { default: 0.5, sheddable: 0.2 } } })).toMatch(
    /^limiter\.reserve\.sheddable is 0\.2, below reserve\.default 0\.5/,
  );
  expect(only({ limiter: { ...LIMITER, capacity: 2, reserve: { sheddable: '80%' } } })).toMatch(
    /^limiter\.reserve\.sheddable is 0\.8: of a capacity of 2/,
  );
});

test('the values of a lost autopilot lie within the bounds', () => {
  const policy = { limiter: LIMITER, bounds: { rate: { min: 20, max: 400 } } };
  expect(only({ ...policy, whenLost: { rate: 5 } })).toMatch(
    /^whenLost\.rate is 5, outside bounds\.rate/,
  );
  expect(only({ ...policy, whenLost: { inFlight: 5 } })).toMatch(
    /^whenLost\.inFlight .*limiter\.inFlightMax/,
  );
});
