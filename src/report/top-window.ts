/** Minutes of top subjects merged into one window, with the error of each number. Pure. Stage: report. */
import { createHeavy, type Heavy, heaviest, mergeHeavy } from '../enforce/heavy-hitters.js';
import { decodeSubject } from '../redis/keys.js';
import { readTopField, TOP_FIELD, type TopKind } from '../redis/top-fields.js';

export interface TopSubject {
  subject: string;
  /** Longer than 64 bytes, or of many special characters: only its hash is kept. */
  hashed: boolean;
  /** At least so many, at most `error` more; null: too few to be among those kept. */
  tokens: number | null;
  denied: number | null;
}

export interface TopWindow {
  taken: Heavy;
  denied: Heavy;
  /** Takes with a subject, and those of them that were read. */
  seen: number;
  read: number;
}

/** The hashes of some minutes as one; whatever else stands in them counts for nothing. */
export function mergeMinutes(minutes: readonly Record<string, string>[]): TopWindow {
  const window: TopWindow = { taken: createHeavy(), denied: createHeavy(), seen: 0, read: 0 };
  for (const fields of minutes) {
    window.seen += numberOf(fields, TOP_FIELD.seen);
    window.read += numberOf(fields, TOP_FIELD.read);
    for (const kind of ['taken', 'denied'] as const) {
      mergeHeavy(window[kind], {
        counts: countsOf(fields, kind),
        error: numberOf(fields, TOP_FIELD.error(kind)),
        total: numberOf(fields, TOP_FIELD.total(kind)),
      });
    }
  }
  return window;
}

/** The heaviest of one kind, each with what is known of it as the other. */
export function topOf(window: TopWindow, kind: TopKind, limit: number): TopSubject[] {
  return heaviest(window[kind], limit).map(([part]) => ({
    subject: decodeSubject(part),
    hashed: part.startsWith('#'),
    tokens: window.taken.counts.get(part) ?? null,
    denied: window.denied.counts.get(part) ?? null,
  }));
}

function countsOf(fields: Record<string, string>, kind: TopKind): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of Object.keys(fields)) {
    const field = readTopField(name);
    const count = numberOf(fields, name);
    if (field?.kind === kind && count > 0) counts.set(field.part, count);
  }
  return counts;
}

function numberOf(fields: Record<string, string>, name: string): number {
  const value = Number(fields[name] ?? 0);
  return Number.isFinite(value) && value > 0 ? value : 0;
}
