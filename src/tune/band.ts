/** How sure a number from history is: a bootstrap over whole days, or hours, wider the shorter the history. Stage: tune. */
import { percentile } from './usable.js';

export interface Band {
  low: number;
  high: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const RESAMPLES = 100;
/** Days from which a day is a block; of fewer, an hour is. */
const DAYS_AS_BLOCKS = 5;
/** What a whole week has shown needs no allowance for what it has not. */
const WHOLE_DAYS = 7;

/** Stretches of time that are drawn as one, since neighbouring minutes say much the same. */
export function blocksOf<T extends { minute: number }>(rows: readonly T[]): T[][] {
  const spanMs = spanOf(rows);
  const size = (spanMs >= DAYS_AS_BLOCKS * DAY_MS ? DAY_MS : HOUR_MS) / 60_000;
  const blocks = new Map<number, T[]>();
  for (const row of rows) {
    const at = Math.floor(row.minute / size);
    const block = blocks.get(at);
    if (block === undefined) blocks.set(at, [row]);
    else block.push(row);
  }
  return [...blocks.values()];
}

/** From the first row to the end of the last, ms. */
export function spanOf(rows: readonly { minute: number }[]): number {
  const last = rows[rows.length - 1];
  return last === undefined ? 0 : (last.minute + 1 - rows[0]!.minute) * 60_000;
}

/**
 * The 5th and 95th percentile of `statistic` over 100 drawings of blocks with replacement (block bootstrap, Künsch
 * 1989), moved from `value` by √(7 ÷ days of history) in its logarithm while there are fewer than seven days: hours of
 * one day cannot show how days differ. Fewer than half of the drawings giving a number: null, nothing is known.
 * `statistic` is told how often each block was drawn.
 */
export function bandOf(
  value: number,
  blocks: number,
  statistic: (times: Uint16Array) => number | null,
  options: { random: () => number; spanMs: number },
): Band | null {
  const { random, spanMs } = options;
  if (!(value > 0) || blocks < 2) return null;
  const seen: number[] = [];
  const times = new Uint16Array(blocks);
  for (let i = 0; i < RESAMPLES; i++) {
    times.fill(0);
    for (let k = 0; k < blocks; k++) times[Math.floor(random() * blocks) % blocks]! += 1;
    const one = statistic(times);
    if (one !== null && Number.isFinite(one) && one > 0) seen.push(one);
  }
  if (seen.length < RESAMPLES / 2) return null;
  const days = Math.max(spanMs / DAY_MS, 1 / 24);
  const widen = Math.sqrt(Math.max(1, WHOLE_DAYS / days));
  const moved = (end: number) => value * Math.exp(widen * Math.log(end / value));
  return {
    low: moved(Math.min(value, percentile(seen, 0.05)!)),
    high: moved(Math.max(value, percentile(seen, 0.95)!)),
  };
}

/** Values of blocks in order, so that a quantile of any drawing is one walk. */
export interface Ranked {
  values: Float64Array;
  /** The block of each. */
  blocks: Uint16Array;
}

export function ranked(valuesOfBlocks: readonly (readonly number[])[]): Ranked {
  const pairs = valuesOfBlocks.flatMap((values, block) =>
    values.filter(Number.isFinite).map((value) => [value, block] as const),
  );
  pairs.sort((a, b) => a[0] - b[0]);
  return {
    values: Float64Array.from(pairs, ([value]) => value),
    blocks: Uint16Array.from(pairs, ([, block]) => block),
  };
}

/** Nearest rank over each value as often as its block was drawn, and how many those are; null of none. */
export function rankedQuantile(
  { values, blocks }: Ranked,
  q: number,
  times?: Uint16Array,
): { value: number | null; count: number } {
  let count = values.length;
  if (times !== undefined) {
    count = 0;
    for (const block of blocks) count += times[block]!;
  }
  const rank = Math.max(1, Math.ceil(q * count));
  let seen = 0;
  for (let i = 0; i < values.length; i++) {
    seen += times === undefined ? 1 : times[blocks[i]!]!;
    if (seen >= rank) return { value: values[i]!, count };
  }
  return { value: null, count };
}
