/** Reads telemetry seconds as text, only those that grew. Stage: sense. */
import { type MarkedKey, readMarked } from './read-marked.js';
import type { RedisClient } from './run-script.js';
import { secondsScript } from './scripts.gen.js';
import { FIELD } from './telemetry-fields.js';

const NEWLINE = 10;

/**
 * What tells whether a second has grown since: each flush adds its count of flushes last. The rest is for a second that
 * was lost and began anew.
 */
export function markOf(text: string): string {
  const flushes = countOf(text, FIELD.flushes);
  if (flushes === '') return '';
  let lines = 1;
  // Without a branch, which could not be foretold: lines are of any length.
  for (let at = 0; at < text.length; at++) lines += Number(text.charCodeAt(at) === NEWLINE);
  return `${flushes} ${lines >> 1} ${countOf(text, FIELD.offered)}`;
}

/** Names and counts are told apart by their first character: no count is a name. */
function countOf(text: string, field: string): string {
  const start = `${field}\n`;
  const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1;
  if (at === 0 && !text.startsWith(start)) return '';
  const from = at + start.length;
  const end = text.indexOf('\n', from);
  return text.slice(from, end === -1 ? text.length : end);
}

export interface Seconds {
  /** In the order asked for: fields and counts, a line each; empty: not there; null: nothing was added. */
  texts: (string | null)[];
  /** Read after them: nothing in them is newer. */
  nowUs: number;
}

/** Keys of one call: it holds up everyone else for well under a millisecond. */
const MOST_KEYS = 96;

const read = readMarked(secondsScript, 1, MOST_KEYS);

/** All keys are of one limiter. */
export async function readSeconds(
  redis: RedisClient,
  wishes: readonly MarkedKey[],
): Promise<Seconds> {
  const { replies, nowUs } = await read(redis, wishes);
  return { texts: replies as (string | null)[], nowUs };
}
