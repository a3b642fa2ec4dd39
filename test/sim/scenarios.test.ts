/** Scenarios as functions of time, runs as functions of their seed, copies of a plant, and the best of constant limits. */
import { describe, expect, test } from 'vitest';
import { bestConstant } from '../../src/sim/best.js';
import { compare, contest, defaultPlant } from '../../src/sim/compare.js';
import { constant } from '../../src/sim/controllers.js';
import { plantOf, runScenario } from '../../src/sim/run.js';
import { jumps, lines, loadOf } from '../../src/sim/scenario.js';
import { drawTraffic } from '../../src/sim/traffic.js';
import { policySchema, SCENARIOS } from '../../src/testing.js';
import { policyAt } from './support.js';

const policy = policySchema.parse(policyAt(20));
const scenarioOf = (name: string) => SCENARIOS.find((each) => each.name === name)!;
const optionsOf = (name: string, seed = 1) => ({
  policy,
  scenario: scenarioOf(name),
  seed,
  ...defaultPlant(policy),
});

test('jumps hold until the next, lines meet their points', () => {
  const steps = [
    [0, 1],
    [10, 4],
    [20, 2],
  ] as const;
  expect([0, 9.9, 10, 19, 20, 99].map((s) => jumps(s, steps))).toEqual([1, 1, 4, 4, 2, 2]);
  expect([-5, 0, 5, 10, 15, 20, 99].map((s) => lines(s, steps))).toEqual([1, 1, 2.5, 4, 3, 2, 2]);
});

describe.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
  '%s',
  (_, scenario) => {
    test('says what happens; phases begin at 0, are in order and within; conditions are sound', () => {
      const { says, phases, disturbances, durationS } = scenario;
      expect(says).toMatch(/^[A-Z].*\.$/);
      expect(phases[0]).toBe(0);
      const moments = [...phases, durationS];
      expect(moments).toEqual([...new Set(moments)].sort((a, b) => a - b));
      for (const moment of disturbances) expect(phases).toContain(moment);
      const load = loadOf(scenario, 100);
      const unsound = [];
      for (let s = 0; s < durationS; s += 0.5) {
        const now = load.at(1000 * s);
        const { arrivalsPerSecond, speed, replicas, databaseSpeed, failRatio } = now;
        const isSound =
          arrivalsPerSecond >= 0 &&
          Math.min(speed, replicas, databaseSpeed) > 0 &&
          failRatio >= 0 &&
          failRatio <= 1 &&
          JSON.stringify(load.at(1000 * s)) === JSON.stringify(now);
        if (!isSound) unsound.push(s);
      }
      expect(unsound).toEqual([]);
    });

    test('arrivals are in order and as many as the load says', () => {
      const load = loadOf(scenario, 50);
      const { arrivals } = drawTraffic(load, 1000 * scenario.durationS, 5);
      let expected = 0;
      for (let ms = 0; ms < 1000 * scenario.durationS; ms += 100) {
        expected += load.at(ms).arrivalsPerSecond / 10;
      }
      const count = arrivals.length - 1;
      expect(Math.abs(count - expected)).toBeLessThan(5 * Math.sqrt(expected) + 1);
      expect(arrivals.every((t, i) => i === 0 || t >= arrivals[i - 1]!)).toBe(true);
      expect(arrivals.at(-1)).toBe(Number.POSITIVE_INFINITY);
    });
  },
);

test('the same seed gives the same comparison to the last number, another seed another', () => {
  const plant = defaultPlant(policy);
  const one = compare(policy, plant, scenarioOf('burst'), 4);
  const same = compare(policy, plant, scenarioOf('burst'), 4);
  expect(JSON.stringify(same) === JSON.stringify(one)).toBe(true);
  const other = contest(policy, plant, scenarioOf('burst'), 5).run('policy');
  const offered = (seconds: typeof other.seconds) => seconds.map((second) => second.offered);
  expect(offered(other.seconds)).not.toEqual(offered(one.results.policy.seconds));
});

test('a copy of a plant goes on exactly as the plant itself, and neither disturbs the other', () => {
  const plant = plantOf(optionsOf('retry-storm'));
  plant.enforce({ rate: 18, capacity: 10, inFlightMax: 12, generation: 0 });
  // In the middle of the dip, with queues, retries and timeouts under way.
  plant.run(48_000);
  const copy = plant.fork();
  const apart = plant.fork();
  apart.enforce({ rate: 5, capacity: 1, inFlightMax: 2, generation: 0 });
  apart.run(100_000);
  copy.run(100_000);
  plant.run(100_000);
  expect(copy.seconds).toEqual(plant.seconds.slice(48));
  expect(apart.seconds).not.toEqual(copy.seconds);
});

test('the best constant limits beat any single one, and waste little', () => {
  const options = optionsOf('surge');
  const best = bestConstant(options);
  expect(best.plan.map(({ fromS }) => fromS)).toEqual(options.scenario.phases);
  const good = (seconds: typeof best.seconds) => seconds.reduce((sum, { good }) => sum + good, 0);
  for (const inFlightMax of [1, 2, 4, 8, 16]) {
    const single = runScenario(options, constant({ rate: 1e9, capacity: 1e9, inFlightMax }));
    expect(good(best.seconds)).toBeGreaterThan(0.99 * good(single));
  }
  const late = best.seconds.reduce((sum, { late, timedOut }) => sum + late + timedOut, 0);
  expect(late).toBeLessThan(0.05 * good(best.seconds));
});
