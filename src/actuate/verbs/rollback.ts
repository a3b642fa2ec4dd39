/** Rollback: a new revision with the values of an old one, held so that the next tick leaves it alone. Pure. Stage: actuate. */
import type { EntryValues } from '../entry.js';
import {
  clamp,
  type Facts,
  type HoldFor,
  holdUntil,
  moved,
  type Planner,
  short,
  standing,
  untilText,
} from './plan.js';

/** The entry that is rolled back to: its `after` is what comes back. */
export interface RollbackTarget {
  epoch: number;
  revision: number;
  after: EntryValues;
}

/**
 * Rate, capacity and in-flight cap of the old revision, clamped to the bounds of today, held. Mode and breaker
 * state stay: to undo a number must not switch the autopilot or open a breaker. History is never rewritten.
 */
export function rollback(target: RollbackTarget, hold: HoldFor): Planner {
  return (facts: Facts) => {
    const { params, nowMs, limiter, actor } = facts;
    const { values: before, settled, now } = standing(facts);
    const notes: string[] = [];
    const rate = bounded(target.after.rate, params.minRate, params.maxRate, 'rate', notes);
    const capacity = bounded(
      target.after.capacity,
      params.minCapacity,
      params.maxCapacity,
      'capacity',
      notes,
    );
    const inFlightMax =
      target.after.inFlightMax === 0 || params.maxInFlight === 0
        ? before.inFlightMax
        : bounded(
            target.after.inFlightMax,
            params.minInFlight,
            params.maxInFlight,
            'in-flight cap',
            notes,
          );
    const after: EntryValues = { ...before, rate, capacity, inFlightMax };
    if (target.after.mode !== before.mode) {
      notes.push(`The mode stays ${before.mode} (it was ${target.after.mode} then).`);
    }
    if (now.state === 'open' || now.state === 'half-open') {
      notes.push(`The breaker stays ${now.state}: these values hold once it has closed.`);
    }
    if (params.subjectRules === 1 && facts.overrides?.size) {
      notes.push(`What is said of single subjects stays: \`flyball subject ${limiter}\` lists it.`);
    }
    const pinnedUntil = holdUntil(nowMs, hold);
    const change = moved(before, after) || 'values unchanged';
    return {
      kind: 'change',
      reason: 'rollback',
      before,
      after,
      agreed: ['state', 'rate', 'capacity', 'inFlightMax'],
      change: { ...settled, rate, capacity, inFlightMax, pinnedUntil, heldBy: actor },
      sentence: `${actor} rolled ${limiter} back to revision ${target.revision}: ${change}; held ${untilText(pinnedUntil)}.`,
      detail: { toRevision: target.revision, toEpoch: target.epoch, until: pinnedUntil },
      notes,
    };
  };
}

function bounded(value: number, min: number, max: number, what: string, notes: string[]): number {
  const within = clamp(value, min, max);
  if (within !== value) {
    notes.push(
      `The ${what} was ${short(value)}; the bounds of today are ${short(min)} … ${short(max)}, so it is ${short(within)}.`,
    );
  }
  return within;
}
