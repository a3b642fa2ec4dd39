/** Episodes of an audit log: entries in any order to what happened, each change in exactly one. Pure. Stage: audit → cli, api. */
import type { EntryValues } from '../actuate/entry.js';
import type { HistoryRow } from '../redis/history-rows.js';
import { compareIds, storedMs } from '../redis/stream-id.js';
import { actsOf, causeOf } from './episode-cause.js';
import { costOf } from './episode-cost.js';
import { farthestOf } from './episode-farthest.js';
import { sentenceOf } from './episode-sentence.js';
import type { Episode, EpisodeEntry } from './episode-types.js';

export type {
  CauseKind,
  Episode,
  EpisodeAct,
  EpisodeCause,
  EpisodeCost,
  EpisodeEntry,
} from './episode-types.js';

/** An episode is over when nothing has moved for so long. */
export const STEADY_MS = 600_000;

export interface EpisodesOptions {
  /** Redis time, which says whether the newest is over. Default: it is. */
  nowMs?: number;
  /** Minute roll-ups, for the cost. */
  rows?: readonly HistoryRow[];
  /** Older entries than the given ones may exist: the first episode is marked as `cut`. */
  cut?: boolean;
}

/** Which entries are told of as episodes: the changes, or the recommendations. */
export type Lane = Episode['lane'];

/**
 * The episodes of one limiter, oldest first. Entries may come oldest or newest first, or mixed; the order of the
 * stream counts. Those of the other lane are left out.
 */
export function episodesOf(
  entries: Iterable<EpisodeEntry>,
  options: EpisodesOptions = {},
  lane: Lane = 'in_force',
): Episode[] {
  const inLane = [...entries].filter((entry) => laneOf(entry) === lane).sort(inStreamOrder);
  return stretches(inLane).map((stretch, i) =>
    episode(stretch, lane, { ...options, cut: i === 0 && options.cut === true }),
  );
}

/** `null`: neither, a note of a refused write say. */
export function laneOf({ kind, body }: EpisodeEntry): Lane | null {
  if (kind === 'change') return 'in_force';
  // Of the notes only a recommendation of a law carries both its inputs and what it would be.
  return body.law !== undefined && body.after !== null ? 'would_be' : null;
}

export function inStreamOrder(a: { id: string }, b: { id: string }): number {
  return compareIds(a.id, b.id);
}

/** Whether an entry changes a number or a state; a rule for one subject changes none. */
export function moves({ kind, body }: EpisodeEntry): boolean {
  // A recommendation is written because its values have moved; its `before` is what is in force.
  if (kind === 'note') return true;
  const { before, after } = body;
  if (after === null) return false;
  if (before === null) return true;
  return VALUES.some((name) => before[name] !== after[name]) || reserve(before) !== reserve(after);
}

/** Nothing is steady while a breaker is not closed, however long no entry comes: was it closed before this one? */
function wasSettled({ kind, body }: EpisodeEntry): boolean {
  return kind === 'note' || body.before === null || body.before.state === 'closed';
}

/** Two neighbours of a lane between which no episode can reach. */
export function isApart(older: { id: string }, newer: EpisodeEntry): boolean {
  return storedMs(newer) - storedMs(older) >= STEADY_MS && wasSettled(newer);
}

const VALUES = ['mode', 'state', 'rate', 'capacity', 'inFlightMax'] as const;

function reserve({ reserve: shares }: EntryValues): string {
  return shares === undefined ? '' : `${shares.default} ${shares.sheddable}`;
}

interface Stretch {
  moved: boolean;
  entries: EpisodeEntry[];
  /** The last entry that moved something; of a steady stretch its last. */
  last: EpisodeEntry;
}

/** Oldest first → each entry in one stretch, in order. */
function stretches(entries: readonly EpisodeEntry[]): Stretch[] {
  const all: Stretch[] = [];
  for (const entry of entries) {
    const running = all.at(-1);
    const moved = moves(entry);
    if (running === undefined || !belongs(running, entry, moved)) {
      all.push({ moved, entries: [entry], last: entry });
      continue;
    }
    running.entries.push(entry);
    if (moved || !running.moved) running.last = entry;
  }
  return all;
}

function belongs(running: Stretch, entry: EpisodeEntry, moved: boolean): boolean {
  const apart = isApart(running.last, entry);
  return running.moved ? !apart : !moved && !apart;
}

function episode(stretch: Stretch, lane: Lane, options: EpisodesOptions): Episode {
  const { entries, last, moved } = stretch;
  const { nowMs = Number.POSITIVE_INFINITY, rows = [] } = options;
  const first = entries[0]!;
  const end = entries.at(-1)!;
  const fromMs = storedMs(first);
  const toMs = storedMs(last);
  const { after } = last.body;
  const closed = lane === 'would_be' || after === null || after.state === 'closed';
  // A created limiter has none; what came at once after it moved what it began with.
  const before = first.body.before ?? (last === first ? null : first.body.after);
  const open = moved && Number.isFinite(nowMs) && (nowMs - toMs < STEADY_MS || !closed);
  const untilMs = open ? nowMs : toMs;
  const told = {
    id: first.id,
    lastId: end.id,
    lane,
    moved,
    ...{ fromMs, toMs, open, cut: options.cut === true },
    ...{ epoch: first.epoch, firstRevision: first.revision },
    ...{ lastEpoch: end.epoch, lastRevision: end.revision },
    changes: entries.length,
    before,
    farthest: before === null ? null : farthestOf(before, entries),
    after,
    cause: causeOf(entries.filter((entry) => !moved || moves(entry))),
    ...breakerOf(entries, untilMs),
    persons: actsOf(entries),
    cost: moved && lane === 'in_force' ? costOf(rows, fromMs, untilMs) : null,
  };
  return { ...told, sentence: sentenceOf(told, entries) };
}

/** A trip whose episode goes on stands until now; half-open comes by time, without an entry. */
function breakerOf(entries: readonly EpisodeEntry[], untilMs: number) {
  let trips = 0;
  let openMs = 0;
  let sinceMs: number | null = null;
  for (const entry of entries) {
    const state = entry.body.after?.state;
    if (state === undefined) continue;
    const shut = state === 'open' || state === 'half-open';
    if (state === 'open' && entry.body.before?.state !== 'open') trips++;
    if (shut) sinceMs ??= storedMs(entry);
    else if (sinceMs !== null) {
      openMs += storedMs(entry) - sinceMs;
      sinceMs = null;
    }
  }
  if (sinceMs !== null && Number.isFinite(untilMs)) openMs += Math.max(0, untilMs - sinceMs);
  return { trips, openMs };
}
