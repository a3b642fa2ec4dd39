/** What `auto` stands for at a rate, and the cells of a counter that says none: alike in a policy and in a service. */
import { describe, expect, test } from 'vitest';
import { resolveTerms } from '../../src/enforce/algorithm-option.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { policySchema } from '../../src/policy/schema.js';
import { autoAlgorithm } from '../../src/redis/algorithms.js';

type Terms = { algorithm: 'auto' | 'sliding-counter'; cells?: number };

/** As the policy's own rate settles it for the fleet. */
function byPolicy({ algorithm, cells }: Terms, rate: number, windowMs: number) {
  const limiter = { name: 'api', rate, capacity: 1_000, algorithm, window: windowMs };
  const params = paramsFromPolicy(
    policySchema.parse({ limiter: { ...limiter, ...(cells && { cells }) } }),
  );
  return { algorithm: params.algorithm, windowMs: params.windowMs, cells: params.cells };
}

/** As a service's own options settle it. */
function byOptions({ algorithm, cells }: Terms, rate: number, windowMs: number) {
  return resolveTerms({ algorithm, windowMs, ...(cells && { cells }) }, rate);
}

// Above 1,000 tokens a window the entries of a log, 16 bytes each, cost more than they are worth.
test.each([
  [1, 1_000, 'sliding-log'],
  [1_000, 1_000, 'sliding-log'],
  [100, 10_000, 'sliding-log'],
  [100.1, 10_000, 'sliding-counter'],
  [1_001, 1_000, 'sliding-counter'],
  [50, 60_000, 'sliding-counter'],
  [10_000, 100, 'sliding-log'],
  [10_001, 100, 'sliding-counter'],
])('auto at %d/s over %d ms is a %s', (rate, windowMs, algorithm) => {
  expect(autoAlgorithm(rate, windowMs)).toBe(algorithm);
});

describe.each([
  ['a policy', byPolicy],
  ['a service’s options', byOptions],
])('%s', (_where, settled) => {
  const auto = { algorithm: 'auto' } as const;

  test('auto is a log up to 1,000 tokens a window, and a counter of six cells above', () => {
    const [log, counter] = [settled(auto, 1_000, 1_000), settled(auto, 1_001, 1_000)];
    expect(log).toEqual({ algorithm: 'sliding-log', windowMs: 1_000, cells: 0 });
    expect(counter).toEqual({ algorithm: 'sliding-counter', windowMs: 1_000, cells: 6 });
  });

  test('a counter has six cells unless it says how many', () => {
    const counter = { algorithm: 'sliding-counter' } as const;
    expect(settled(counter, 10, 1_000)).toMatchObject({ cells: 6 });
    expect(settled({ ...counter, cells: 12 }, 10, 1_000)).toMatchObject({ cells: 12 });
    expect(settled({ ...auto, cells: 12 }, 2_000, 1_000)).toMatchObject({ cells: 12 });
  });
});
