/** Audit entries as text, with each field before and after, as JSON, or as CSV. Stage: cli. */
import type { StoredEntry } from '../actuate/audit.js';
import { isReadable } from '../actuate/entry.js';
import type { LimiterAddress } from '../redis/keys.js';
import { diffOf, type FieldDiff } from '../view/diff.js';
import { type EntriesQuery, type ListedEntry, readEntriesOf } from '../view/entries.js';
import { entryRecord } from '../view/entry.js';
import { csvHead, csvRow } from './audit-csv.js';
import { entryLines, unreadableLine } from './entry-text.js';
import type { CliIo, Colours } from './output.js';
import type { Session } from './session.js';
import { clean, number } from './text.js';

/** Who, why, what kind and when. */
export type EntryChoice = Omit<EntriesQuery, 'limit' | 'before'>;

/** In which form, and how many. */
export interface EntryForm {
  diff: boolean;
  full: boolean;
  csv: boolean;
  limit: number | undefined;
  /** The limiter on the command line; undefined: all. */
  named: string | undefined;
}

export const DEFAULT_LIMIT = 20;
/** A file is read in pages of so many. */
const CSV_PAGE = 500;

export async function showEntries(
  io: CliIo,
  session: Session,
  addresses: readonly LimiterAddress[],
  query: EntriesQuery,
  form: EntryForm,
): Promise<void> {
  if (form.csv) return writeCsv(io, session, addresses, query, form.limit);
  const limit = form.limit ?? DEFAULT_LIMIT;
  const page = await readEntriesOf(session.redis, addresses, { ...query, limit });
  if (io.flags.json) {
    io.json(entriesJson(page.listed, form, page.next));
    return;
  }
  const withLimiter = form.named === undefined && addresses.length > 1;
  for (const each of page.listed) io.out(entryText(io, each, { ...form, withLimiter }));
  if (page.listed.length === 0) io.say(nothing(query, form.named));
  else if (page.next !== null) {
    io.say(io.ce.dim(`Older entries exist: --limit ${limit * 5} shows more.`));
  }
}

/** `entries` and `unreadable`, as every command with `--json` lists them. */
export function entriesJson(
  listed: readonly ListedEntry[],
  form: Pick<EntryForm, 'full' | 'diff'>,
  next: string | null,
) {
  return {
    entries: listed.flatMap(({ entry }) => (isReadable(entry) ? [entryJson(entry, form)] : [])),
    unreadable: listed.flatMap(({ limiter, entry }) =>
      isReadable(entry) ? [] : [{ limiter, ...entry }],
    ),
    next,
  };
}

export function entryJson(entry: StoredEntry, { full, diff }: Pick<EntryForm, 'full' | 'diff'>) {
  const { before, after } = entry.body;
  return { ...entryRecord(entry, full), ...(diff ? { diff: diffOf(before, after) } : {}) };
}

export function entryText(
  io: CliIo,
  { limiter, entry }: ListedEntry,
  { diff, withLimiter }: { diff: boolean; withLimiter: boolean },
): string {
  if (!isReadable(entry)) return unreadableLine(io.c, entry, withLimiter ? limiter : '');
  const lines = entryLines(io.c, entry, { columns: io.columns, withLimiter, numbers: !diff });
  if (!diff) return lines;
  return [lines, ...diffLines(io.c, diffOf(entry.body.before, entry.body.after))].join('\n');
}

const NAMES: Record<FieldDiff['field'], string> = {
  mode: 'mode',
  state: 'breaker',
  rate: 'rate',
  capacity: 'capacity',
  inFlightMax: 'in-flight cap',
  reserveDefault: 'reserve from default',
  reserveSheddable: 'reserve from sheddable',
};

/** `rate           400/s → 300/s  (−25 %)`. */
function diffLines(c: Colours, diff: readonly FieldDiff[]): string[] {
  return diff.map(({ field, unit, before, after }) => {
    const was = before === null ? '' : `${c.dim(valueText(before, unit))} → `;
    return `       ${NAMES[field].padEnd(22)} ${was}${c.bold(valueText(after, unit))}${byHowMuch(before, after)}`;
  });
}

function valueText(value: string | number, unit: FieldDiff['unit']): string {
  if (typeof value === 'string') return clean(value);
  if (unit === 'per_second') return `${number(value)}/s`;
  if (unit === 'share') return `${number(value * 100)} %`;
  if (unit === 'requests' && value === 0) return 'none';
  return unit === '' ? number(value) : `${number(value)} ${unit}`;
}

function byHowMuch(before: FieldDiff['before'], after: FieldDiff['after']): string {
  if (typeof before !== 'number' || typeof after !== 'number' || before <= 0 || after <= 0)
    return '';
  const percent = Math.round((after / before - 1) * 100);
  return `  (${percent < 0 ? '−' : '+'}${Math.abs(percent)} %)`;
}

/** All that match, page by page in flat memory, newest first. */
async function writeCsv(
  io: CliIo,
  session: Session,
  addresses: readonly LimiterAddress[],
  query: EntriesQuery,
  limit = Number.POSITIVE_INFINITY,
): Promise<void> {
  io.raw(csvHead());
  let left = limit;
  let before = query.before;
  while (left > 0) {
    const page = await readEntriesOf(session.redis, addresses, {
      ...query,
      before,
      limit: Math.min(CSV_PAGE, left),
    });
    io.raw(page.listed.map(csvRow).join(''));
    left -= page.listed.length;
    if (page.next === null) return;
    before = page.next;
  }
}

function nothing(query: EntriesQuery, named: string | undefined): string {
  const { sinceMs, untilMs, reason = [], actor, by, kind } = query;
  const chosen = [sinceMs, untilMs, actor, by, kind].some((each) => each !== undefined);
  const matching = chosen || reason.length > 0 ? ' that match' : '';
  const who = named === undefined ? 'No limiter has entries' : `${clean(named)} has no entries`;
  return `${who}${matching}.`;
}
