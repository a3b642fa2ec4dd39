/** Keys read only where they changed since the last time; what many limiters ask for at once is asked for at once. Stage: sense, actuate. */
import { isCluster } from './read-hashes.js';
import { type RedisClient, runScript } from './run-script.js';
import type { Script, ScriptArg } from './scripts.gen.js';

/** One key, and its mark as last read; empty: not read yet. */
export interface MarkedKey {
  key: string;
  mark: string;
}

export interface Found {
  /** In the order asked for, so many of each key as the script answers. */
  replies: unknown[];
  /** Read after them: nothing in them is newer. */
  nowUs: number;
}

interface Waiting {
  wishes: readonly MarkedKey[];
  ok(found: Found): void;
  no(error: Error): void;
}

export interface MarkedScript {
  /** Its ARGV are the marks of its KEYS; it answers the time, then `each` values of every key. */
  script: Script<string[], ScriptArg[]>;
  each: number;
  /** Keys of one call: it must not hold up everyone else for a millisecond. */
  most: number;
  /** The values come as buffers. */
  packed?: boolean;
}

/** The keys of one question are of one limiter. */
export function readMarked({
  script,
  each,
  most,
  packed = false,
}: MarkedScript): (redis: RedisClient, wishes: readonly MarkedKey[]) => Promise<Found> {
  /** What is asked of a connection in one turn of the event loop. */
  const asked = new WeakMap<RedisClient, Waiting[]>();

  function sendAll(redis: RedisClient): void {
    const all = asked.get(redis) ?? [];
    asked.delete(redis);
    // On a cluster limiters lie on slots of their own.
    const room = isCluster(redis) ? 0 : most;
    let part: Waiting[] = [];
    let keys = 0;
    for (const waiting of all) {
      if (part.length > 0 && keys + waiting.wishes.length > room) {
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
      const [nowUs, ...replies] = await runScript<string[], ScriptArg[], unknown[]>(redis, {
        script,
        keys: wishes.map(({ key }) => key),
        args: wishes.map(({ mark }) => mark),
        packed,
      });
      let at = 0;
      for (const { wishes, ok } of part) {
        const to = at + each * wishes.length;
        ok({ replies: replies.slice(at, to), nowUs: Number(String(nowUs)) });
        at = to;
      }
    } catch (error) {
      // A key of another type is the fault of one limiter, and fails all that were asked with it.
      const shared = part.length > 1 && /WRONGTYPE/.test((error as Error).message);
      if (shared) for (const waiting of part) void send(redis, [waiting]);
      else for (const { no } of part) no(error as Error);
    }
  }

  return (redis, wishes) =>
    new Promise((ok, no) => {
      const waiting = { wishes, ok, no };
      const all = asked.get(redis);
      if (all !== undefined) all.push(waiting);
      else {
        asked.set(redis, [waiting]);
        setImmediate(sendAll, redis);
      }
    });
}
