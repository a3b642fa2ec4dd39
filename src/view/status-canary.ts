/** The version that is tried on a part of the subjects, as `status` says it. Pure. Stage: cli, api. */
import { type Canary, isTried, parseCanary, restsAt } from '../redis/canary.js';
import type { Params } from '../redis/params.js';

export interface CanaryView {
  /** Hash of the version. */
  policy: string;
  /** Who decides for its part; `flyball status` shows it by this name. */
  limiter: string;
  percent: number;
  sinceMs: number;
  /** It is judged from then on. */
  judgedMs: number;
  /** Services no longer follow it from then on. */
  untilMs: number;
  /** How it ended; null: it goes on. The version is not tried again before its file changes. */
  ended: NonNullable<Canary['ended']> | null;
  /** Why the limiter itself decides for all just now, and the time does not count; null: it does not rest, or is over. */
  rests: string | null;
}

export function canaryView(params: Params, nowMs: number): CanaryView | null {
  const canary = parseCanary(params.canary);
  if (canary === null) return null;
  const { policy, limiter, percent, since, forMs, until, ended = null } = canary;
  return {
    ...{ policy, limiter, percent, ended },
    ...{ sinceMs: since, judgedMs: since + forMs, untilMs: until },
    rests: isTried(canary, nowMs) ? restsAt(params, nowMs) : null,
  };
}
