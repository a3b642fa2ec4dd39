/** `expectSim`: passes, and fails with the number and the row; by the built-in plant and by one that was fitted. */
import { describe, expect, test } from 'vitest';
import { PolicyError } from '../../src/errors.js';
import { definePolicy } from '../../src/index.js';
import { serviceOf } from '../../src/sim/service.js';
import { expectSim } from '../../src/testing.js';
import { policyAt } from './support.js';

const policy = policyAt(20);

test('holds what holds', () => {
  const sim = expectSim(policy).on('steady');
  sim.goodput.toBeAbove(0.95);
  sim.goodput.toBeWithin(0.95, 1);
  sim.falseTrips.toBeBelow(1);
  sim.changesPerMinute.toBeBelow(6);
  sim.overshoot.toBeWithin(0, 0);
  sim.seed(2).goodput.toBeAbove(0.95);
});

test('fails as an assertion: the policy, scenario and seed, the number, the limit and the row', () => {
  const fail = () => expectSim(policy).on('steady').seed(3).goodput.toBeAbove(1.5);
  expect(fail).toThrow(/^shop-20 on steady, seed 3: goodput is (0\.\d+|1); expected above 1\.5\./);
  expect(fail).toThrow(
    /scenario +policy +no limit +static +step rule .*\nsteady +(0\.\d{3}|1\.000) /,
  );
  try {
    fail();
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ name: 'AssertionError', code: 'ERR_ASSERTION' });
    expect(error).toMatchObject({ expected: 'above 1.5', actual: expect.any(Number) });
  }
  const sim = expectSim(policy).on('steady').seed(3);
  expect(() => sim.goodput.toBeBelow(0.1)).toThrow(/expected below 0\.1/);
  expect(() => sim.goodput.toBeWithin(0.1, 0.2)).toThrow(/expected within 0\.1 … 0\.2/);
});

test('what is not known passes for no number', () => {
  const { convergenceS } = expectSim(policy).on('steady');
  expect(() => convergenceS.toBeBelow(1e9)).toThrow(/convergenceS is not known/);
  expect(() => convergenceS.toBeAbove(-1)).toThrow(/not known/);
});

describe('who is judged', () => {
  test('a law that does nothing does worse on a surge than one that acts, and is asked as if auto', () => {
    const fixed = policyAt(20, { control: { law: 'fixed' }, mode: 'recommend' });
    expectSim(fixed).on('surge').changesPerMinute.toBeBelow(1);
    const acting = policyAt(20, { mode: 'recommend' });
    expectSim(acting).on('surge').changesPerMinute.toBeAbove(0);
  });

  test('a plant of your own', () => {
    const capacityPerSecond = 100;
    const service = serviceOf({ capacityPerSecond, leisureMs: 50 });
    const plant = { service, capacityPerSecond, isDefault: false };
    // The rate of 20 is a fifth of what this service carries, and the bounds end at 80.
    const fixed = policyAt(20, { control: { law: 'fixed' } });
    expectSim(fixed, { plant }).on('steady').goodput.toBeBelow(0.5);
  });
});

test('a policy with faults and a scenario that is none are refused by name', () => {
  expect(() => expectSim({ limiter: { name: 'x', rate: -1, capacity: 1 } })).toThrow(PolicyError);
  // @ts-expect-error names of scenarios are types
  const wrong = () => expectSim(policy).on('surges');
  expect(wrong).toThrow(/"surges" is no scenario/);
});

test('takes what definePolicy gives', () => {
  const defined = definePolicy({ limiter: { name: 'plain', rate: 20, capacity: 20 } });
  expectSim(defined).on('night').goodput.toBeAbove(0.9);
});
