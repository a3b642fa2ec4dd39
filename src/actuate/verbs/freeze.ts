/** Freeze and thaw: law, tuning and schedules change nothing for a while; what is in force stays. Pure. Stage: actuate. */
import { endCommand } from './ends.js';
import {
  goesSafe,
  type HoldFor,
  holdUntil,
  type Planner,
  short,
  standing,
  untilText,
} from './plan.js';

/** Holds what is in force this moment; while gliding, the value the glide has reached. */
export function freeze(hold: HoldFor, options: { holdBreaker?: boolean } = {}): Planner {
  return (facts) => {
    const { nowMs, limiter, actor } = facts;
    const { values: before, settled, now } = standing(facts);
    const frozenUntil = holdUntil(nowMs, hold);
    const notes: string[] = [];
    if (now.gliding) notes.push('The limits were gliding to their safe values: they stop here.');
    if (!options.holdBreaker) {
      notes.push('A breaker trip still goes through, and comes back to these values.');
    }
    return {
      kind: 'change',
      reason: 'freeze',
      before,
      after: before,
      agreed: ['mode', 'state'],
      change: {
        ...settled,
        frozenUntil,
        heldBy: actor,
        ...(options.holdBreaker ? { holdBreaker: 1 as const } : {}),
      },
      sentence: `${actor} froze ${limiter} at rate ${short(before.rate)}/s${before.inFlightMax ? `, in-flight cap ${short(before.inFlightMax)}` : ''}; held ${untilText(frozenUntil)}.`,
      detail: { until: frozenUntil, ...(options.holdBreaker ? { holdBreaker: true } : {}) },
      notes,
    };
  };
}

export function thaw(): Planner {
  return (facts) => {
    const { params, limiter, actor } = facts;
    const { values: before, settled, pinned, frozen, daemon } = standing(facts);
    if (!frozen) {
      const also = pinned ? ` It is pinned: \`${endCommand('pinned', limiter)}\` ends that.` : '';
      return { kind: 'nothing', sentence: `${limiter} is not frozen.${also}` };
    }
    const notes: string[] = [];
    if (pinned) notes.push(`It stays pinned: \`${endCommand('pinned', limiter)}\` ends that.`);
    else if (!daemon) notes.push(goesSafe(params));
    return {
      kind: 'change',
      reason: 'thaw',
      before,
      after: before,
      agreed: ['mode', 'state'],
      change: {
        ...settled,
        frozenUntil: 0,
        ...(pinned ? {} : { heldBy: '', holdBreaker: 0 as const }),
      },
      sentence: `${actor} thawed ${limiter}: ${pinned ? 'the pin stays' : 'the autopilot goes on from here'}.`,
      detail: { wasUntil: params.frozenUntil, wasHeldBy: params.heldBy },
      notes,
    };
  };
}
