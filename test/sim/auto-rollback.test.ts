/** Automatic rollback in the closed loop: a service that fails fast under too much is helped, all others are left as they were. Stage: tests. */
import { describe, expect, test } from 'vitest';
import { defaultPlant } from '../../src/sim/compare.js';
import { byPolicy } from '../../src/sim/controllers.js';
import { runScenario } from '../../src/sim/run.js';
import type { Scenario } from '../../src/sim/scenario.js';
import { serviceOf } from '../../src/sim/service.js';
import { type PolicyInput, policySchema, SCENARIOS } from '../../src/testing.js';
import { policyAt } from './support.js';

/** Good answers of a run, and how often it went back. */
function run(
  input: PolicyInput,
  autoRollback: boolean,
  of: { scenario: Scenario; seed: number; service?: ReturnType<typeof serviceOf> },
) {
  const policy = policySchema.parse({ ...input, guards: { autoRollback } });
  const plant = of.service ? { service: of.service, capacityPerSecond: 120 } : defaultPlant(policy);
  let back = 0;
  const controller = byPolicy(policy, ({ decision }) => {
    if (decision.reason === 'auto_rollback') back += 1;
  });
  const seconds = runScenario({ policy, ...plant, ...of }, controller);
  return { good: seconds.reduce((sum, second) => sum + second.good, 0), back };
}

/** More than three times of what it carries is asked for; what does not find a place fails at once, so that no response time tells. */
const greedy: Scenario = {
  ...{ name: 'greedy', says: 'Too much is asked for.', durationS: 400, phases: [0] },
  ...{ disturbances: [], at: () => ({ load: 3.5 }) },
};
const failsFast = { ...serviceOf({ capacityPerSecond: 120, leisureMs: 50 }), queueMax: 4 };

describe('a service that fails fast under too much: good answers, with it and without', () => {
  test.each(['adaptive', 'aimd', 'pi'] as const)('law %s', (law) => {
    const input = policyAt(100, {
      control: { law },
      objective: { p95: { below: '2s' } },
      breaker: undefined,
    });
    const of = { scenario: greedy, seed: 1, service: failsFast };
    const without = run(input, false, of);
    const within = run(input, true, of);
    expect(without.back).toBe(0);
    expect(within.good).toBeGreaterThan(1.2 * without.good);
    // At first after a minute, then after twice as long each time: it does not flap.
    expect(within.back).toBeGreaterThanOrEqual(1);
    expect(within.back).toBeLessThanOrEqual(4);
  });
});

describe('a service that stops for some seconds each minute, after raises: as without it', () => {
  test.each([
    ['adaptive', 2, 4],
    ['adaptive', 0.9, 12],
    ['aimd', 0.9, 4],
    ['aimd', 0.9, 8],
  ] as const)('law %s, load %d, %d s', (law, load, pauseS) => {
    const at = (s: number) => ({
      load,
      speed: s > 20 && s % 60 >= 30 && s % 60 < 30 + pauseS ? 0.001 : 1,
    });
    const says = 'It stops now and then.';
    const durationS = 300;
    const scenario = { name: 'pauses', says, durationS, phases: [0], disturbances: [], at };
    const input = policyAt(40, { control: { law }, breaker: undefined });
    const of = { scenario, seed: 1 };
    expect(run(input, true, of)).toEqual({ ...run(input, false, of), back: 0 });
  });
});

/** Without a cap the rate alone moves: the form in which goodput follows the limits the most. */
const rateOnly = (input: PolicyInput): PolicyInput => {
  const { inFlightMax: _, ...limiter } = input.limiter;
  return { ...input, limiter, bounds: { rate: input.bounds!.rate } };
};

describe('every other scenario ends as without it, to the last answer', () => {
  test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    '%s',
    (_, scenario) => {
      for (const input of [policyAt(20), rateOnly(policyAt(20, { control: { law: 'aimd' } }))]) {
        const of = { scenario, seed: 3 };
        expect(run(input, true, of)).toEqual({ ...run(input, false, of), back: 0 });
      }
    },
  );
});
