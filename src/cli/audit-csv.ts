/** Audit entries as CSV (RFC 4180), in which no cell is a formula and no character is obeyed. Pure. Stage: cli. */
import type { StoredEntry, UnreadableEntry } from '../actuate/audit.js';
import { storedMs } from '../redis/stream-id.js';
import { iso } from '../view/entry.js';
import { clean } from './text.js';

type Cell = string | number | null | undefined;

interface Row {
  limiter: string;
  entry: StoredEntry | UnreadableEntry;
}

const VALUES = ['mode', 'state', 'rate', 'capacity', 'inFlightMax'] as const;

const COLUMNS = [
  ...['time', 'limiter', 'kind', 'epoch', 'revision', 'actor_kind', 'actor', 'reason'],
  ...VALUES.flatMap((name) => [`${name}_before`, `${name}_after`]),
  ...['sentence', 'person_reason', 'law', 'policy_hash', 'id', 'hash', 'prev'],
];

/** The first line. */
export function csvHead(): string {
  return line(COLUMNS);
}

/** One entry; of one that cannot be read its place, with why as the sentence. */
export function csvRow({ limiter, entry }: Row): string {
  if ('why' in entry) {
    const known = [iso(storedMs(entry)), limiter, 'unreadable', entry.epoch, entry.revision];
    const blank = VALUES.flatMap(() => ['', '']);
    return line([...known, '', '', '', ...blank, entry.why, '', '', '', entry.id, '', '']);
  }
  const { id, kind, epoch, revision, body, hash, prev } = entry;
  const { actor, reason, before, after, sentence, detail, law, policyHash } = body;
  const why = typeof detail?.why === 'string' ? detail.why : '';
  return line([
    ...[iso(storedMs(entry)), limiter, kind, epoch, revision, actor.kind, actor.name, reason],
    ...VALUES.flatMap((name) => [before?.[name], after?.[name]]),
    ...[sentence, why, law, policyHash, id, hash, prev],
  ]);
}

function line(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * Spreadsheets run what begins like a formula, also behind spaces; numbers of ours are none. Control characters
 * and direction marks are shown as `\x1b`, so a cell never has a line break of its own.
 */
export function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell === 'number') return String(cell);
  const text = clean(cell);
  const inert = FORMULA.test(cell) ? `'${text}` : text;
  return /[",]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

const FORMULA = /^\s*[=+\-@\t\r\n＝＋－＠]/;
