/** Starts what is done by schedule: once a minute each limiter is asked what is overdue, one after another. Stage: daemon. */
import { schedule } from 'node-cron';
import type { ManagedLimiter } from './managed-limiter.js';

export interface Jobs {
  /** Ends when a job that runs has ended. */
  stop(): Promise<void>;
}

/**
 * node-cron only starts the question: it skips or doubles runs where clocks are changed and takes zones that do not
 * exist, so it runs in UTC, and what is due when is asked of state.
 */
export function startJobs(limiters: () => Iterable<ManagedLimiter>): Jobs {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();

  async function askAll(): Promise<void> {
    for (const limiter of [...limiters()]) {
      if (stopped) return;
      await limiter.runJobs();
    }
  }

  const task = schedule(
    '* * * * *',
    () => {
      running = askAll();
      return running;
    },
    { timezone: 'UTC', noOverlap: true, unref: true, suppressMissedWarning: true },
  );
  return {
    async stop() {
      stopped = true;
      await task.destroy();
      await running;
    },
  };
}
