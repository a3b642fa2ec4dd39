/** Sources shared by all limiters of a daemon: opened for the first that reads them, asked once a tick, closed after the last. Stage: sense. */
import type { Missing } from './readings.js';
import { type Look, missing, type Seen, type Source, type SourceDeps } from './source.js';
import { createSource, type SourcedSignal, sourceKey } from './sources.js';

/** The sourced signals of one limiter, by the names of its policy. */
export interface OpenSignals {
  /**
   * Begins a look at each source that was not asked for this tick. Settles when what was begun for these signals has
   * ended, null when nothing is under way; never rejects. One that still runs from a tick before goes on, and is not
   * asked twice.
   */
  ask(): Promise<unknown> | null;
  /** The newest answer that is there for each signal, however old. */
  newest(): [name: string, found: Seen | Missing][];
  /** Ends when each source that nobody else reads is closed. */
  close(): Promise<void>;
}

export interface SourcePool {
  open(signals: Readonly<Record<string, SourcedSignal>>): OpenSignals;
  /** Sources that are open now. */
  readonly size: number;
}

export interface SourcePoolOptions extends SourceDeps {
  /** A look that began so long ago is of this tick: half a tick. */
  everyMs: number;
}

/** One source and who reads what of it. Equal signals of many limiters are one signal to it. */
interface Shared {
  key: string;
  source: Source;
  signals: Map<string, { signal: SourcedSignal; readers: number }>;
  /** What the newest look that ended has found. */
  found: Look | null;
  beganMs: number;
  under: Promise<void> | null;
}

const FIRST = missing('not_started', 'its first look has not ended');

export function createSourcePool(options: SourcePoolOptions): SourcePool {
  const { env, clock, everyMs } = options;
  const pool = new Map<string, Shared>();

  function enter(signal: SourcedSignal): { shared: Shared; text: string } {
    const key = sourceKey(signal, env);
    let shared = pool.get(key);
    if (shared === undefined) {
      shared = {
        key,
        source: createSource(signal, options),
        signals: new Map(),
        found: null,
        beganMs: Number.NEGATIVE_INFINITY,
        under: null,
      };
      pool.set(key, shared);
    }
    const text = JSON.stringify(signal);
    const known = shared.signals.get(text);
    if (known === undefined) {
      shared.signals.set(text, { signal, readers: 1 });
      // Nobody has asked for it yet: it need not wait for the next tick.
      shared.beganMs = Number.NEGATIVE_INFINITY;
    } else known.readers += 1;
    return { shared, text };
  }

  async function leave(shared: Shared, text: string): Promise<void> {
    const known = shared.signals.get(text);
    if (known === undefined) return;
    known.readers -= 1;
    if (known.readers > 0) return;
    shared.signals.delete(text);
    if (shared.signals.size > 0) return;
    pool.delete(shared.key);
    await shared.source.close();
  }

  function ask(shared: Shared): Promise<void> | null {
    const nowMs = clock.monotonicMs();
    if (shared.under !== null || nowMs - shared.beganMs < everyMs) return shared.under;
    shared.beganMs = nowMs;
    const wanted = [...shared.signals.values()].map(({ signal }) => signal);
    shared.under = shared.source
      .look(wanted)
      .then(
        (found) => {
          shared.found = found;
        },
        // A source never rejects; one that does all the same must not end the daemon.
        (error: Error) => {
          const why = missing('error', error.message);
          shared.found = new Map(wanted.map((signal) => [signal, why]));
        },
      )
      .finally(() => {
        shared.under = null;
      });
    return shared.under;
  }

  return {
    open(signals) {
      const mine = Object.entries(signals).map(([name, signal]) => ({ name, ...enter(signal) }));
      const sources = new Set(mine.map(({ shared }) => shared));
      let open = true;
      return {
        ask() {
          const begun = [...sources].map(ask).filter((under) => under !== null);
          return begun.length > 0 ? Promise.all(begun) : null;
        },
        newest() {
          return mine.map(({ name, shared, text }) => {
            const signal = shared.signals.get(text)?.signal;
            return [name, (signal && shared.found?.get(signal)) ?? FIRST];
          });
        },
        async close() {
          if (!open) return;
          open = false;
          await Promise.all(mine.map(({ shared, text }) => leave(shared, text)));
        },
      };
    },
    get size() {
      return pool.size;
    },
  };
}
