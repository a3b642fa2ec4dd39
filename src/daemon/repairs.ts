/** What the owner puts right before the law decides: a lapsed hold, a clock that went back, a glide, a trip that is over. Stage: daemon. */
import type { WriteRequest } from '../actuate/actuator.js';
import { capacityFor, clamp } from '../decide/bounds.js';
import type { InForceView } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import type { LimiterState, ParamChange, Params } from '../redis/params.js';
import { lapsedHold } from './view.js';

export type Repair = Pick<
  WriteRequest,
  'change' | 'cause' | 'reason' | 'sentence' | 'detail' | 'newEpoch' | 'refloor'
>;

/** The first repair that is due, or null. Each is one write with one entry; the next tick sees what is left. */
export function dueRepair(
  policy: Policy,
  params: Params,
  view: InForceView,
  nowUs: number,
  /** What is in force where nothing moves it. */
  resting: Pick<Params, 'rate' | 'capacity' | 'inFlightMax'>,
): Repair | null {
  const nowMs = nowUs / 1000;
  if (params.changedAt > nowUs) return clockWentBack(params, nowUs);
  const lapsed = lapsedHold(params, nowMs);
  if (lapsed !== null) return holdLapsed(policy, params, lapsed);
  if (view.gliding) return settleGlide(policy, params, view);
  const tripOver = view.state === 'half-open' || view.state === 'recovering';
  if (params.mode === 'auto') return null;
  if (tripOver) return closeTrip(policy, params, view);
  return view.state === 'closed' && view.held === 'none' ? policyNumbers(resting, params) : null;
}

/** The script brings token clock, floors and open time to the new clock with any write. */
function clockWentBack(params: Params, nowUs: number): Repair {
  const behindMs = Math.ceil((params.changedAt - nowUs) / 1000);
  return {
    change: {},
    cause: 'settle',
    reason: 'clock_regression',
    sentence: `The Redis clock lies ${behindMs} ms before the last change; token clock and open time are brought to it, the limits stay.`,
    detail: { behindMs },
  };
}

/** The law goes on from the held value, brought within the bounds that a pin may leave. */
function holdLapsed(policy: Policy, params: Params, hold: 'pinned' | 'frozen'): Repair {
  const change: ParamChange = {
    pinnedUntil: 0,
    frozenUntil: 0,
    holdBreaker: 0,
    heldBy: '',
    ...(hold === 'pinned' ? withinBounds(policy, params, params.state) : {}),
  };
  const by = params.heldBy || 'a person';
  return {
    change,
    cause: 'settle',
    reason: 'hold_lapsed',
    sentence: `The time of the ${hold === 'pinned' ? 'pin' : 'freeze'} by ${by} is over; the autopilot goes on from rate ${change.rate ?? params.rate}/s.`,
    detail: {
      hold,
      heldBy: params.heldBy,
      until: Math.max(params.pinnedUntil, params.frozenUntil),
    },
  };
}

/** While no autopilot wrote, the limits glided by themselves: what really held becomes what is stored. */
function settleGlide(policy: Policy, params: Params, view: InForceView): Repair {
  const closed = view.state === 'closed';
  const rate = closed ? clamp(view.rate, params.minRate, params.maxRate) : view.rate;
  const inFlightMax = closed
    ? clamp(view.inFlightMax, params.minInFlight, params.maxInFlight)
    : view.inFlightMax;
  const { state } = view;
  return {
    change: {
      state,
      rate,
      capacity: rate === params.rate ? params.capacity : capacityFor(policy, rate),
      inFlightMax,
    },
    cause: 'settle',
    reason: 'glide_settled',
    sentence: `No autopilot wrote for a while, so the limits glided from rate ${params.rate}/s to ${round(view.rate)}/s (safe: ${params.safeRate}/s); the autopilot goes on from there.`,
    detail: {
      heldMeanwhile: {
        fromRate: params.rate,
        toRate: view.rate,
        fromInFlightMax: params.inFlightMax,
        toInFlightMax: view.inFlightMax,
        safeRate: params.safeRate,
        safeInFlight: params.safeInFlight,
        validUntil: params.validUntil,
      },
    },
  };
}

/** In modes where the law writes nothing, a person's trip ends with its open time: no law would ever close it. */
function closeTrip(policy: Policy, params: Params, view: InForceView): Repair {
  return {
    change: { state: 'closed', ...withinBounds(policy, params, 'closed') },
    cause: 'settle',
    reason: 'trip_over',
    sentence: `The open time is over and in mode ${params.mode} no law probes: rate ${params.rate}/s is back after ${view.state}.`,
  };
}

/** Outside `auto` nothing moves the limits but people: once nobody holds them, the policy's numbers are in force. */
function policyNumbers(
  { rate, capacity, inFlightMax }: Pick<Params, 'rate' | 'capacity' | 'inFlightMax'>,
  params: Params,
): Repair | null {
  const same =
    params.rate === rate && params.capacity === capacity && params.inFlightMax === inFlightMax;
  if (same) return null;
  return {
    change: { rate, capacity, inFlightMax },
    cause: 'settle',
    reason: 'policy_numbers',
    sentence: `Mode ${params.mode} enforces the policy's own numbers and nobody holds others: rate ${params.rate}/s → ${rate}/s.`,
  };
}

/** A pin may lie outside the bounds, and a slow start below them; a closed limiter may not. */
function withinBounds(policy: Policy, params: Params, state: LimiterState): ParamChange {
  const closed = state === 'closed';
  const rate = clamp(params.rate, closed ? params.minRate : 0, params.maxRate);
  return {
    rate,
    capacity: rate === params.rate ? params.capacity : capacityFor(policy, rate),
    inFlightMax: clamp(params.inFlightMax, closed ? params.minInFlight : 0, params.maxInFlight),
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
