/** What may trip a breaker: its own level, and those after `or`, each read by what its signal counts. Stage: estimate, decide. */
import type { Policy, Signal } from '../policy/schema.js';

/**
 * - `ratio`: a share of the answers, proven by how many they are.
 * - `count`: failures within a time.
 * - `run`: failures without a good answer among them.
 * - `level`: any other number, which must stay above for a time: database waits.
 */
export type TripKind = 'ratio' | 'count' | 'run' | 'level';

export interface Trip {
  on: string;
  /** Undefined: not in the policy any more; then all failures count, as a ratio. */
  signal: Signal | undefined;
  kind: TripKind;
  above: number;
  /** Of a ratio or a count: how far back it looks; of a level: how long it must stay above; of a run: 0. */
  perMs: number;
  minAnswers: number;
}

/** Time that a trip stands for when the policy says none. */
const PER_MS: Record<TripKind, number> = { ratio: 2_000, count: 60_000, run: 0, level: 30_000 };
const MIN_ANSWERS = 10;

export function tripKind(signal: Signal | undefined): TripKind {
  switch (signal?.source === 'telemetry' || signal === undefined ? signal?.stat : 'level') {
    case undefined:
    case 'errorRatio':
    case 'timeoutRatio':
    case 'slowRatio':
      return 'ratio';
    case 'errors':
      return 'count';
    case 'failuresInARow':
      return 'run';
    default:
      return 'level';
  }
}

/** A policy lives for hours, and is asked each tick. */
const known = new WeakMap<Policy, readonly Trip[]>();

/** All of them, the breaker's own first; none without a breaker. */
export function tripsOf(policy: Policy): readonly Trip[] {
  const found = known.get(policy);
  if (found !== undefined) return found;
  const { breaker } = policy;
  const written = breaker === undefined ? [] : [breaker, ...(breaker.or ?? [])];
  const trips = written.map(({ on, above, per, minAnswers = MIN_ANSWERS }): Trip => {
    const signal = policy.signals[on];
    const kind = tripKind(signal);
    const perMs = kind === 'run' ? 0 : (per ?? PER_MS[kind]);
    return { on, signal, kind, above, perMs, minAnswers };
  });
  known.set(policy, trips);
  return trips;
}

/** Deviations that lie between what was seen and what is taken for proven: 3, so that a second in 700 errs. */
const DEVIATIONS = 3;

/**
 * The least share of failures that `bad` of `answers` prove: Wilson's lower bound (E. B. Wilson 1927), which is sound
 * for few answers and near 0 and 1 alike. 10 of 10 prove 53 %, 50 of 50 prove 85 %, 1 of 1 proves 10 %.
 */
export function provenShare(bad: number, answers: number): number {
  if (!(answers > 0) || !(bad > 0)) return 0;
  const share = Math.min(1, bad / answers);
  const z2 = DEVIATIONS * DEVIATIONS;
  const middle = share + z2 / (2 * answers);
  const spread = Math.sqrt((share * (1 - share)) / answers + z2 / (4 * answers * answers));
  return Math.max(0, (middle - DEVIATIONS * spread) / (1 + z2 / answers));
}
