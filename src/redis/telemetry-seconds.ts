/** Reads telemetry seconds as bytes, only those that grew. Stage: sense. */
import { type MarkedKey, readMarked } from './read-marked.js';
import type { RedisClient } from './run-script.js';
import { secondsScript } from './scripts.gen.js';
import { FIELD } from './telemetry-fields.js';

const NEWLINE = 10;

/**
 * What tells whether a second has grown since: each flush adds its count of flushes last. The rest is for a second that
 * was lost and began anew.
 */
export function markOf(lines: Buffer): string {
  const flushes = countOf(lines, FLUSHES);
  if (flushes === '') return '';
  let ends = 1;
  // Without a branch, which could not be foretold: lines are of any length.
  for (let at = 0; at < lines.length; at++) ends += Number(lines[at] === NEWLINE);
  return `${flushes} ${ends >> 1} ${countOf(lines, OFFERED)}`;
}

const FLUSHES = Buffer.from(`\n${FIELD.flushes}\n`);
const OFFERED = Buffer.from(`\n${FIELD.offered}\n`);

/** Names and counts are told apart by their first character: no count is a name. */
function countOf(lines: Buffer, field: Buffer): string {
  const first = field.compare(lines, 0, field.length - 1, 1) === 0;
  const at = first ? -1 : lines.indexOf(field);
  if (at === -1 && !first) return '';
  const from = at + field.length;
  const end = lines.indexOf(NEWLINE, from);
  return lines.toString('latin1', from, end === -1 ? lines.length : end);
}

export interface Seconds {
  /** In the order asked for: fields and counts, a line each; empty: not there; null: nothing was added. */
  lines: (Buffer | null)[];
  /** Read after them: nothing in them is newer. */
  nowUs: number;
}

/** Keys of one call: it holds up everyone else for well under a millisecond. */
const MOST_KEYS = 96;

const read = readMarked({ script: secondsScript, each: 1, most: MOST_KEYS, packed: true });

/** All keys are of one limiter. */
export async function readSeconds(
  redis: RedisClient,
  wishes: readonly MarkedKey[],
): Promise<Seconds> {
  const { replies, nowUs } = await read(redis, wishes);
  return { lines: replies as (Buffer | null)[], nowUs };
}
