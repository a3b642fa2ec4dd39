/** Do two pages come from one process? Behind one port there may be several, each with counts of its own. Pure. Stage: sense. */
import type { Page } from './scrape-parse.js';

export type Same =
  | { verdict: 'same' }
  /** All counts began anew: a restart, or another process; the next pages tell. */
  | { verdict: 'restarted'; why: string }
  /** More than one process answers. */
  | { verdict: 'several'; why: string };

/**
 * A process that restarts begins later than it did before, and all its counts fall. A start that is earlier, or counts
 * of which some fall and others rise, are those of another process. Read as restarts, they would make of each turn of
 * the load balancer a burst of requests that never came.
 */
export function compare(before: Page, now: Page): Same {
  if (before.startS !== null && now.startS !== null && before.startS !== now.startS) {
    return now.startS < before.startS
      ? { verdict: 'several', why: 'process_start_time_seconds went back' }
      : { verdict: 'restarted', why: 'process_start_time_seconds is later than before' };
  }
  let fell: string | undefined;
  let rose = false;
  for (const [key, value] of now.counters) {
    const last = before.counters.get(key);
    if (last === undefined || value === last) continue;
    if (value > last) rose = true;
    else fell ??= `${key} fell from ${last} to ${value}`;
  }
  if (fell === undefined) return { verdict: 'same' };
  // Started at the same time and yet behind: workers that one parent forked at once.
  if (now.startS !== null && before.startS !== null) return { verdict: 'several', why: fell };
  if (rose) return { verdict: 'several', why: `${fell}, while others rose` };
  return { verdict: 'restarted', why: fell };
}
