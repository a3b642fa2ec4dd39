/** What was seen of a limiter since its policy was adopted: whether its law may be trusted with more. Stage: actuate. */
import {
  HISTORY_MINUTE_MS,
  HISTORY_MINUTES,
  type HistoryRow,
  readHistory,
} from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { readSources } from '../redis/sources.js';
import { storedMs } from '../redis/stream-id.js';
import type { RedisClient } from './actuator.js';
import { readEntries } from './audit.js';
import type { EntryValues, StoredEntry } from './entry.js';

const ENOUGH_HOURS = 24;
const ENOUGH_FRESH = 0.99;
/** What adding up tenths of seconds costs. */
const ROUNDING = 1e-9;

export interface Evidence {
  /** Redis ms: when its policy was adopted, or eight days ago, whichever is later. */
  sinceMs: number;
  /** Hours in which there was traffic and a daemon led. */
  hours: number;
  /** Share of them in which every signal that the policy decides by could be read; null: not known. */
  fresh: number | null;
  /** Notes of what the law would have done: a note a minute at most, so at least so many. */
  cuts: number;
  trips: number;
  /** Requests that were admitted in those hours, and how many of them the rate of the law would have denied. */
  admitted: number;
  denied: number;
}

/** Notes looked through; one a minute for a day and a half. */
const NOTES = 2000;

export async function readEvidence(
  redis: RedisClient,
  address: LimiterAddress,
  params: Params,
  nowMs: number,
): Promise<Evidence> {
  const keys = limiterKeys(address);
  const sources = await readSources(redis, keys);
  const adopted = sources.find(({ hash }) => hash === params.policyHash);
  const sinceMs = Math.max(adopted?.atMs ?? 0, nowMs - HISTORY_MINUTES * HISTORY_MINUTE_MS);
  const rows = await readHistory(redis, keys, sinceMs);
  const { entries } = await readEntries(redis, address, { kind: 'note', sinceMs, limit: NOTES });
  return evidenceOf(rows, entries.filter(isRecommendation).reverse(), params, sinceMs);
}

/** A note of what the law, or tuning, would have put in force. */
export function isRecommendation({ kind, body }: StoredEntry): boolean {
  const byLaw = body.law !== undefined || body.reason === 'tune';
  return kind === 'note' && byLaw && body.before !== null && body.after !== null;
}

/** `notes` oldest first. */
export function evidenceOf(
  rows: readonly HistoryRow[],
  notes: readonly StoredEntry[],
  params: Pick<Params, 'rate' | 'inFlightMax'>,
  sinceMs: number,
): Evidence {
  let [watchedS, knownS, freshS, admitted, denied, next] = [0, 0, 0, 0, 0, 0];
  let wouldBe: Pick<EntryValues, 'rate' | 'state'> = { rate: params.rate, state: 'closed' };
  for (const row of rows) {
    watchedS += row.watchedS;
    if (row.freshS !== undefined && row.watchedS > 0) {
      knownS += row.watchedS;
      freshS += row.freshS;
    }
    const endMs = (row.minute + 1) * HISTORY_MINUTE_MS;
    for (; next < notes.length && storedMs(notes[next]!) < endMs; next++) {
      wouldBe = notes[next]!.body.after ?? wouldBe;
    }
    if (row.watchedS === 0) continue;
    admitted += row.admitted;
    const passes = wouldBe.state === 'open' ? 0 : wouldBe.rate * 60;
    denied += Math.max(0, row.admitted - passes);
  }
  return {
    ...{ sinceMs, hours: watchedS / 3600, fresh: knownS > 0 ? freshS / knownS : null },
    ...{ ...countNotes(notes, params), admitted, denied: Math.round(denied) },
  };
}

function countNotes(
  notes: readonly StoredEntry[],
  from: Pick<Params, 'rate' | 'inFlightMax'>,
): { cuts: number; trips: number } {
  let [cuts, trips] = [0, 0];
  let last: Pick<EntryValues, 'rate' | 'inFlightMax'> & { state?: string } = from;
  for (const { body } of notes) {
    const { after } = body;
    if (after === null) continue;
    if (after.state === 'open' && last.state !== 'open') trips += 1;
    else if (after.rate < last.rate || after.inFlightMax < last.inFlightMax) cuts += 1;
    last = after;
  }
  return { cuts, trips };
}

/** What is not enough yet; empty: it is. */
export function lacking({ hours, fresh }: Evidence): string[] {
  const told: string[] = [];
  if (hours < ENOUGH_HOURS) told.push(`watched ${hoursText(hours)} of ${ENOUGH_HOURS} h`);
  if (fresh === null) told.push('how many readings were fresh is not known');
  else if (fresh < ENOUGH_FRESH - ROUNDING) {
    told.push(
      `${shareText(fresh)} of the readings were fresh, ${shareText(ENOUGH_FRESH)} are needed`,
    );
  }
  return told;
}

/** `watched 31.2 h, 99.7 % of the readings fresh; the law would have cut 12 times and …`. */
export function evidenceText(evidence: Evidence): string {
  const { hours, fresh, cuts, trips, admitted, denied } = evidence;
  const refused =
    admitted === 0
      ? '; no whole minute with requests is known yet'
      : `, and its rate denied ${denied} of ${admitted} requests (${shareText(denied / admitted)})`;
  const readings =
    fresh === null ? 'readings not known' : `${shareText(fresh)} of the readings fresh`;
  return `watched ${hoursText(hours)}, ${readings}; the law would have cut ${times(cuts)}, tripped ${times(trips)}${refused}`;
}

/** Rounded down: 23.99 h are not yet 24 h. */
function hoursText(hours: number): string {
  if (hours < 1) return `${Math.floor(hours * 60 + ROUNDING)} min`;
  return `${Math.floor(hours * 10) / 10} h`;
}

/** Rounded down: 98.99 % must not read as 99 %. */
function shareText(share: number): string {
  return `${Math.floor((share + ROUNDING) * 1000) / 10} %`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
