/** The signals of a limiter as `status` tells of them: the worst, and those without evidence. Pure. Stage: cli. */
import type { Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

export interface WorstSignal {
  signal: string;
  value: number;
  setpoint: number;
  /** Above 1: the objective is missed. */
  ratio: number;
  unit: 'ms' | 'ratio' | '';
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
    worst = { signal, value, setpoint, ratio, unit: unitOf(policy, signal), fresh };
  }
  return worst;
}

/** Signals of the objective that may not raise or trip now, and why. */
export function missingSignals(policy: Policy | null, sample: Sample | null) {
  return Object.keys(policy?.objective ?? {}).flatMap((signal) => {
    const estimate = sample?.signals[signal];
    return estimate && !estimate.fresh
      ? [{ signal, reason: String(estimate.reason ?? 'stale') }]
      : [];
  });
}

function unitOf(policy: Policy | null, signal: string): WorstSignal['unit'] {
  const stat = policy?.signals[signal]?.stat;
  if (stat === 'latency' || stat === 'dbWait' || stat === 'longestTransactionMs') return 'ms';
  return stat === 'errorRatio' || stat === 'connectionsRatio' ? 'ratio' : '';
}
