/** Random ticks for laws: what comes of one as shares of what is in force, each law's policy, and the sample of both. Stage: test. */
import fc from 'fast-check';
import type { Policy, Sample } from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

/** What comes of one tick, as shares of what is in force, so that any state is met with any evidence. */
export interface Tick {
  /** Signal ÷ setpoint, and how much worse the other sample has it. */
  z: number;
  worse: number;
  load: number;
  answered: number;
  under: number;
  deniedByCap: boolean;
  meanMs: number;
  ageMs: number;
  dtMs: number;
  fresh: boolean;
  /** What a person, a rollback or a policy puts in force after it, as a share; 1: nothing. */
  moved: number;
}

export const share = (min: number, max: number) =>
  fc.integer({ min: 1000 * min, max: 1000 * max }).map((thousandths) => thousandths / 1000);
/** The worse reading is often only a little worse: that is where thresholds are passed. */
export const tick: fc.Arbitrary<Tick> = fc.record({
  z: share(-0.6, 0.6),
  worse: fc.oneof(share(0, 0.05), share(0, 2)),
  load: share(0.2, 3),
  answered: share(0.3, 1.4),
  under: share(0, 1.3),
  deniedByCap: fc.boolean(),
  meanMs: share(20, 400),
  ageMs: fc.constantFrom(100, 300, 300, 4000),
  dtMs: fc.constantFrom(1000, 1000, 1000, 5000, 20_000),
  fresh: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, fc.constant(false)),
  moved: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, share(0.3, 3)),
});

const signals = { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } } as const;
const mean = { mean: { source: 'telemetry', stat: 'latency', of: 'mean' } } as const;
export const plain = { breaker: undefined, signals };
const gateway = {
  limiter: { name: 'gateway', rate: 100, capacity: 50, completions: 'none' as const },
  bounds: { rate: { min: 20, max: 400 } },
};
const rule = { law: 'step', slowAboveMs: 250, slowFor: '3s', healthyFor: '5s' } as const;
export const LAWS: [string, Policy][] = [
  ['adaptive', policyOf(plain)],
  ['adaptive, the rate alone', policyOf({ ...plain, ...gateway })],
  ['step', policyOf({ breaker: undefined, signals: mean, objective: {}, control: rule })],
  ['aimd', policyOf({ ...plain, control: { law: 'aimd' } })],
  ['pi', policyOf({ ...plain, control: { law: 'pi' } })],
];

export interface Numbers {
  rate: number;
  capacity: number;
  inFlightMax: number;
}

export function sampleFor(policy: Policy, one: Tick, target: Numbers, worse = 0): Sample {
  const name = Object.keys(policy.signals)[0]!;
  const value = 250 * Math.exp(one.z + worse);
  const offeredRate = one.load * target.rate;
  const admittedRate = Math.min(offeredRate, target.rate);
  const okRate = one.answered * admittedRate;
  const inFlight = target.inFlightMax > 0 ? one.under * target.inFlightMax : one.under * okRate;
  return sampleOf({
    dtMs: one.dtMs,
    signals: { [name]: { value, fresh: one.fresh, ageMs: one.ageMs, count: 400 } },
    traffic: {
      ...{ fresh: one.fresh, ageMs: one.ageMs, offeredRate, admittedRate, okRate },
      ...{ answerRate: okRate, answers: Math.round(okRate), meanMs: one.meanMs },
      ...{ inFlight, inFlightNow: Math.round(inFlight) },
      deniedByRate: offeredRate - admittedRate,
      deniedByCap: one.deniedByCap ? 20 : 0,
    },
    inForce: { target },
  });
}
