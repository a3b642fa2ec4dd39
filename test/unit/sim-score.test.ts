/** What a simulated run was worth, against traces made by hand: each figure worked out on paper. */
import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/sim/controllers.js';
import { emptySecond, type Second } from '../../src/sim/counts.js';
import type { Scenario } from '../../src/sim/scenario.js';
import { quantileIn, scoreRun } from '../../src/sim/score.js';
import { binsOf, policyOf } from '../sim/fixtures.js';

/** p95 below 250 ms. */
const policy = policyOf();
const CARRIES = 100;

const scenarioOf = (parts: Partial<Scenario> = {}): Scenario => ({
  ...{ name: 'made', says: 'By hand.', durationS: 60, phases: [0], disturbances: [] },
  at: () => ({ load: 0.5 }),
  ...parts,
});

/** A trace of so many seconds. */
const trace = (of: (s: number) => Partial<Second>, seconds = 60): Second[] =>
  Array.from({ length: seconds }, (_, s) => ({ ...emptySecond(), ...of(s) }));

const change = (atMs: number, reason: string) =>
  ({ atMs, decision: { reason } }) as unknown as Change;

const even = trace(() => ({ good: 10 }));

function scored(
  seconds: Second[],
  parts: Partial<Scenario> = {},
  { best = even, changes = [] as Change[] } = {},
) {
  return scoreRun(policy, scenarioOf(parts), seconds, best, changes, CARRIES);
}

describe('goodput', () => {
  test('phase by phase against the best, each at most 1, by duration', () => {
    // 10 s at 12 of 10, then 50 s at 5 of 10.
    const run = trace((s) => ({ good: s < 10 ? 12 : 5 }));
    const { goodput, phases, goodPerSecond } = scored(run, { phases: [0, 10] });
    expect(phases).toEqual([1.2, 0.5]);
    expect(goodput).toBeCloseTo((10 * 1 + 50 * 0.5) / 60, 12);
    expect(goodPerSecond).toBeCloseTo((120 + 250) / 60, 12);
  });

  test('a phase in which nobody can do anything counts for nothing', () => {
    const best = trace((s) => ({ good: s < 30 ? 0 : 10 }));
    const { goodput, phases } = scored(even, { phases: [0, 30] }, { best });
    expect(phases).toEqual([null, 1]);
    expect(goodput).toBe(1);
  });

  test('wasted: late answers and those that nobody waited for, of all admitted', () => {
    const run = trace((s) => ({ admitted: 10, late: s < 30 ? 1 : 0, timedOut: s < 15 ? 2 : 0 }));
    expect(scored(run).wasted).toBeCloseTo((30 + 30) / 600, 12);
    expect(scored(trace(() => ({}))).wasted).toBe(0);
  });
});

describe('convergence', () => {
  // Nothing from 10 to 25, nine tenths of the best afterwards: ten such seconds begin at 25.
  const fell = trace((s) => ({ good: s < 10 ? 10 : s < 25 ? 0 : 9 }));

  test('from the disturbance to the first ten seconds at nine tenths of the best', () => {
    const at10 = { phases: [0, 10], disturbances: [10] };
    expect(scored(fell, at10).convergenceS).toBe(15);
    expect(scored(even, at10).convergenceS).toBe(0);
    expect(
      scored(
        trace(() => ({ good: 8.9 })),
        at10,
      ).convergenceS,
    ).toBe(50);
  });

  test('the worst of several, each only up to the next phase', () => {
    const twice = { phases: [0, 10, 20], disturbances: [10, 20] };
    // From 10 it never gets there within its ten seconds; from 20 it takes five.
    expect(scored(fell, twice).convergenceS).toBe(10);
    expect(scored(fell, { phases: [0, 20], disturbances: [20] }).convergenceS).toBe(5);
  });

  test('where nothing is disturbed there is none', () => {
    expect(scored(fell).convergenceS).toBeNull();
  });
});

describe('overshoot', () => {
  test('the most of five seconds beyond what the service carries, while more is asked for', () => {
    const at = (s: number) => ({ load: s >= 20 && s < 40 ? 2 : 0.5 });
    const run = trace((s) => ({ admitted: s < 5 ? 400 : s >= 20 && s < 25 ? 150 : 100 }));
    // The 400 a second at the beginning were no more than was asked for.
    expect(scored(run, { at }).overshoot).toBeCloseTo(0.5, 12);
    expect(
      scored(
        trace(() => ({ admitted: 90 })),
        { at },
      ).overshoot,
    ).toBe(0);
  });

  test('of what it carries now: half the replicas, or a database at a quarter', () => {
    const run = trace(() => ({ admitted: 75 }));
    expect(scored(run, { at: () => ({ load: 0.6, replicas: 0.5 }) }).overshoot).toBeCloseTo(0.5);
    const slow = { load: 0.6, databaseSpeed: 0.25, speed: 0.8 };
    expect(scored(run, { at: () => slow }).overshoot).toBeCloseTo(2);
  });
});

describe('seconds of a missed objective', () => {
  const slow = (share: number) => ({
    latency: binsOf([...Array(100 - share).fill(100), ...Array(share).fill(400)]),
  });

  test('five for each five of which the quantile lies above it', () => {
    // Six in a hundred are more than a p95 forgives, four are not.
    expect(scored(trace((s) => (s >= 20 && s < 30 ? slow(6) : slow(4)))).sloMissedS).toBe(10);
    expect(scored(trace(() => slow(4))).sloMissedS).toBe(0);
    expect(scored(trace(() => ({}))).sloMissedS).toBe(0);
  });

  test('all five are pooled: one bad second of a few answers does not miss it', () => {
    const run = trace((s) => (s === 22 ? { latency: binsOf([400, 400]) } : slow(0)));
    expect(scored(run).sloMissedS).toBe(0);
  });

  test('without an objective for response time none is missed', () => {
    const none = policyOf({ objective: {} });
    const run = trace(() => slow(50));
    expect(scoreRun(none, scenarioOf(), run, even, [], CARRIES).sloMissedS).toBe(0);
    expect(quantileIn(policy)).toBe(0.95);
    expect(quantileIn(none)).toBe(0.5);
  });
});

describe('changes and trips', () => {
  test('changes a minute, over the whole of the scenario', () => {
    const changes = [1, 2, 3, 4].map((s) => change(1000 * s, 'law_cut'));
    expect(scored(even, {}, { changes }).changesPerMinute).toBe(4);
    expect(scored(even, { durationS: 120 }, { changes }).changesPerMinute).toBe(2);
    expect(scored(even).changesPerMinute).toBe(0);
  });

  test('a trip is false while the upstream is well: from ten seconds after an outage on, and before it', () => {
    const outages = [[30, 40]] as const;
    const tripsAt = (...seconds: number[]) => {
      const changes = seconds.map((s) => change(1000 * s, 'breaker_trip'));
      return scored(even, { outages }, { changes }).falseTrips;
    };
    expect(tripsAt(30, 35, 40, 50)).toBe(0);
    expect(tripsAt(29.9)).toBe(1);
    expect(tripsAt(50.1, 59)).toBe(2);
    const probe = [change(5000, 'breaker_probe_failed'), change(6000, 'law_cut')];
    expect(scored(even, {}, { changes: probe }).falseTrips).toBe(0);
  });
});
