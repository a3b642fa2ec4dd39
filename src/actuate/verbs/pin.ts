/** Pin and release: a person's own value, held; and the hand back to the law without a bump. Pure. Stage: actuate. */

import type { ParamChange, Params } from '../../redis/params.js';
import type { EntryValues } from '../entry.js';
import { restingNumbers } from '../person-policy.js';
import { endCommand } from './ends.js';
import {
  clamp,
  type Facts,
  goesSafe,
  type HoldFor,
  holdUntil,
  moved,
  type Planner,
  short,
  standing,
  untilText,
} from './plan.js';
import { WishFault } from './wish-fault.js';

export interface PinValues {
  /** Tokens per second, 0 … the maximum. */
  rate?: number;
  /** In-flight cap, 1 … the maximum. */
  inFlight?: number;
  /** Hold the breaker too: not even a trip moves the limiter. */
  holdBreaker?: boolean;
}

/** Sets rate and cap (0 … max: below the bounds too) and holds them. What is not named stays as it is now. */
export function pin(wanted: PinValues, hold: HoldFor): Planner {
  return (facts) => {
    const { params, nowMs, limiter, actor } = facts;
    check(wanted, params, limiter);
    const { values: before, settled, now } = standing(facts);
    const notes: string[] = [];
    const rate = wanted.rate ?? before.rate;
    const after: EntryValues = {
      ...before,
      rate,
      capacity: capacityFor(rate, before, facts),
      inFlightMax: wanted.inFlight ?? before.inFlightMax,
    };
    if (rate === 0) notes.push('Rate 0 admits nothing until released.');
    else if (rate < params.minRate) {
      notes.push(`Below the lowest rate of the bounds, ${short(params.minRate)}/s.`);
    }
    if (now.state === 'open' || now.state === 'half-open') {
      notes.push(`The breaker stays ${now.state}: these values hold once it has closed.`);
    } else if (!wanted.holdBreaker) {
      notes.push('A breaker trip still goes through, and comes back to these values.');
    }
    const pinnedUntil = holdUntil(nowMs, hold);
    const lowest = Math.min(params.minRate, params.probeRate);
    const change = moved(before, after) || `at rate ${short(rate)}/s`;
    return {
      kind: 'change',
      reason: 'pin',
      before,
      after,
      agreed: ['state', ...named(wanted)],
      change: {
        ...settled,
        rate,
        capacity: after.capacity,
        inFlightMax: after.inFlightMax,
        pinnedUntil,
        heldBy: actor,
        ...(wanted.holdBreaker ? { holdBreaker: 1 as const } : {}),
      },
      ...(rate < lowest ? { refloor: 'empty' as const } : {}),
      sentence: `${actor} pinned ${limiter}: ${change}; held ${untilText(pinnedUntil)}.`,
      detail: { until: pinnedUntil, ...(wanted.holdBreaker ? { holdBreaker: true } : {}) },
      notes,
    };
  };
}

/**
 * Ends a pin or a rollback's hold. In `auto` the law goes on from the held value, moved only if it lies outside
 * the bounds; in the other modes, where no law moves the numbers, the policy's own come back.
 */
export function release(): Planner {
  return (facts) => {
    const { params, limiter, actor, policy } = facts;
    const { values: before, settled, pinned, frozen, daemon } = standing(facts);
    if (!pinned) {
      const also = frozen ? ` It is frozen: \`${endCommand('frozen', limiter)}\` ends that.` : '';
      return { kind: 'nothing', sentence: `${limiter} is not pinned.${also}` };
    }
    const own = params.mode === 'auto' ? null : policy;
    const goal = own ? restingNumbers(own, params) : before;
    const after: EntryValues = {
      ...before,
      rate: clamp(goal.rate, params.minRate, params.maxRate),
      capacity: clamp(goal.capacity, params.minCapacity, params.maxCapacity),
      inFlightMax:
        goal.inFlightMax === 0
          ? 0
          : clamp(goal.inFlightMax, params.minInFlight, params.maxInFlight),
    };
    const notes: string[] = [];
    if (frozen) notes.push(`It stays frozen: \`${endCommand('frozen', limiter)}\` ends that.`);
    if (!daemon) notes.push(goesSafe(params));
    const change: ParamChange = {
      ...settled,
      rate: after.rate,
      capacity: after.capacity,
      inFlightMax: after.inFlightMax,
      pinnedUntil: 0,
    };
    if (!frozen) Object.assign(change, { heldBy: '', holdBreaker: 0 } satisfies ParamChange);
    const from = own ? "the policy's own values" : 'the held values';
    const numbers = moved(before, after);
    return {
      kind: 'change',
      reason: 'release',
      before,
      after,
      agreed: ['mode', 'rate', 'inFlightMax'],
      change,
      sentence: `${actor} released ${limiter}: ${params.mode === 'auto' ? 'the autopilot goes on' : 'it goes on'} from ${from}${numbers ? ` (${numbers})` : ''}.`,
      detail: { wasUntil: params.pinnedUntil, wasHeldBy: params.heldBy },
      notes,
    };
  };
}

/** Capacity moves in proportion to the rate only where the policy gives it bounds of its own. */
function capacityFor(rate: number, before: EntryValues, { params, policy }: Facts): number {
  if (params.maxCapacity <= params.minCapacity || params.policyRate <= 0) return before.capacity;
  const perRate = policy
    ? policy.limiter.capacity / policy.limiter.rate
    : before.capacity / Math.max(before.rate, params.minRate);
  return clamp(perRate * rate, params.minCapacity, params.maxCapacity);
}

function named(wanted: PinValues): (keyof EntryValues)[] {
  return [
    ...(wanted.rate === undefined ? [] : (['rate'] as const)),
    ...(wanted.inFlight === undefined ? [] : (['inFlightMax'] as const)),
  ];
}

function check(wanted: PinValues, params: Params, limiter: string): void {
  const { rate, inFlight } = wanted;
  if (rate === undefined && inFlight === undefined) {
    throw new WishFault(
      (name) =>
        `give ${name('rate')}, ${name('inFlight')} or both. To hold what is in force: flyball freeze ${limiter}.`,
    );
  }
  if (rate !== undefined && !(Number.isFinite(rate) && rate >= 0 && rate <= params.maxRate)) {
    throw new WishFault(
      (name) =>
        `${name('rate')} is ${rate}; a pin may be 0 … ${short(params.maxRate)} (bounds.rate.max of the policy).`,
    );
  }
  if (inFlight === undefined) return;
  if (params.inFlightMax === 0 && params.maxInFlight === 0) {
    throw new WishFault(
      (name) =>
        `${name('inFlight')} is ${inFlight}, but ${limiter} has no in-flight cap: its policy gives no limiter.inFlightMax. Pin the rate instead.`,
    );
  }
  if (!(Number.isInteger(inFlight) && inFlight >= 1 && inFlight <= params.maxInFlight)) {
    throw new WishFault(
      (name) =>
        `${name('inFlight')} is ${inFlight}; a pin may be a whole number 1 … ${short(params.maxInFlight)} (bounds.inFlight.max). To admit nothing: ${name('rate')} 0, or flyball trip ${limiter} --hold.`,
    );
  }
}
