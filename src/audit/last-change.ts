/** The last change of the limits, as somebody on call means it: a person's or a policy's own, or the whole move of the autopilot. Pure. Stage: audit → cli, api. */
import type { EntryValues } from '../actuate/entry.js';
import { storedMs } from '../redis/stream-id.js';
import { isOlder } from '../redis/write-order.js';
import { type EpisodeEntry, STEADY_MS } from './episodes.js';

type Numbers = Pick<EntryValues, 'rate' | 'capacity' | 'inFlightMax'>;

/** Numbers closer than this are alike: going back to them would undo nothing. */
const ALIKE = 0.03;

export interface LastChange {
  /** In force before it. */
  before: EntryValues;
  /** Its first entry, and how many it has. */
  epoch: number;
  revision: number;
  count: number;
  /** `before the pin by ada@host (unverified) (revision 42)`. */
  words: string;
  /** The newest move was a rollback of this revision, so this is one further back than what it took back. */
  beyond?: number;
}

/**
 * One change of a person, a policy or a schedule is undone by itself. The autopilot moves in many small steps: they
 * are undone together, back to what had stood for ten minutes or to what somebody else had set. Where that is what is
 * in force again (it went down and came back), the newest step that made a difference is meant. What a rollback took
 * back is not brought again: who asks once more finds that it did not help, and goes one further back. Newest first.
 */
export function lastChange(changes: readonly EpisodeEntry[], now: Numbers): LastChange | null {
  const all = changes.filter(movesNumbers);
  let moves = all;
  for (let past = pastRollback(moves); past !== null; past = pastRollback(moves)) moves = past;
  const found = lastOf(moves, now);
  return found === null || moves === all ? found : { ...found, beyond: all[0]!.revision };
}

/** Of the newest move, if it is a rollback: those that made what it went back to; null: it is none. */
function pastRollback(moves: readonly EpisodeEntry[]): EpisodeEntry[] | null {
  const { reason, detail = {} } = moves[0]?.body ?? {};
  const { undoesRevision, undoesEpoch, toRevision, toEpoch } = detail;
  if (reason !== 'rollback') return null;
  const undone = typeof undoesRevision === 'number';
  const epoch = undone ? undoesEpoch : toEpoch;
  const revision = undone ? undoesRevision - 1 : toRevision;
  if (typeof epoch !== 'number' || typeof revision !== 'number') return null;
  return moves.slice(1).filter((move) => !isOlder({ epoch, revision }, move));
}

function lastOf(moves: readonly EpisodeEntry[], now: Numbers): LastChange | null {
  const newest = moves[0];
  if (newest?.body.before == null) return null;
  if (!isAutopilots(newest)) return told(moves, 0);
  let first = 0;
  for (let i = 1; i < moves.length; i++) {
    const [older, newer] = [moves[i]!, moves[i - 1]!];
    if (!isAutopilots(older) || storedMs(newer) - storedMs(older) >= STEADY_MS) break;
    first = i;
  }
  if (!alike(moves[first]!.body.before!, now)) return told(moves, first);
  const differs = moves.findIndex((move, i) => i <= first && !alike(move.body.before!, now));
  return differs === -1 ? null : told(moves, differs);
}

/** Does it change rate, capacity or cap? */
export function movesNumbers({ kind, body }: EpisodeEntry): boolean {
  const { before, after } = body;
  return kind === 'change' && after !== null && (before === null || !sameNumbers(before, after));
}

export function sameNumbers(a: Numbers, b: Numbers): boolean {
  return a.rate === b.rate && a.capacity === b.capacity && a.inFlightMax === b.inFlightMax;
}

function alike(a: Numbers, b: Numbers): boolean {
  const near = (x: number, y: number) => Math.abs(x - y) <= ALIKE * Math.max(x, y);
  return near(a.rate, b.rate) && near(a.capacity, b.capacity) && near(a.inFlightMax, b.inFlightMax);
}

/** A decision of its law. */
function isAutopilots({ body }: EpisodeEntry): boolean {
  return body.law !== undefined && body.actor.kind === 'autopilot' && body.before !== null;
}

/** From the newest to this one. */
function told(moves: readonly EpisodeEntry[], first: number): LastChange {
  const { body, epoch, revision } = moves[first]!;
  const count = first + 1;
  const by = body.actor.kind === 'person' ? body.actor.name : 'the autopilot';
  const words =
    count === 1
      ? `before the ${body.reason} by ${by} (revision ${revision})`
      : `before the ${count} changes of the autopilot from revision ${revision} to ${moves[0]!.revision}`;
  return { before: body.before!, epoch, revision, count, words };
}
