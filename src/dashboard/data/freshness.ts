/** How old what the page shows is, and whether it still is the present; when to try again. Pure. Stage: dashboard. */

export interface Heard {
  /** Redis ms of the newest look at Redis. */
  atMs: number;
  /** This page's monotonic clock when that number last moved on. */
  movedAtMs: number;
  /** Redis is looked at so often, and each of all limiters once in so long. */
  lookMs: number;
  everyMs: number;
  /** Redis does not answer the daemon; null: it does. */
  redisAway: string | null;
}

/** A tick that comes so late is no reason for alarm: clocks of a busy machine are not that good. */
const SLACK_MS = 500;

/** Beside what was known: time counts only from an answer that moved on. */
export function hear(
  before: Heard | null,
  tick: Omit<Heard, 'movedAtMs'>,
  monotonicMs: number,
): Heard {
  const moved = before === null || tick.atMs !== before.atMs;
  return { ...tick, movedAtMs: moved ? monotonicMs : before.movedAtMs };
}

export function ageMs(heard: Heard | null, monotonicMs: number): number | null {
  return heard === null ? null : Math.max(0, monotonicMs - heard.movedAtMs);
}

/** After two looks without a word it is the past, and the page must say so. */
export function isStale(heard: Heard | null, monotonicMs: number): boolean {
  const age = ageMs(heard, monotonicMs);
  return age !== null && age > 2 * heard!.lookMs + SLACK_MS;
}

/** Redis's time by now, as far as it is known; else this machine's. */
export function redisNow(heard: Heard | null, monotonicMs: number, wallMs: number): number {
  return heard === null ? wallMs : heard.atMs + Math.max(0, monotonicMs - heard.movedAtMs);
}

/** ms before the next try: doubles from a half second to eight, each a little apart from other browsers'. */
export function retryDelay(failures: number, random: number): number {
  const most = Math.min(8000, 500 * 2 ** Math.max(0, failures - 1));
  return Math.round(most * (0.75 + 0.25 * random));
}
