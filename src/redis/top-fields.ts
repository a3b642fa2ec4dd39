/** Fields of a minute of top subjects (`{L}:top:<minute>`), written by the SDK, read by the CLI. Stage: enforce → cli. */

/** Minutes live so long from their last write: the widest window is an hour, and the minute under way. */
export const TOP_TTL_MS = 65 * 60_000;
/** Subjects kept of each kind: by a process between two flushes, and by Redis when a minute has grown. */
export const TOP_SUBJECTS = 128;
/** A minute of more fields than this is cut to `TOP_SUBJECTS` of each kind. */
export const TOP_GROWN = 512;
export const MINUTE_MS = 60_000;

/** `taken`: tokens admitted; `denied`: takes denied (in shadow mode: that would have been). */
export type TopKind = 'taken' | 'denied';

const LETTER: Record<TopKind, string> = { taken: 't', denied: 'd' };

export const TOP_FIELD = {
  /** Takes with a subject, and those of them that were read: past a rate they are sampled. */
  seen: 'n',
  read: 'r',
  total: (kind: TopKind) => LETTER[kind],
  /** By how much each count may be too low. */
  error: (kind: TopKind) => `${LETTER[kind]}e`,
  /** `part` is the subject as `encodeSubject` writes it. */
  subject: (kind: TopKind, part: string) => `${LETTER[kind]}:${part}`,
} as const;

/** The kind and key part of a subject's field; null for any other field. */
export function readTopField(field: string): { kind: TopKind; part: string } | null {
  const kind = field.startsWith('t:') ? 'taken' : field.startsWith('d:') ? 'denied' : null;
  return kind === null ? null : { kind, part: field.slice(2) };
}
