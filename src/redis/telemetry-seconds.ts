/** Reads telemetry seconds as bytes, only those that grew. Stage: sense. */
import { type MarkedKey, readMarked } from './read-marked.js';
import type { RedisClient } from './run-script.js';
import { secondsScript } from './scripts.gen.js';

export interface Second {
  /** While it stands, no flush was added and nothing began anew; empty: the second is not there. */
  mark: string;
  /** Fields and counts in turn, a line each. */
  lines: Buffer;
}

export interface Seconds {
  /** In the order asked for; null: nothing was added since its mark. */
  seconds: (Second | null)[];
  /** Read after them: nothing in them is newer. */
  nowUs: number;
}

/** Keys of one call: it holds up everyone else for well under a millisecond. */
const MOST_KEYS = 96;
const NEWLINE = 10;

const read = readMarked({ script: secondsScript, each: 1, most: MOST_KEYS, packed: true });

/** All keys are of one limiter. */
export async function readSeconds(
  redis: RedisClient,
  wishes: readonly MarkedKey[],
): Promise<Seconds> {
  const { replies, nowUs } = await read(redis, wishes);
  return { seconds: (replies as (Buffer | null)[]).map(secondOf), nowUs };
}

function secondOf(reply: Buffer | null): Second | null {
  if (reply === null) return null;
  const end = reply.indexOf(NEWLINE);
  return { mark: reply.toString('latin1', 0, Math.max(0, end)), lines: reply.subarray(end + 1) };
}
