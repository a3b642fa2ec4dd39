/** What is in force at a tick, as the law sees it: effective numbers, targets, holds, ages. Stage: daemon. */
import type { InForceView } from '../decide/types.js';
import { effective, isActive } from '../redis/effective.js';
import type { LimiterState, Params } from '../redis/params.js';
import { SCHEDULE } from '../redis/windows.js';

/** Since when the limiter is in its state; kept in the checkpoint, so that the next owner knows it. */
export interface StateSince {
  state: LimiterState;
  generation: number;
  sinceMs: number;
}

/** The view at Redis time `nowMs`; `since` is what was known of the state before this tick. */
export function inForceView(
  params: Params,
  nowMs: number,
  since: StateSince | null,
): { view: InForceView; since: StateSince } {
  const inForce = effective(params, nowMs);
  const now = stateSince(params, inForce.state, nowMs, since);
  const view: InForceView = {
    epoch: params.epoch,
    revision: params.revision,
    generation: params.generation,
    mode: params.mode,
    state: inForce.state,
    gliding: inForce.gliding,
    rate: inForce.rate,
    capacity: inForce.capacity,
    inFlightMax: inForce.inFlightMax,
    sinceChangeMs: Math.max(0, nowMs - params.changedAt / 1000),
    inStateMs: Math.max(0, nowMs - now.sinceMs),
    held: heldBy(params, nowMs),
    holdBreaker: params.holdBreaker === 1 && heldBy(params, nowMs) !== 'none',
    ...(heldBy(params, nowMs) === 'frozen' && params.heldBy === SCHEDULE && { bySchedule: true }),
    target: {
      rate: params.rate,
      capacity: params.capacity,
      inFlightMax: params.inFlightMax,
    },
  };
  return { view, since: now };
}

/** A pin leads over a freeze: it is the value that a person asked for. */
export function heldBy(params: Params, nowMs: number): InForceView['held'] {
  if (isActive(params.pinnedUntil, nowMs)) return 'pinned';
  return isActive(params.frozenUntil, nowMs) ? 'frozen' : 'none';
}

/** A hold whose time is over but whose fields still stand: the owner clears them in an entry of its own. */
export function lapsedHold(params: Params, nowMs: number): 'pinned' | 'frozen' | null {
  if (heldBy(params, nowMs) !== 'none') return null;
  if (params.pinnedUntil > 0) return 'pinned';
  return params.frozenUntil > 0 ? 'frozen' : null;
}

function stateSince(
  params: Params,
  state: LimiterState,
  nowMs: number,
  before: StateSince | null,
): StateSince {
  const { generation } = params;
  if (before !== null && before.state === state && before.generation === generation) {
    // A clock that went back must not give an age below zero for ever.
    return before.sinceMs <= nowMs ? before : { ...before, sinceMs: nowMs };
  }
  let sinceMs = Math.min(params.changedAt / 1000, nowMs);
  if (state === 'half-open' && params.state === 'open') sinceMs = Math.min(params.openUntil, nowMs);
  return { state, generation, sinceMs };
}
