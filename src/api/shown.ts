/** Limiters that somebody who follows all has in sight just now, within a bound for all who look; forgotten when it is not said again. Stage: api. */
import type { Clock } from '../clock.js';

export interface Shown {
  /** They are in sight from now on, for a while. */
  see(limiters: readonly string[]): void;
  /** Those still in sight. */
  names(): string[];
}

/** So long after it was said last. */
export const SHOWN_MS = 10_000;
/** What one window shows, with room: a tall screen has some forty rows. */
export const MOST_OF_ONE = 100;
const MOST_OF_ALL = 200;

export function createShown(clock: Clock): Shown {
  /** Until when each, the latest said at the end. */
  const untilMs = new Map<string, number>();

  function drop(nowMs: number): void {
    for (const [name, until] of untilMs) {
      if (until > nowMs && untilMs.size <= MOST_OF_ALL) break;
      untilMs.delete(name);
    }
  }

  return {
    see(limiters) {
      const nowMs = clock.monotonicMs();
      for (const name of limiters) {
        untilMs.delete(name);
        untilMs.set(name, nowMs + SHOWN_MS);
      }
      drop(nowMs);
    },
    names() {
      drop(clock.monotonicMs());
      return [...untilMs.keys()];
    },
  };
}
