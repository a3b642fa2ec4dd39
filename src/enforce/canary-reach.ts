/** Whom a canary decides for: a stable part of the subjects, another for each version that is tried. Stage: enforce. */
import { isTried, parseCanary } from '../redis/canary.js';
import { compileRollout } from './rollout.js';

export interface CanaryReach {
  /** The limiter that decides for them. */
  readonly limiter: string;
  readonly percent: number;
  /** Redis ms: from then on the limiter itself decides for all, whoever lives. */
  readonly until: number;
  reaches(subject: string | null): boolean;
}

/** As a rollout of so many percent of a limiter by the name `<limiter>/<first 12 of the hash>`. Undefined: none. */
export function compileCanary(
  text: string | null | undefined,
  random?: () => number,
): CanaryReach | undefined {
  const canary = parseCanary(text);
  // Whether its time is over is asked at each take: here nobody knows the time of Redis.
  if (!isTried(canary, Number.NEGATIVE_INFINITY)) return undefined;
  const { limiter, percent, until, policy } = canary;
  const salt = `${limiter}/${policy.slice(0, 12)}`;
  const reach = compileRollout(salt, JSON.stringify({ percent }), random);
  return { limiter, percent, until, reaches: (subject) => reach?.reaches(subject) ?? true };
}
