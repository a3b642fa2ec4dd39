/** Reads telemetry seconds as text, only those that grew; what many limiters ask for at once is asked for at once. Stage: sense. */
import { isCluster } from './read-hashes.js';
import { type RedisClient, runScript } from './run-script.js';
import { type ScriptArg, secondsScript } from './scripts.gen.js';
import { FIELD } from './telemetry-fields.js';

/** One second, and its mark as last read; empty: not read yet. */
export interface SecondWish {
  key: string;
  mark: string;
}

/**
 * What tells whether a second has grown since: each flush adds its count of flushes last. The rest is for a second that
 * was lost and began anew.
 */
export function markOf(text: string): string {
  const flushes = countOf(text, FIELD.flushes);
  if (flushes === '') return '';
  let lines = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
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

interface Waiting {
  wishes: readonly SecondWish[];
  ok(found: Seconds): void;
  no(error: Error): void;
}

/** Keys of one call: it holds up everyone else for well under a millisecond. */
const MOST_KEYS = 96;

/** What is asked of a connection in one turn of the event loop. */
const asked = new WeakMap<RedisClient, Waiting[]>();

/** All keys are of one limiter. */
export function readSeconds(redis: RedisClient, wishes: readonly SecondWish[]): Promise<Seconds> {
  return new Promise((ok, no) => {
    const waiting = { wishes, ok, no };
    const all = asked.get(redis);
    if (all !== undefined) all.push(waiting);
    else {
      asked.set(redis, [waiting]);
      setImmediate(sendAll, redis);
    }
  });
}

function sendAll(redis: RedisClient): void {
  const all = asked.get(redis) ?? [];
  asked.delete(redis);
  // On a cluster limiters lie on slots of their own.
  const most = isCluster(redis) ? 0 : MOST_KEYS;
  let part: Waiting[] = [];
  let keys = 0;
  for (const waiting of all) {
    if (part.length > 0 && keys + waiting.wishes.length > most) {
      void send(redis, part);
      part = [];
      keys = 0;
    }
    part.push(waiting);
    keys += waiting.wishes.length;
  }
  if (part.length > 0) void send(redis, part);
}

async function send(redis: RedisClient, part: readonly Waiting[]): Promise<void> {
  try {
    const wishes = part.flatMap((waiting) => waiting.wishes);
    const [nowUs, ...texts] = await runScript<
      string[],
      ScriptArg[],
      [string, ...(string | null)[]]
    >(redis, {
      script: secondsScript,
      keys: wishes.map(({ key }) => key),
      args: wishes.map(({ mark }) => mark),
    });
    let at = 0;
    for (const { wishes, ok } of part) {
      ok({ texts: texts.slice(at, at + wishes.length), nowUs: Number(nowUs) });
      at += wishes.length;
    }
  } catch (error) {
    // A key of another type is the fault of one limiter, and fails all that were asked with it.
    const shared = part.length > 1 && /WRONGTYPE/.test((error as Error).message);
    if (shared) for (const waiting of part) void send(redis, [waiting]);
    else for (const { no } of part) no(error as Error);
  }
}
