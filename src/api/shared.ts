/** Answers that are read of many limiters or long logs: once a tick for all who ask the same, and never two at once of a kind. Stage: api. */
import type { Clock } from '../clock.js';
import { createClientLimit } from './client-limit.js';
import { tooOften } from './problem.js';

export interface SharedAnswers {
  /**
   * The answer to a question: the one that is known, if it is no older than a tick, else read anew.
   * A fault is one, too.
   */
  answer(asked: SharedQuestion, read: () => Promise<string>): Promise<string>;
  /** Something has changed: nobody who asks from now on gets what was read before. */
  forget(): void;
}

export interface SharedQuestion {
  /** Who asks: each may have only so many different questions of a lane read. */
  client: string;
  /** What reads the same: its questions are read one after another. */
  lane: string;
  question: string;
}

/** Different questions of a client in a lane at once, as of people who turn pages; then about one a tick. */
const MOST_DIFFERENT = 20;

interface Lane {
  /** Ends with the read before. */
  last: Promise<unknown>;
  /** Reads that are not over, forgotten ones too: while there are any, the next has to wait in this very lane. */
  underWay: number;
  known: Map<string, Known>;
}

interface Known {
  text: Promise<string>;
  atMs: number;
  state: 'waits' | 'reads' | 'done';
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
    for (const [name, { known, underWay }] of lanes) {
      for (const [question, { atMs, state }] of known) {
        if (state === 'done' && nowMs - atMs >= freshMs) known.delete(question);
      }
      if (known.size === 0 && underWay === 0) lanes.delete(name);
    }
  }

  return {
    answer({ client, lane: name, question }, read) {
      const nowMs = clock.monotonicMs();
      dropOld(nowMs);
      const lane = lanes.get(name) ?? { last: Promise.resolve(), underWay: 0, known: new Map() };
      const there = lane.known.get(question);
      if (there !== undefined) return there.text;
      const { allowed, retryAfterMs } = limit.take(`${client} ${name}`, nowMs);
      if (!allowed) return Promise.reject(tooOften(retryAfterMs));
      const text = lane.last.then(() => {
        one.state = 'reads';
        return read();
      });
      const one: Known = { text, atMs: nowMs, state: 'waits' };
      lane.underWay += 1;
      lane.last = text
        .catch(() => {})
        .then(() => {
          one.state = 'done';
          lane.underWay -= 1;
        });
      lane.known.set(question, one);
      lanes.set(name, lane);
      return text;
    },
    forget() {
      for (const { known } of lanes.values()) {
        // What is yet to be read will tell of the change.
        for (const [question, { state }] of known) if (state !== 'waits') known.delete(question);
      }
    },
  };
}
