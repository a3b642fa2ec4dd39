/** The last revision that stood for ten minutes with its objectives met, and why it qualifies; or why none does. Pure. Stage: audit → cli, api. */
import type { EntryValues } from '../actuate/entry.js';
import type { HistoryRow } from '../redis/history-rows.js';
import { storedMs } from '../redis/stream-id.js';
import { type EpisodeEntry, STEADY_MS } from './episodes.js';
import { movesNumbers, sameNumbers } from './last-change.js';

const MINUTE_MS = 60_000;

/** What makes minutes good ones. */
export const GOOD = {
  minutes: STEADY_MS / MINUTE_MS,
  /** Of those so many must be known: a daemon watched, and somebody was answered. */
  known: 8,
  watchedS: 30,
  /** Share of the watched seconds in which an objective may have been missed. */
  overload: 0.05,
};

/** Numbers that nothing moved for a while. */
export interface Stand {
  epoch: number;
  revision: number;
  after: EntryValues;
  fromMs: number;
  toMs: number;
}

export type GoodRevision =
  | { stand: Stand /** One sentence. */; why: string }
  | { stand: null; why: string };

export interface GoodOptions {
  nowMs: number;
  /** In force: what would change nothing is no way back. */
  now: Pick<EntryValues, 'rate' | 'capacity' | 'inFlightMax'>;
  /** Share of failed answers that an objective of the policy allows. */
  errorsBelow?: number | undefined;
}

/** `changes` newest first, `minutes` in any order. */
export function goodRevision(
  changes: readonly EpisodeEntry[],
  minutes: readonly HistoryRow[],
  options: GoodOptions,
): GoodRevision {
  const rows = new Map(minutes.map((row) => [row.minute, row]));
  const stands = standsOf(changes, options.nowMs);
  const long = stands.filter(({ fromMs, toMs }) => toMs - fromMs >= STEADY_MS);
  let best = 'none of their minutes was seen by a daemon';
  for (const stand of long) {
    const seen = goodMinutes(stand, rows, options.errorsBelow);
    if (!seen.good) {
      if (stand === long[0]) best = `revision ${stand.revision}, the newest of them: ${seen.why}`;
      continue;
    }
    if (sameNumbers(stand.after, options.now)) {
      return {
        stand: null,
        why: `What is in force is what revision ${stand.revision} gave, the last good one: ${seen.why}.`,
      };
    }
    return {
      stand,
      why: `Revision ${stand.revision} stood ${lengthOf(stand)} from ${utc(stand.fromMs)}: ${seen.why}.`,
    };
  }
  if (changes.length === 0) return { stand: null, why: 'The log has no change.' };
  const many = `${long.length} of ${stands.length} revisions`;
  return {
    stand: null,
    why:
      long.length === 0
        ? `No revision of those kept stood for ${GOOD.minutes} minutes.`
        : `${many} stood for ${GOOD.minutes} minutes, none with its objectives met: ${best}.`,
  };
}

/** Newest first. What moves no numbers (a freeze, a trip) ends none. */
function standsOf(changes: readonly EpisodeEntry[], nowMs: number): Stand[] {
  const stands: Stand[] = [];
  let toMs = nowMs;
  for (const entry of changes) {
    const { body, epoch, revision } = entry;
    if (entry.kind !== 'change' || body.after === null || !movesNumbers(entry)) continue;
    const fromMs = storedMs(entry);
    stands.push({ epoch, revision, after: body.after, fromMs, toMs });
    toMs = fromMs;
  }
  return stands;
}

/** Some ten minutes in a row within it, newest first, in which all was well; else what was wrong with the newest. */
function goodMinutes(
  { fromMs, toMs }: Stand,
  rows: ReadonlyMap<number, HistoryRow>,
  errorsBelow: number | undefined,
): { good: boolean; why: string } {
  const first = Math.ceil(fromMs / MINUTE_MS);
  const last = Math.floor(toMs / MINUTE_MS) - 1;
  let why = '';
  for (let end = last; end - GOOD.minutes + 1 >= first - 1; end--) {
    const from = Math.max(first, end - GOOD.minutes + 1);
    const judged = judge(from, end, rows, errorsBelow);
    if (judged.good) return judged;
    why ||= judged.why;
  }
  return { good: false, why: why || 'no whole minutes' };
}

function judge(
  from: number,
  to: number,
  rows: ReadonlyMap<number, HistoryRow>,
  errorsBelow: number | undefined,
): { good: boolean; why: string } {
  const sum = { known: 0, watchedS: 0, overloadS: 0, notClosedS: 0, ok: 0, failed: 0 };
  for (let minute = from; minute <= to; minute++) {
    const row = rows.get(minute);
    if (row === undefined || row.watchedS < GOOD.watchedS || row.ok + row.failed === 0) continue;
    sum.known += 1;
    sum.watchedS += row.watchedS;
    sum.overloadS += row.overloadS;
    sum.notClosedS += row.notClosedS;
    sum.ok += row.ok;
    sum.failed += row.failed;
  }
  const span = `of the ${GOOD.minutes} minutes to ${utc((to + 1) * MINUTE_MS)}`;
  if (sum.known < GOOD.known) return { good: false, why: `${sum.known} ${span} are known` };
  const missed = Math.round(sum.overloadS);
  if (sum.notClosedS > 0) {
    return {
      good: false,
      why: `the breaker was not closed in ${Math.round(sum.notClosedS)} s ${span}`,
    };
  }
  if (sum.overloadS > GOOD.overload * sum.watchedS) {
    return { good: false, why: `an objective was missed in ${missed} s ${span}` };
  }
  const failed = sum.failed / (sum.ok + sum.failed);
  if (errorsBelow !== undefined && failed > errorsBelow) {
    const percent = Number((100 * failed).toPrecision(2));
    return { good: false, why: `${percent} % of the answers failed, ${span}` };
  }
  const perSecond = Number((sum.ok / (sum.known * 60)).toPrecision(3));
  return { good: true, why: `objectives met in ${sum.known} ${span}, ${perSecond} good answers/s` };
}

function lengthOf({ fromMs, toMs }: Stand): string {
  const minutes = Math.floor((toMs - fromMs) / MINUTE_MS);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

function utc(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16)}Z`;
}
