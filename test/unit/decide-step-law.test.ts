/** Law `step`: the rule of thumb to the letter. */
import { describe, expect, test } from 'vitest';
import { createDecideState, type Decision, type Policy, turn } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const rule = policyOf({
  objective: {},
  control: { law: 'step' },
  bounds: { rate: { min: 20, max: 400 } },
  guards: { deadBand: 0 },
});

/** Runs seconds of samples; what a decision changes is in force at the next. */
function run(policy: Policy, seconds: number, parts: (second: number) => SampleParts) {
  let state = createDecideState(policy);
  let rate = 100;
  const changes: { second: number; decision: Decision }[] = [];
  for (let second = 1; second <= seconds; second++) {
    const target = { rate, capacity: 50, inFlightMax: 24 };
    const turned = turn(policy, state, sampleOf({ ...parts(second), inForce: { target } }));
    state = turned.state;
    if (!turned.decision.change) continue;
    rate = turned.decision.rate;
    changes.push({ second, decision: turned.decision });
  }
  return { rate, changes, at: changes.map(({ second, decision }) => [second, decision.rate]) };
}

const slow = { traffic: { meanMs: 612 } };
const healthy = { traffic: { meanMs: 100, okRate: 100, answers: 100 } };
const erring = { traffic: { meanMs: 100, okRate: 99, answers: 100 } };

describe('down', () => {
  test('above 500 ms for 30 s: × 0.8, and each further 30 s again: 100 → 80 → 64', () => {
    expect(run(rule, 75, () => slow).at).toEqual([
      [30, 80],
      [60, 64],
    ]);
  });

  test('29 s slow and one fast: nothing; exactly 500 ms is not above', () => {
    expect(run(rule, 90, (s) => (s % 30 === 0 ? healthy : slow)).at).toEqual([]);
    expect(run(rule, 90, () => ({ traffic: { meanMs: 500 } })).at).toEqual([]);
  });

  test('only fresh data counts: 30 s of which 10 are stale fire 10 s later', () => {
    const parts = (s: number): SampleParts =>
      s > 10 && s <= 20 ? { traffic: { ...slow.traffic, fresh: false } } : slow;
    expect(run(rule, 41, parts).at).toEqual([[40, 80]]);
  });

  test('the sentence has the numbers', () => {
    const { decision } = run(rule, 30, () => slow).changes[0]!;
    expect(decision.sentence).toBe(
      'average response time 612 ms above 500 ms for 30 s; rate ceiling 100 → 80/s.',
    );
    expect(decision.reason).toBe('step_slow');
  });
});

describe('up', () => {
  test('error rate below 0.1 % for 5 min: × 1.1, then another full 5 min', () => {
    expect(run(rule, 610, () => healthy).at).toEqual([
      [300, 110],
      [600, 121],
    ]);
  });

  test('1 % of errors never raises; one error in six thousand does not hinder', () => {
    expect(run(rule, 610, () => erring).at).toEqual([]);
    const rare = (s: number) => (s === 30 ? erring : healthy);
    expect(run(rule, 310, rare).at).toEqual([[300, 110]]);
  });

  test('minutes with too few answers do not count toward a raise', () => {
    const thin = { traffic: { meanMs: 100, okRate: 0.1, answers: 0.1 } };
    expect(run(rule, 900, () => thin).at).toEqual([]);
    const night = (s: number) => (s > 60 && s <= 180 ? thin : healthy);
    expect(run(rule, 430, night).at).toEqual([[420, 110]]);
  });

  test('down beats up, and sets the way up to zero', () => {
    const late = (s: number) => (s > 270 && s <= 300 ? slow : healthy);
    const { at } = run(rule, 610, late);
    expect(at).toEqual([
      [300, 80],
      [600, 88],
    ]);
  });

  test('stays within the bounds', () => {
    expect(run(rule, 3600, () => healthy).rate).toBeLessThanOrEqual(400);
    expect(run(rule, 3600, () => slow).rate).toBe(20);
  });
});

describe('database waits', () => {
  const waiting = policyOf({
    signals: { waits: { source: 'postgres', stat: 'waiting', url: 'postgres://db' } },
    objective: {},
    control: { law: 'step', dbWaitsAbove: 5 },
    bounds: { rate: { min: 20, max: 400 } },
    breaker: undefined,
    guards: { deadBand: 0 },
  });
  const waits = (value: number, fresh = true): SampleParts => ({
    ...healthy,
    signals: { waits: { value, fresh, ageMs: 100, count: 1 } },
  });

  test('above n for 30 s: × 0.8, and no raise meanwhile', () => {
    expect(run(waiting, 65, () => waits(6)).at).toEqual([
      [30, 80],
      [60, 64],
    ]);
    const often = (s: number) => waits(s % 20 === 0 ? 6 : 0);
    expect(run(waiting, 700, often).at).toEqual([]);
  });

  test('waits that are not fresh neither cut nor clear', () => {
    expect(run(waiting, 90, () => waits(6, false)).at).toEqual([]);
  });
});
