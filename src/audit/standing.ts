/** For how long of a time the limits stood at their bounds and the breaker open, and what guards held back, from the changes. Pure. Stage: audit. */
import type { EntryValues } from '../actuate/entry.js';
import type { KeptBack } from '../decide/told-types.js';
import { storedMs } from '../redis/stream-id.js';
import type { EpisodeEntry } from './episodes.js';

/** The bounds in force now; those of then are not known. A cap's are null without one. */
export interface StandingBounds {
  rate: { min: number; max: number };
  inFlight: { min: number; max: number } | null;
}

export interface Standing {
  /** Of the time, for how long (ms) it is known what stood. */
  knownMs: number;
  /** Breaker closed, and rate or cap at the least (at the most) that the bounds allow. */
  atFloorMs: number;
  atCeilingMs: number;
  /** Open or half-open, as stored: half-open comes by time, without a change. */
  openMs: number;
  trips: number;
  changes: { total: number; autopilot: number; persons: number; byReason: Record<string, number> };
  held: HeldBack[];
}

/** What decisions would have been without a guard, over all changes and recommendations of the time. */
export interface HeldBack {
  guard: string;
  times: number;
  /** The most it would have been, of those that the guard lowered or raised; null: it was not about it. */
  rate: number | null;
  inFlightMax: number | null;
}

/**
 * `entries` of [fromMs, toMs) oldest first, `start` the newest change before them (null: there is none, so nothing is
 * known of the time before the first).
 */
export function standingOf(
  entries: readonly EpisodeEntry[],
  start: EntryValues | null,
  time: { fromMs: number; toMs: number },
  bounds: StandingBounds,
): Standing {
  const told: Standing = {
    ...{ knownMs: 0, atFloorMs: 0, atCeilingMs: 0, openMs: 0, trips: 0 },
    changes: { total: 0, autopilot: 0, persons: 0, byReason: {} },
    held: [],
  };
  const held = new Map<string, HeldBack>();
  let stands = start;
  let sinceMs = time.fromMs;
  const until = (ms: number) => {
    if (stands !== null) addTime(told, stands, Math.max(0, ms - sinceMs), bounds);
    sinceMs = Math.max(sinceMs, ms);
  };
  for (const entry of entries) {
    const { kind, body } = entry;
    addHeld(held, body.detail?.heldBack);
    if (kind !== 'change') continue;
    until(storedMs(entry));
    const { before, after, reason, actor } = body;
    if (after?.state === 'open' && before?.state !== 'open') told.trips++;
    stands = after ?? stands;
    told.changes.total++;
    told.changes[actor.kind === 'person' ? 'persons' : 'autopilot']++;
    told.changes.byReason[reason] = (told.changes.byReason[reason] ?? 0) + 1;
  }
  until(time.toMs);
  told.held = [...held.values()].sort((a, b) => b.times - a.times);
  return told;
}

function addTime(told: Standing, values: EntryValues, ms: number, bounds: StandingBounds): void {
  told.knownMs += ms;
  const { state, rate, inFlightMax } = values;
  if (state === 'open' || state === 'half-open') told.openMs += ms;
  if (state !== 'closed') return;
  const { rate: rates, inFlight } = bounds;
  const capped = inFlight !== null && inFlightMax > 0;
  if (rate <= rates.min || (capped && inFlightMax <= inFlight.min)) told.atFloorMs += ms;
  if (rate >= rates.max || (capped && inFlightMax >= inFlight.max)) told.atCeilingMs += ms;
}

/** An entry of before this was written down tells nothing of it. */
function addHeld(held: Map<string, HeldBack>, kept: unknown): void {
  if (!isKeptBack(kept)) return;
  for (const guard of kept.guards) {
    const known = held.get(guard) ?? { guard, times: 0, rate: null, inFlightMax: null };
    known.times++;
    known.rate = most(known.rate, kept.rate);
    known.inFlightMax = most(known.inFlightMax, kept.inFlightMax);
    held.set(guard, known);
  }
}

function isKeptBack(value: unknown): value is KeptBack {
  if (typeof value !== 'object' || value === null) return false;
  const { guards, rate, inFlightMax } = value as Record<keyof KeptBack, unknown>;
  const numbers = [rate, inFlightMax].filter((number) => number !== undefined);
  return (
    Array.isArray(guards) &&
    guards.every((guard) => typeof guard === 'string') &&
    numbers.every((number) => typeof number === 'number')
  );
}

function most(known: number | null, value: number | undefined): number | null {
  if (value === undefined) return known;
  return known === null ? value : Math.max(known, value);
}

/** The same of a decision that changed nothing and so has no entry: the newest, as a daemon's status tells it. */
export function heldNow(kept: unknown): HeldBack[] {
  const held = new Map<string, HeldBack>();
  addHeld(held, kept);
  return [...held.values()];
}
