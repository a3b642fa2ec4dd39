/** Answers that are read of many limiters or long logs: once a tick for all who ask the same, and never two at once of a kind. Stage: api. */
import type { Clock } from '../clock.js';
import { createClientLimit } from './client-limit.js';
import { tooOften } from './problem.js';

export interface SharedAnswers {
  /**
   * The answer to a question: the one that is known, if it is no older than a tick, else read anew.
   * A fault is one, too.
   * @param lane what reads the same: its questions are read one after another, and only so many different ones
   */
  answer(lane: string, question: string, read: () => Promise<string>): Promise<string>;
  /** Something has changed: nobody who asks from now on gets what was read before. */
  forget(): void;
}

/** Different questions of a lane at once, as of people who turn pages; then about one a tick. */
const MOST_DIFFERENT = 20;

interface Lane {
  /** Ends with the read before. */
  last: Promise<unknown>;
  known: Map<string, { text: Promise<string>; atMs: number; done: boolean }>;
}

export function createSharedAnswers(options: { clock: Clock; freshMs: number }): SharedAnswers {
  const { clock, freshMs } = options;
  const lanes = new Map<string, Lane>();
  const rate = 1000 / freshMs;
  const limit = createClientLimit(
    { rate, capacity: MOST_DIFFERENT },
    // What bounds all lanes together is how many requests there may be.
    { rate: 1e6, capacity: 1e6 },
  );

  /** Who waits for a read is told by it, however long it takes. */
  function dropOld(nowMs: number): void {
    for (const [name, { known }] of lanes) {
      for (const [question, { atMs, done }] of known) {
        if (done && nowMs - atMs >= freshMs) known.delete(question);
      }
      if (known.size === 0) lanes.delete(name);
    }
  }

  return {
    answer(name, question, read) {
      const nowMs = clock.monotonicMs();
      dropOld(nowMs);
      const lane = lanes.get(name) ?? { last: Promise.resolve(), known: new Map() };
      const there = lane.known.get(question);
      if (there !== undefined) return there.text;
      const { allowed, retryAfterMs } = limit.take(name, nowMs);
      if (!allowed) return Promise.reject(tooOften(retryAfterMs));
      const text = lane.last.then(read);
      const one = { text, atMs: nowMs, done: false };
      lane.last = text
        .catch(() => {})
        .then(() => {
          one.done = true;
        });
      lane.known.set(question, one);
      lanes.set(name, lane);
      return text;
    },
    forget() {
      for (const { known } of lanes.values()) known.clear();
    },
  };
}
