/** The overload index: how far the worst congestion signal lies from its setpoint. Stage: decide. */
import { countsFailures } from '../policy/kinds.js';
import type { Policy } from '../policy/schema.js';
import { goodputOverload } from './goodput.js';
import type { Sample } from './types.js';
import { beyondMix, type WaitsFor, waitsFor } from './waiting.js';

/**
 *   z = max over congestion signals of weight · ln(estimate ÷ setpoint)
 *
 * z = 0 at the setpoint, 0.69 at twice it, −0.69 at half of it. Errors are not congestion: at 30 % errors
 * throttling only loses the other 70 %, so they never enter z.
 */
export interface Overload {
  z: number;
  /** Name, value and setpoint of the worst signal; name is empty when none is known. */
  worst: string;
  value: number;
  setpoint: number;
  /** ms for which the worst has missed its objective. */
  missedMs: number;
  /** At least one congestion signal is fresh: only then may anything be raised. */
  fresh: boolean;
  /** Near or past its setpoint, but it does not count yet: while nothing else is past its own, nothing moves. */
  waiting?: { name: string; value: number; setpoint: number; for: WaitsFor };
}

/** Far under the setpoint is all the same; ln(0) must not be. */
const FLOOR = 0.05;

/**
 * Laws cut ahead of the setpoint. One that waits (for its `sustain`, for a witness) must not be cut for before, so from
 * here on to the setpoint, and beyond it until then, it holds: neither a cut nor a raise.
 */
const NEAR = Math.log(0.7);

/** The law, what is seen of its loop, a guard and the metrics ask for the same sample: the last answer is kept. */
let last: { policy: Policy; sample: Sample; overload: Overload } | undefined;

export function overloadOf(policy: Policy, sample: Sample): Overload {
  if (last?.sample === sample && last.policy === policy) return last.overload;
  const overload = overloadNow(policy, sample);
  last = { policy, sample, overload };
  return overload;
}

function overloadNow(policy: Policy, sample: Sample): Overload {
  const seen = noOverload();
  seen.z = Number.NEGATIVE_INFINITY;
  let waiting: Overload['waiting'];
  for (const name in policy.objective) {
    const objective = policy.objective[name]!;
    const signal = policy.signals[name];
    const estimate = sample.signals[name];
    if (signal === undefined || estimate === undefined) continue;
    if (countsFailures(signal)) continue;
    if (!estimate.fresh || estimate.value === null) continue;
    const setpoint = objective.below ?? objective.above;
    if (setpoint === undefined || !(setpoint > 0)) continue;
    const { value } = estimate;
    const index = indexOf(signal, objective, value, setpoint, sample);
    if (index === null) continue;
    const waits = index > NEAR ? waitsFor(policy, name, objective, sample) : null;
    if (waits !== null) {
      waiting ??= { name, value, setpoint, for: waits };
      continue;
    }
    seen.fresh = true;
    const beyond = index > NEAR ? beyondMix(policy, name, index, sample) : index;
    const z = objective.weight * beyond;
    if (!(z > seen.z)) continue;
    seen.z = z;
    seen.worst = name;
    seen.value = value;
    seen.setpoint = setpoint;
    seen.missedMs = estimate.missedMs ?? 0;
  }
  if (waiting !== undefined && !(seen.fresh && seen.z > 0)) return { ...noOverload(), waiting };
  return seen.fresh ? seen : noOverload();
}

function noOverload(): Overload {
  return { z: 0, worst: '', value: 0, setpoint: 0, missedMs: 0, fresh: false };
}

function indexOf(
  signal: Policy['signals'][string],
  objective: Policy['objective'][string],
  value: number,
  setpoint: number,
  sample: Sample,
): number | null {
  if (objective.below !== undefined) return Math.log(Math.max(value / setpoint, FLOOR));
  if (signal.stat === 'goodput') return goodputOverload(signal, value, setpoint, sample);
  return -Math.log(Math.max(value / setpoint, FLOOR));
}
