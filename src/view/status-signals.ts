/** The signals of a limiter as `status` tells of them: the worst, and those without evidence. Pure. Stage: cli, api. */
import type { Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { type SignalUnit, unitOf } from './signal-unit.js';

export interface WorstSignal {
  signal: string;
  value: number;
  setpoint: number;
  /** Above 1: the objective is missed. */
  ratio: number;
  unit: SignalUnit;
  fresh: boolean;
}

/** The signal furthest beyond its setpoint, by the last sample the daemon wrote. */
export function worstSignal(policy: Policy | null, sample: Sample | null): WorstSignal | null {
  let worst: WorstSignal | null = null;
  for (const [signal, goal] of Object.entries(policy?.objective ?? {})) {
    const estimate = sample?.signals[signal];
    const setpoint = goal.below ?? goal.above;
    if (estimate?.value == null || setpoint === undefined || setpoint <= 0) continue;
    const { value, fresh } = estimate;
    const ratio = goal.below !== undefined ? value / setpoint : setpoint / Math.max(value, 1e-9);
    if (worst !== null && worst.ratio >= ratio) continue;
    const of = policy?.signals[signal];
    worst = { signal, value, setpoint, ratio, unit: of === undefined ? '' : unitOf(of), fresh };
  }
  return worst;
}

/** Signals of the objective that may not raise or trip now, and why. */
export function missingSignals(policy: Policy | null, sample: Sample | null) {
  return Object.keys(policy?.objective ?? {}).flatMap((signal) => {
    const estimate = sample?.signals[signal];
    // Known and sound, but nothing new since the last tick: no lack of evidence.
    const waits = estimate?.reason === undefined && estimate?.value != null;
    return estimate && !estimate.fresh && !waits
      ? [{ signal, reason: String(estimate.reason ?? 'stale') }]
      : [];
  });
}
