/** What happened to a limiter, as episodes of the entries that were read, with those entries beneath. Pure. Stage: dashboard. */
import type { AuditRecord } from '../../api/types.js';
import { type Episode, episodesOf, inStreamOrder } from '../../audit/episodes.js';
import type { HoldView } from '../../view/status.js';
import type { ChangeRef } from '../routing.js';

export interface Told {
  episode: Episode;
  /** Newest first. */
  entries: AuditRecord[];
}

/** Newest episode first. `more`: older entries were not read. */
export function storyOf(entries: readonly AuditRecord[], nowMs: number, more: boolean): Told[] {
  const asEpisodeEntry = entries
    .filter(({ kind }) => kind === 'change')
    .map((record) => ({
      id: record.id,
      kind: record.kind,
      epoch: record.epoch,
      revision: record.revision,
      body: record,
    }));
  const newestFirst = [...entries]
    .filter(({ kind }) => kind === 'change')
    .sort((a, b) => inStreamOrder(b, a));
  return episodesOf(asEpisodeEntry, { nowMs, cut: more })
    .map((episode) => ({ episode, entries: newestFirst.filter((entry) => within(episode, entry)) }))
    .reverse();
}

function within({ id, lastId }: Episode, entry: AuditRecord): boolean {
  return inStreamOrder(entry, { id }) >= 0 && inStreamOrder(entry, { id: lastId }) <= 0;
}

/** Entries that came live before those that were read, each once, newest first. */
export function withNew(read: readonly AuditRecord[], live: readonly AuditRecord[]): AuditRecord[] {
  const known = new Set(read.map(({ id }) => id));
  return [...live.filter(({ id }) => !known.has(id)), ...read].sort((a, b) => inStreamOrder(b, a));
}

export function firstOf({ epoch, firstRevision }: Episode): ChangeRef {
  return { epoch, revision: firstRevision };
}

/** The episode that holds this change. */
export function episodeOf(told: readonly Told[], of: ChangeRef): Told | undefined {
  return told.find(({ entries }) => entries.some((entry) => keyOf(entry) === keyOf(of)));
}

/** The change of which its sentence tells: the last that a person made, else the one that says the cause. */
export function leadOf({ persons, cause }: Episode): ChangeRef {
  const { epoch, revision } = persons.at(-1) ?? cause;
  return { epoch, revision };
}

/** Whether a rollback has something to take back: it sets rate, capacity and cap, never mode or breaker. */
export function movedNumber({ before, after }: Pick<AuditRecord, 'before' | 'after'>): boolean {
  if (after === null) return false;
  if (before === null) return true;
  return NUMBERS.some((name) => before[name] !== after[name]);
}

const NUMBERS = ['rate', 'capacity', 'inFlightMax'] as const;

/** Whether the timed bounds that this change set are those that hold. */
export function boundsStand(
  entries: readonly AuditRecord[],
  of: ChangeRef,
  holds: readonly Pick<HoldView, 'kind'>[],
): boolean {
  if (!holds.some(({ kind }) => kind === 'bounds')) return false;
  const sets = entries.filter(({ reason }) => reason === 'bounds_set');
  return (
    sets.some((entry) => keyOf(entry) === keyOf(of)) && !sets.some((entry) => isLater(entry, of))
  );
}

function isLater(one: ChangeRef, than: ChangeRef): boolean {
  return one.epoch > than.epoch || (one.epoch === than.epoch && one.revision > than.revision);
}

/** What stands, of a row and a log, newest first, that were not read at one moment: the later of both. */
export function newestOf(entries: readonly AuditRecord[], row: ChangeRef): ChangeRef {
  return entries.find((entry) => entry.kind === 'change' && isLater(entry, row)) ?? row;
}

/** Where undoing a change goes, and what its button says. */
export interface Undo {
  to: string;
  words: string;
}

/** Back to what stood before it; of the change a limiter began with, back to that. null: nothing known to go to. */
export function undoOf(
  entries: readonly AuditRecord[],
  of: { epoch: number; revision: number },
): Undo | null {
  const older = stoodBefore(entries, of);
  if (older !== null) return { to: keyOf(older), words: 'Roll back to before this…' };
  const began = entries.find(({ epoch, revision }) => keyOf({ epoch, revision }) === keyOf(of));
  const moved = entries.some(
    (entry) => entry.kind === 'change' && entry.after !== null && isLater(entry, of),
  );
  const standsAlone = began === undefined || began.before !== null || began.after === null;
  return standsAlone || !moved ? null : { to: keyOf(of), words: 'Roll back to how it began…' };
}

function keyOf({ epoch, revision }: { epoch: number; revision: number }): string {
  return `${epoch}.${revision}`;
}

/** The change that stood before this one: where a rollback of it goes. null: there is none that was read. */
export function stoodBefore(
  entries: readonly AuditRecord[],
  of: { epoch: number; revision: number },
): AuditRecord | null {
  const older = entries.filter(
    ({ kind, epoch, revision, after }) =>
      kind === 'change' &&
      after !== null &&
      (epoch < of.epoch || (epoch === of.epoch && revision < of.revision)),
  );
  return older.sort((a, b) => b.epoch - a.epoch || b.revision - a.revision)[0] ?? null;
}
