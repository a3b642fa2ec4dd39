/** Rollback: a new revision with the values of an old one, held so that the next tick leaves it alone. Pure. Stage: actuate. */
import type { EntryValues } from '../entry.js';
import { carryNotes, type Seen } from './carries.js';
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

/** What is rolled back to: the `after` of an entry, or the `before` of the first of those that are undone. */
export interface RollbackTarget {
  epoch: number;
  revision: number;
  after: EntryValues;
  /** `before the pin by ada@host (unverified) (revision 42)`; absent: the revision. */
  words?: string;
  /** How it was chosen. Absent: by its revision. */
  chosen?: 'last' | 'good' | 'before';
  /** Why this one. */
  why?: string;
  /** What a daemon saw of the signals; null: none did of late. Absent: nobody looked. */
  seen?: Seen | null;
}

/**
 * Rate, capacity and in-flight cap of the old revision, clamped to the bounds of today, held. Mode and breaker
 * state stay: to undo a number must not switch the autopilot or open a breaker. History is never rewritten.
 */
export function rollback(target: RollbackTarget, hold: HoldFor): Planner {
  return (facts: Facts) => {
    const { params, nowMs, limiter, actor } = facts;
    const { values: before, settled, now } = standing(facts);
    const notes: string[] = target.why === undefined ? [] : [target.why];
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
    if (target.seen !== undefined) {
      notes.push(...carryNotes(facts.policy, target.seen, nowMs, before, after));
    }
    const pinnedUntil = holdUntil(nowMs, hold);
    const { epoch, revision, chosen, words = `revision ${revision}` } = target;
    const change = moved(before, after) || 'values unchanged';
    return {
      kind: 'change',
      reason: 'rollback',
      before,
      after,
      agreed: ['state', 'rate', 'capacity', 'inFlightMax'],
      change: { ...settled, rate, capacity, inFlightMax, pinnedUntil, heldBy: actor },
      sentence: `${actor} rolled ${limiter} back to ${words}: ${change}; held ${untilText(pinnedUntil)}.`,
      // Of a change that is undone its revision is not what is gone back to.
      detail: {
        ...(chosen === 'last'
          ? { undoesRevision: revision, undoesEpoch: epoch }
          : { toRevision: revision, toEpoch: epoch }),
        ...(chosen === undefined ? {} : { chosen }),
        until: pinnedUntil,
      },
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
