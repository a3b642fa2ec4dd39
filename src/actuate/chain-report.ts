/** What a proof of the audit log came to, as figures and one sentence. Stage: actuate, audit. */
import { GENESIS_HASH } from '../redis/calls.js';
import type { StoredEntry } from './entry.js';

/** A hash that was noted elsewhere, or signed: the chain must hold it, and all before it is then proven. */
export interface Anchor {
  hash: string;
  /** Stream id of its entry, where known: then one that is older than what is left is no fault. */
  id?: string;
  /** `the anchor`, `the signed head of 2026-03-01T02:14:00.000Z`. */
  name: string;
  /** It lies where the entries lie: its absence shows a fault, its presence proves nothing. */
  weak?: boolean;
}

/** Anchors by limiter. */
export interface Heads {
  /** Those that have one: where nothing is left of them, that is a fault too. */
  limiters: readonly string[];
  of(limiter: string): readonly Anchor[];
}

export interface Fault {
  /** Of the first entry that is edited, missing or out of order; null: at the newest end. */
  id: string | null;
  revision: number | null;
  what: string;
}

/**
 * Why a log goes on elsewhere than where its export ended, as the exporter saw it: entries were trimmed before it read
 * them; the log began anew (Redis had lost it); Redis went back to an older state; or its link does not match.
 */
export type GapReason = 'trimmed' | 'anew' | 'lost' | 'unlinked';

export interface GapLine {
  why: GapReason;
  /** Stream id of the last entry before it; null: the export begins here. */
  after: string | null;
  /** Of the first entry after it, and the hash that this one follows. */
  before: string;
  prev: string;
}

export interface Gap extends Omit<GapLine, 'prev'> {
  sentence: string;
}

/**
 * - `proven`: the chain holds an anchor, and is whole from its first entry, or from where it says itself that it was
 *   trimmed.
 * - `consistent`: no fault is visible, but a rewrite of everything that follows an entry would look the same
 *   (no anchor was given), or entries are missing of which the log or its export tells.
 * - `broken`: `fault` names the first entry that is edited, missing or out of order.
 */
export interface VerifyReport {
  limiter: string;
  verdict: 'proven' | 'consistent' | 'broken';
  sentence: string;
  entries: number;
  changes: number;
  notes: number;
  /** The chain begins after entries that were trimmed. */
  trimmed: boolean;
  /** Newest hash: note it elsewhere as the anchor of a later verify. */
  head: string;
  /** The newest entry that an anchor proves, what proves it, and how many entries follow it. */
  proven: { id: string; by: string; since: number } | null;
  /** Missing entries of which an export tells by itself; the first twenty. */
  gaps: Gap[];
  fault?: Fault;
}

export interface ChainFacts {
  limiter: string;
  changes: number;
  notes: number;
  trimmed: boolean;
  /** The entry that tells of the trim. */
  trimNote: string | null;
  first: { id: string; prev: string } | null;
  head: string | null;
  proven: { id: string; by: string; at: number } | null;
  gaps: Gap[];
  gapCount: number;
}

export function reportOf(facts: ChainFacts, fault: Fault | null): VerifyReport {
  const { limiter, changes, notes, trimmed, gaps } = facts;
  const entries = changes + notes;
  const { proven: at } = facts;
  const proven = at === null ? null : { id: at.id, by: at.by, since: entries - at.at };
  const head = facts.head ?? GENESIS_HASH;
  const base = { limiter, entries, changes, notes, trimmed, head, proven, gaps };
  if (fault !== null) {
    const place = fault.id === null ? 'at the newest end' : `at entry ${fault.id}`;
    const revision = fault.revision === null ? '' : ` (revision ${fault.revision})`;
    const sentence = `${limiter}: broken ${place}${revision}: ${fault.what.replace(/\.$/, '')}.`;
    return { ...base, verdict: 'broken', sentence, fault };
  }
  const why = whyNotProven(facts);
  const sentence =
    why === null
      ? provenSentence(facts)
      : `${limiter}: consistent, not proven: ${counted(facts)} checked; ${why}.`;
  return { ...base, verdict: why === null ? 'proven' : 'consistent', sentence };
}

function counted({ changes, notes }: ChainFacts): string {
  return `${changes} changes and ${notes} notes`;
}

function whyNotProven(facts: ChainFacts): string | null {
  const { gaps, gapCount, trimmed, trimNote, proven } = facts;
  if (gapCount > 0) {
    const more = gapCount > 1 ? ` (and ${gapCount - 1} more such gaps)` : '';
    return `${gaps[0]!.sentence}${more}`;
  }
  if (trimmed && trimNote === null) return 'the oldest entries have been trimmed';
  if (proven !== null) return null;
  const older = trimmed ? `; older ones were trimmed, as entry ${trimNote} says` : '';
  return `no anchor was given, so a rewrite of all that follows an entry cannot be ruled out${older}`;
}

function provenSentence(facts: ChainFacts): string {
  const { limiter, trimNote, trimmed, proven, changes, notes } = facts;
  const since = changes + notes - proven!.at;
  const after = since > 0 ? `; the ${since} since then are consistent` : '';
  const older = trimmed ? `; older ones were trimmed, as entry ${trimNote} says` : '';
  return `${limiter}: proven up to ${proven!.by}: ${counted(facts)}, each hash, link and revision checked${after}${older}.`;
}

/** What is missing, and why, as far as who exported it could see. */
export function gapSentence(
  { why, after, before }: GapLine,
  lastChange: { epoch: number; revision: number } | null,
  next: StoredEntry,
): string {
  const from = after === null ? 'the beginning' : `entry ${after}`;
  if (why === 'anew')
    return `after ${from} Redis had lost the log, which began anew with entry ${before}`;
  if (why === 'lost') {
    return `a failover lost the newest entries up to ${after}, which the export still holds; entry ${before} goes on from before them`;
  }
  const next1 = next.kind === 'change' ? next.revision - 1 : next.revision;
  const revisions =
    lastChange !== null && lastChange.epoch === next.epoch && next1 > lastChange.revision
      ? ` (revisions ${lastChange.revision + 1} to ${next1})`
      : '';
  return `entries between ${from} and ${before}${revisions} are missing: they were trimmed before they were exported`;
}
