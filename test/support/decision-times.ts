/** How long decisions took, held against their deadline: the machine may be busy, but nothing may wait for Redis. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect } from 'vitest';

/** What a busy machine may add, besides its longest stop of this process: still far from waiting for ever. */
const SLACK_MS = 10_000;

export interface DecisionTimes {
  /** Calls, and keeps how long it took. */
  of<T>(call: () => Promise<T>): Promise<T>;
  /** Each was decided within its deadline, as far as this process could run at all. */
  expectWithin(deadlineMs: number): void;
}

/** Counts from now on, until it is asked. */
export function decisionTimes(): DecisionTimes {
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  let longestMs = 0;
  let count = 0;
  return {
    async of(call) {
      const beganMs = performance.now();
      const decision = await call();
      longestMs = Math.max(longestMs, performance.now() - beganMs);
      count += 1;
      return decision;
    },
    expectWithin(deadlineMs) {
      expect(count).toBeGreaterThan(0);
      lag.disable();
      const lagMs = lag.max / 1e6;
      expect(longestMs, `held up for ${Math.round(lagMs)} ms`).toBeLessThan(
        deadlineMs + SLACK_MS + lagMs,
      );
    },
  };
}
