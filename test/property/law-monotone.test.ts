/** From one state a worse signal never gives a higher limit, for each law: and where one does not, exactly when. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createDecideState, type Decision, type Policy, turn } from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';
import { LAWS, type Numbers, plain, sampleFor, share, type Tick, tick } from './law-rig.js';

interface Pair {
  before: Numbers;
  as: Decision;
  worse: Decision;
}

/** Each tick's decision beside that of the same tick with a worse signal; what is in force follows the first. */
function pairs(policy: Policy, ticks: readonly Tick[]) {
  let state = createDecideState(policy);
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  let target: Numbers = { rate, capacity, inFlightMax };
  const met: Pair[] = [];
  for (const one of ticks) {
    const worse = turn(policy, state, sampleFor(policy, one, target, one.worse)).decision;
    const turned = turn(policy, state, sampleFor(policy, one, target));
    met.push({ before: target, as: turned.decision, worse });
    state = turned.state;
    const { decision } = turned;
    const { rate, capacity, inFlightMax } = decision.change ? decision : target;
    const within = (value: number, range: { min: number; max: number }) =>
      Math.min(range.max, Math.max(range.min, Math.round(value * one.moved)));
    target =
      one.moved === 1
        ? { rate, capacity, inFlightMax }
        : {
            ...{ rate: within(rate, { min: 20, max: 400 }), capacity },
            inFlightMax: inFlightMax && within(inFlightMax, { min: 2, max: 64 }),
          };
  }
  return met;
}

/** A run has its own level of overload, so that cuts may prove futile, and its own share of load that is answered. */
const ticks = fc
  .tuple(share(-1, 1), fc.array(tick, { minLength: 5, maxLength: 40 }))
  .map(([level, each]) => each.map((one) => ({ ...one, z: one.z + level })));

/** Whatever the seed: a signal that is well, and one that is slow for two seconds of the three that law `step` waits for. */
const WELL_OR_SLOW: Tick[] = [-0.5, -0.5, -0.5, -0.5, -0.5, -0.5, 0.5, 0.5, -0.5].map((z) => ({
  ...{ z, worse: 2, load: 2, answered: 1, under: 0.1, deniedByCap: true },
  ...{ meanMs: 100, ageMs: 300, dtMs: 1000, fresh: true, moved: 1 },
}));

/**
 * Where the worse of two samples may leave a limit higher: as docs/control.md says it. It raises no higher even there.
 * `drained`, `futile`: the laws' own words for having waited out the last cut, and for cuts that do not help.
 */
function excepted({ before, as, worse }: Pair): boolean {
  // A longer response time takes longer until the answers are of requests admitted after the last cut.
  if (as.terms.drained === 1 && worse.terms.drained === 0) return true;
  // The worse one proves that cuts do not help.
  if (as.terms.futile === 0 && worse.terms.futile === 1) return true;
  // The rate-only form cuts from the last good rate, and from the throughput of now where it must drain.
  if (as.terms.grave === 0 && worse.terms.grave === 1) return as.rate < before.rate;
  // What the sample itself teaches of the loop.
  return as.terms.loopTrust !== worse.terms.loopTrust;
}

/** What may stay: what is in force, or what both raise to (the rate-only form has drained a queue: see docs/control.md). */
function higher(before: Numbers, as: Numbers) {
  return {
    rate: Math.max(before.rate, as.rate),
    inFlightMax: Math.max(before.inFlightMax, as.inFlightMax),
  };
}

describe.each(LAWS)('%s', (name, policy) => {
  test('monotone in the overload index: a signal that is worse, all else alike, gives no higher rate and no higher cap', () => {
    let lower = 0;
    fc.assert(
      fc.property(ticks, (given) => {
        for (const pair of pairs(policy, given)) {
          const { before, as, worse } = pair;
          const said = JSON.stringify(pair);
          const kept = excepted(pair);
          // A relief that has just come lowers the aim: see `futile` in docs/control.md.
          if (kept && worse.terms.futile === 1 && worse.terms.over! < 0) continue;
          const most = kept ? higher(before, as) : as;
          expect(worse.rate, said).toBeLessThanOrEqual(most.rate);
          expect(worse.inFlightMax, said).toBeLessThanOrEqual(most.inFlightMax);
          if (worse.rate < as.rate || worse.inFlightMax < as.inFlightMax) lower += 1;
        }
      }),
      { numRuns: 80, examples: [[WELL_OR_SLOW]] },
    );
    expect(lower, name).toBeGreaterThan(0);
  });
});

test('pi: a cut takes no raise along that was pending', () => {
  const policy = policyOf({ ...plain, control: { law: 'pi', kp: 0, ki: 0.01 } });
  let target = { rate: 100, capacity: 50, inFlightMax: 10 };
  let state = createDecideState(policy);
  const seen = (value: number) => {
    const sample = sampleOf({
      signals: { p95: { value, fresh: true, ageMs: 300, count: 400 } },
      traffic: { deniedByCap: 20 },
      inForce: { target },
    });
    const turned = turn(policy, state, sample);
    const { rate, capacity, inFlightMax } = turned.decision;
    state = turned.state;
    target = { rate, capacity, inFlightMax };
    return inFlightMax;
  };
  // Each adds a hundredth, and a cap moves by whole places: more than half of one is pending.
  for (let i = 0; i < 6; i++) expect(seen(90)).toBe(10);
  expect(state.memory.law.cap).toBeGreaterThan(10.5);
  expect(seen(251)).toBe(10);
  expect(state.memory.law.cap).toBeLessThan(10.5);
});

describe('a signal that has to last (`sustain`)', () => {
  const policy = policyOf({ ...plain, objective: { p95: { below: '250ms', sustain: '3s' } } });
  const at = (value: number, missedMs: number) => {
    const p95 = { value, fresh: true, ageMs: 300, count: 400, missedMs };
    const sample = sampleOf({ signals: { p95 }, traffic: { deniedByCap: 20, inFlight: 23 } });
    return turn(policy, createDecideState(policy), sample).decision.inFlightMax;
  };

  test('holds while it has been missed for too short a time, however far; then as any other', () => {
    expect(at(100, 0)).toBeGreaterThan(24);
    for (const value of [200, 260, 600, 5000]) expect(at(value, 1000)).toBe(24);
    const lasting = [100, 200, 260, 600, 5000].map((value) => at(value, 3000));
    expect(lasting).toEqual(lasting.toSorted((a, b) => b - a));
    expect(lasting.at(-1)).toBeLessThan(24);
  });
});
