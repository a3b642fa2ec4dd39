/** Which signals that a policy decides by are missing, and what each of them does meanwhile. Stage: decide, guard. */
import type { Policy, Signal } from '../policy/schema.js';
import type { Sample, SignalEstimate } from './types.js';

export type OnMissing = Policy['onMissing'];

export interface MissingSignal {
  name: string;
  onMissing: OnMissing;
}

export interface MissingSignals {
  missing: MissingSignal[];
  /** Signals are wanted, and none of them is known. */
  all: boolean;
}

let last: { policy: Policy; sample: Sample; found: MissingSignals } | undefined;

/**
 * Those of the objective, and those that the step law reads. No traffic and few answers are no fault of a signal: they
 * are no evidence either, so that nothing moves for their sake.
 */
export function missingSignals(policy: Policy, sample: Sample): MissingSignals {
  if (last?.sample === sample && last.policy === policy) return last.found;
  const missing: MissingSignal[] = [];
  let wanted = 0;
  for (const name in policy.signals) {
    const objective = policy.objective[name];
    if (objective === undefined && !readByStep(policy, policy.signals[name]!)) continue;
    const estimate = sample.signals[name];
    if (estimate === undefined) continue;
    wanted += 1;
    if (isMissing(estimate)) {
      missing.push({ name, onMissing: objective?.onMissing ?? policy.onMissing });
    }
  }
  const found = { missing, all: wanted > 0 && missing.length === wanted };
  last = { policy, sample, found };
  return found;
}

function isMissing({ value, reason }: SignalEstimate): boolean {
  if (reason === 'no_traffic' || reason === 'thin') return false;
  return value === null || reason !== undefined;
}

/** Its thresholds lie in `control`, so that it needs no objective. */
function readByStep({ control }: Policy, signal: Signal): boolean {
  if (control.law !== 'step') return false;
  if (signal.stat === 'latency') return signal.of === 'mean';
  const waits = signal.stat === 'waiting' || signal.stat === 'poolWaiting';
  return waits && control.dbWaitsAbove !== undefined;
}
