/** The rate that a history shows: a percentile of good throughput, and never a step of a ratchet. Stage: tune. */
import type { HistoryRow } from '../redis/history-rows.js';
import { type Ranked, ranked, rankedQuantile } from './band.js';
import { goodRate, show } from './usable.js';

const RATE_QUANTILE = 0.95;
/** Healthy minutes in which the limit denied, from which on the rate is not lowered below what passed then. */
const BOUND_MINUTES = 5;

export interface Passed {
  all: Ranked;
  /** Of minutes in which the rate denied more than a hundredth of what was offered. */
  denied: Ranked;
}

/** Good throughput of each block's minutes, in order. */
export function passedOf(blocks: readonly (readonly HistoryRow[])[]): Passed {
  // Who is above a fair share is denied because the rate binds.
  const denied = ({ denied: by, offered }: HistoryRow) =>
    (by.rate ?? 0) + (by.fair_share ?? 0) > 0.01 * offered;
  return {
    all: ranked(blocks.map((rows) => rows.map(goodRate))),
    denied: ranked(blocks.map((rows) => rows.filter(denied).map(goodRate))),
  };
}

/** The rate, what it rests on, and why; `times`: over a drawing of the blocks. */
export function rateOf(
  passed: Passed,
  times?: Uint16Array,
): { value: number; binds: string; why: string } {
  const all = rankedQuantile(passed.all, RATE_QUANTILE, times);
  const denied = rankedQuantile(passed.denied, 0.5, times);
  const value = all.value ?? 0;
  const said = `95 % of ${all.count} minutes had at most ${show(value)} good answers a second.`;
  const held = denied.count < BOUND_MINUTES ? 0 : denied.value!;
  if (held <= value) return { value, binds: 'history', why: said };
  return {
    value: held,
    binds: 'denied demand',
    why: `${said} But in ${denied.count} of them, all healthy, the rate denied while ${show(held)}/s passed: it is not lowered below that.`,
  };
}
