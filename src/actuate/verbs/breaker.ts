/** Trip and reset: a person opens the breaker, or ends its open time without a burst. Pure. Stage: actuate. */
import type { ParamChange } from '../../redis/params.js';
import type { EntryValues } from '../entry.js';
import { endCommand } from './ends.js';
import {
  clamp,
  type Facts,
  type HoldFor,
  holdUntil,
  type Planner,
  short,
  standing,
  UNTIL_ENDED,
  untilText,
} from './plan.js';

/** Open time of a trip when neither the person nor a policy says one. */
const DEFAULT_OPEN_MS = 5000;
/** A reset in `auto` begins its slow start at this share of the rate and cap that were in force before the trip. */
const RESET_SHARE = 0.5;

/** Opens: rate 0 at once. `hold` undefined: the policy's open time; `until-ended`: until `reset`. */
export function trip(hold?: HoldFor): Planner {
  return (facts) => {
    const { params, nowMs, limiter, actor } = facts;
    const { values: before, settled, pinned, frozen, daemon } = standing(facts);
    const openFor = hold ?? openTime(facts);
    const openUntil = holdUntil(nowMs, openFor);
    const held = openFor === 'until-ended';
    const after: EntryValues = { ...before, state: 'open' };
    const notes: string[] = [];
    if (!held) {
      const probe = `${short(params.probeRate)}/s`;
      notes.push(
        daemon
          ? `After that it lets ${probe} through as probes; the autopilot closes it by their outcome.`
          : `After that it lets ${probe} through as probes; no daemon is alive to close it: \`${endCommand('open', limiter)}\` does.`,
      );
    }
    if (pinned || frozen) notes.push('The held values come back when it closes.');
    else if (before.state === 'recovering' && !(daemon && params.mode === 'auto')) {
      notes.push(
        `It was still recovering: ${short(params.rate)}/s is what comes back, not what held before the last trip. \`flyball rollback\` brings that.`,
      );
    }
    return {
      kind: 'change',
      reason: 'trip',
      before,
      after,
      agreed: ['mode'],
      change: {
        ...settled,
        state: 'open',
        openUntil,
        openForMs: held ? params.openForMs : openFor,
        generation: params.generation + 1,
        ...(held && !pinned && !frozen ? { heldBy: actor } : {}),
      },
      sentence: `${actor} tripped ${limiter}${before.state === 'open' ? ' again' : `: ${before.state} → open`}, rate 0 ${untilText(openUntil).replace('a person ends it', 'a person resets it')}.`,
      detail: { until: openUntil, generation: params.generation + 1 },
      notes,
    };
  };
}

/**
 * Ends open or half-open. The token clock stood still meanwhile, so all buckets begin empty: no burst. Held
 * values come back at once (closed); in `auto` with a living daemon it recovers from half of what held before
 * the trip and the law grows it; otherwise nobody would grow it, so it closes at the stored values.
 */
export function reset(): Planner {
  return (facts) => {
    const { params, limiter, actor } = facts;
    const { values: before, pinned, frozen, daemon, now } = standing(facts);
    if (now.state === 'closed' || now.state === 'recovering') {
      return { kind: 'nothing', sentence: `${limiter} is ${now.state}: there is no trip to end.` };
    }
    const slow = params.mode === 'auto' && daemon && !pinned && !frozen;
    const after: EntryValues = { ...before, state: slow ? 'recovering' : 'closed' };
    if (slow) {
      after.rate = clamp(params.rate * RESET_SHARE, params.probeRate, params.rate);
      if (params.inFlightMax > 0) {
        after.inFlightMax = clamp(
          Math.round(params.inFlightMax * RESET_SHARE),
          Math.min(params.minInFlight, params.inFlightMax),
          params.inFlightMax,
        );
      }
    }
    const change: ParamChange = {
      state: after.state,
      rate: after.rate,
      capacity: after.capacity,
      inFlightMax: after.inFlightMax,
      openUntil: 0,
    };
    if (params.openUntil === UNTIL_ENDED && !pinned && !frozen) change.heldBy = '';
    const notes: string[] = [];
    if (slow) notes.push(`The autopilot grows it back toward ${short(params.rate)}/s.`);
    if (!daemon) notes.push('No daemon is alive: nobody watches how it fares.');
    return {
      kind: 'change',
      reason: 'reset',
      before,
      after,
      agreed: ['mode', 'state'],
      change,
      sentence: `${actor} reset ${limiter}: ${before.state} → ${after.state} at rate ${short(after.rate)}/s; buckets begin empty.`,
      detail: { wasUntil: params.openUntil },
      notes,
    };
  };
}

/** Not the stored open time: that is of the last trip, and somebody may have made it long. */
function openTime({ policy }: Facts): number {
  return policy?.breaker?.openFor ?? DEFAULT_OPEN_MS;
}
