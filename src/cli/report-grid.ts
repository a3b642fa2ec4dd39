/** Along the plots of a report: which minutes make one step, and ticks at round times of the reader's clock. Pure. Stage: cli. */
import { HISTORY_MINUTE_MS } from '../redis/history-rows.js';
import type { Axis } from '../sim/plot.js';
import { localTime } from './text.js';

/** Steps along a plot at most: of a longer time several minutes make one. */
const POINTS = 720;

/** What lies along the plots: steps of so many minutes `each`, from the minute `first` on. */
export interface Grid {
  first: number;
  each: number;
  /** How many. */
  to: number;
}

export function gridOf(sinceMs: number, atMs: number): Grid {
  const first = Math.floor(sinceMs / HISTORY_MINUTE_MS);
  const minutes = Math.max(1, Math.floor(atMs / HISTORY_MINUTE_MS) - first + 1);
  const each = Math.ceil(minutes / POINTS);
  return { first, each, to: Math.ceil(minutes / each) };
}

/** Round lengths of time between two ticks: the next above a day is a whole number of days. */
const TICK_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440];

/** A tick at each round time of the reader's clock, `most` of them at most. */
export function axisOf({ first, each, to }: Grid, most: number): Axis {
  const minutes = to * each;
  const least = minutes / most;
  const every = TICK_MINUTES.find((one) => one >= least) ?? Math.ceil(least / 1440) * 1440;
  const zone = new Date(first * HISTORY_MINUTE_MS).getTimezoneOffset();
  const from = Math.ceil((first - zone) / every) * every + zone;
  const ticks = Array.from({ length: Math.ceil((first + minutes - from) / every) }, (_, i) => {
    const at = from + i * every;
    const text = localTime(at * HISTORY_MINUTE_MS).slice(0, 16);
    const label =
      every >= 1440 ? text.slice(5, 10) : minutes > 2880 ? text.slice(5) : text.slice(11);
    return [(at - first) / each, label] as const;
  });
  return { to, ticks };
}
