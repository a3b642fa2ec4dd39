/** The adaptive law on the default plant: near the best constant limits, whatever the size of the service. */
import { describe, test, vi } from 'vitest';
import { expectSim } from '../../src/testing.js';
import { policyAt } from './support.js';

// Much is computed; on a busy machine that takes a while.
vi.setConfig({ testTimeout: 180_000 });

describe.each([20, 800])('a policy of %i requests a second', (rate) => {
  const policy = policyAt(rate);

  test.each(['surge', 'steady', 'burst', 'day', 'scale-out'] as const)('%s', (scenario) => {
    const sim = expectSim(policy).on(scenario);
    sim.goodput.toBeAbove(0.9);
    sim.falseTrips.toBeBelow(1);
  });
});
