/** What is learnt of a loop on a simulated service when every change is the law's own: nothing wrong, and nothing that costs. */
import { describe, expect, test } from 'vitest';
import { defaultPlant } from '../../src/sim/compare.js';
import { byPolicy } from '../../src/sim/controllers.js';
import type { Second } from '../../src/sim/counts.js';
import { runScenario } from '../../src/sim/run.js';
import type { Scenario } from '../../src/sim/scenario.js';
import { policySchema, SCENARIOS } from '../../src/testing.js';
import { policyAt } from './support.js';

/** Twenty minutes of load that swings about the knee: whatever the law does, the load has done something, too. */
const swing: Scenario = {
  ...{ name: 'swing', says: 'Load swings about the knee.', durationS: 1200, phases: [0] },
  disturbances: [],
  at: (s) => ({ load: 1.3 + 0.5 * Math.sin(s / 60) }),
};
const halved = SCENARIOS.find(({ name }) => name === 'half-the-replicas')!;

/** The good answers of a run, and the terms of its changes. `learns` false: as the same law without its loop. */
function run(rate: number, scenario: Scenario, learns: boolean) {
  const policy = policySchema.parse(
    // The guard judges in mode auto alone, as the loop does: without it the two runs differ by the loop.
    policyAt(rate, { guards: { autoRollback: false } }),
  );
  const terms: Record<string, number>[] = [];
  const controller = byPolicy(
    policy,
    ({ decision }) => void (decision.cause === 'law' && terms.push(decision.terms)),
    learns ? 'auto' : 'recommend',
  );
  const options = { policy, scenario, seed: 1, ...defaultPlant(policy) };
  const good = (sum: number, second: Second) => sum + second.good;
  return { good: runScenario(options, controller).reduce(good, 0), terms };
}

describe.each([
  ['a service of 20/s', 20, swing],
  ['a service of 100/s', 100, swing],
  ['half of a service gone', 100, halved],
] as const)('%s', (_name, rate, scenario) => {
  test('dead time, gain and what follows stay near what the service does, and cost no good answers', () => {
    const { terms, good } = run(rate, scenario, true);
    const learnt = terms.filter(({ loopTrust }) => loopTrust! > 0);
    expect(learnt.length).toBeGreaterThan(5);
    for (const each of learnt) {
      const said = JSON.stringify(each);
      // Samples of a second, answers of half a second at most, a quantile of the last 400: never ten seconds.
      expect(each.loopDeadMs, said).toBeGreaterThan(500);
      expect(each.loopDeadMs, said).toBeLessThan(10_000);
      // A service past its knee: twice the requests under way take about twice as long.
      expect(each.loopGain, said).toBeGreaterThan(0.3);
      expect(each.loopGain, said).toBeLessThan(2);
      for (const factor of [each.loopCut, each.loopRaise, each.loopHeadroom]) {
        expect(factor, said).toBeGreaterThan(0.7);
        expect(factor, said).toBeLessThan(1.5);
      }
    }
    for (const { loopTrust, loopCut, loopRaise, loopHeadroom } of terms) {
      if (loopTrust === 0) expect([loopCut, loopRaise, loopHeadroom]).toEqual([1, 1, 1]);
    }
    expect(good).toBeGreaterThan(0.98 * run(rate, scenario, false).good);
  });
});
