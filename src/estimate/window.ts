/** Rolling frames of one signal and what they say together: quantile, mean, minimum, ratio, sum, steadied. Stage: estimate. */
import { binValue, type PackedBins } from '../histogram.js';
import { countOf, quantileOfFrames } from './bins.js';

/** What one reading said of one signal. */
export interface Frame {
  /** Wall ms of the moment it speaks of, and how long it spoke of. */
  atMs: number;
  spanMs: number;
  count: number;
  /** A ready number, or for ratios and means the sum that `count` divides. */
  value: number;
  bins?: PackedBins;
  /** Requests that were still running, by the least they had taken. */
  running?: PackedBins;
}

/** Answers that a pooled quantile looks back over: a p99 of fewer is mostly noise. */
export const POOL_ANSWERS = 400;
const POOL_FRAMES = 40;

/** What statistics of a signal still use. */
export interface Keep {
  /** Frames of the last so many ms, and no more of them than `frames`. */
  ms: number;
  frames?: number;
  /** Of these only the newest that together hold so many answers, where nothing looks further back. */
  answers?: number;
}

/** Newest last; forgets what no statistic would still use. */
export function pushFrame(frames: readonly Frame[], frame: Frame, keep: Keep): Frame[] {
  // They lie in order: what goes is at the ends.
  let from = 0;
  let to = frames.length;
  while (from < to && frame.atMs - frames[from]!.atMs >= keep.ms) from += 1;
  while (to > from && frames[to - 1]!.atMs >= frame.atMs) to -= 1;
  from = Math.max(from, to + 1 - (keep.frames ?? POOL_FRAMES));
  if (keep.answers !== undefined) {
    let left = keep.answers - frame.count;
    let first = to;
    for (; first > from && left > 0; first--) left -= frames[first - 1]!.count;
    from = first;
  }
  // Of just the size: what is pushed to a list is copied with room to spare.
  const kept: Frame[] = new Array(to - from + 1);
  for (let i = from; i < to; i++) kept[i - from] = frames[i]!;
  kept[to - from] = frame;
  return kept;
}

/** Where the newest frames begin that together hold `answers`; they are at least one. */
function poolFrom(frames: readonly Frame[], answers: number): number {
  let from = frames.length;
  for (let total = 0; from > 0 && total < answers; from--) total += frames[from - 1]!.count;
  return from;
}

function countFrom(frames: readonly Frame[], from: number): number {
  let count = 0;
  for (let i = from; i < frames.length; i++) count += frames[i]!.count;
  return count;
}

export interface Pooled {
  value: number | null;
  count: number;
}

/**
 * Quantile of the last ~400 answers, or of the newest reading alone if that is lower: a thin, noisy reading
 * does not cut, and a recovery is seen at once.
 */
export function pooledQuantile(frames: readonly Frame[], q: number): Pooled {
  const newest = frames[frames.length - 1];
  if (newest === undefined) return { value: null, count: 0 };
  const from = poolFrom(frames, POOL_ANSWERS);
  const count = countFrom(frames, from);
  const together = quantileFrom(frames, from, q);
  const alone = newest.count > 0 ? quantileFrom(frames, frames.length - 1, q) : null;
  const value = alone !== null && together !== null ? Math.min(alone, together) : together;
  const slow = slowRunning(newest, value);
  if (slow.length === 0) return { value, count };
  const beside = besideFrom(frames, slow);
  const atLeast = quantileOfFrames(frames, beside, q, slow);
  return {
    value: atLeast === null || (value !== null && value > atLeast) ? value : atLeast,
    count: countFrom(frames, beside) + countOf(slow),
  };
}

const NONE: PackedBins = [];

/** Requests still running that have already taken longer than `value`: answers that will be at least as slow. */
function slowRunning({ running }: Frame, value: number | null): PackedBins {
  if (running === undefined) return NONE;
  const slow: PackedBins = [];
  for (let i = 0; i < running.length; i += 2) {
    if (binValue(running[i]!) > (value ?? 0)) slow.push(running[i]!, running[i + 1]!);
  }
  return slow;
}

/** Where that begins which was answered while the oldest of them ran: they are judged beside it, not beside what went before. */
function besideFrom(frames: readonly Frame[], slow: PackedBins): number {
  const newestMs = frames[frames.length - 1]!.atMs;
  const oldestMs = binValue(slow[slow.length - 2]!);
  let from = frames.length;
  while (from > 0 && newestMs - frames[from - 1]!.atMs < oldestMs) from -= 1;
  return from;
}

function quantileFrom(frames: readonly Frame[], from: number, q: number): number | null {
  for (let i = from; i < frames.length; i++) {
    if (frames[i]!.bins !== undefined) return quantileOfFrames(frames, from, q);
  }
  // Ready quantiles cannot be merged exactly: the mean of their logarithms, weighted by answers.
  let weight = 0;
  let sum = 0;
  // Newest first.
  for (let i = frames.length - 1; i >= from; i--) {
    const frame = frames[i]!;
    if (!(frame.count > 0)) continue;
    weight += frame.count;
    sum += frame.count * Math.log(Math.max(frame.value, 1e-6));
  }
  return weight > 0 ? Math.exp(sum / weight) : null;
}

/** Σ value ÷ Σ count over the newest frames that hold `answers`. */
export function pooledRatio(frames: readonly Frame[], answers: number): Pooled {
  const from = poolFrom(frames, answers);
  let count = 0;
  let value = 0;
  for (let i = frames.length - 1; i >= from; i--) {
    count += frames[i]!.count;
    value += frames[i]!.value;
  }
  return { value: count > 0 ? value / count : null, count };
}

/** The mean of the last answers; with requests still running that have taken longer, the least that it will be. */
export function pooledMean(frames: readonly Frame[], answers: number): Pooled {
  const mean = pooledRatio(frames, answers);
  const newest = frames[frames.length - 1];
  const slow = newest === undefined ? NONE : slowRunning(newest, mean.value);
  if (slow.length === 0) return mean;
  let count = 0;
  let sum = 0;
  for (let i = besideFrom(frames, slow); i < frames.length; i++) {
    count += frames[i]!.count;
    sum += frames[i]!.value;
  }
  for (let i = 0; i < slow.length; i += 2) {
    count += slow[i + 1]!;
    sum += slow[i + 1]! * binValue(slow[i]!);
  }
  return { value: Math.max(mean.value ?? 0, sum / count), count };
}

/** Readings of a plain number that a steadied one looks back over. */
export const STEADY_FRAMES = 5;
/** Weight of the newest median of three. */
const STEADY_WEIGHT = 0.7;
/** Two first readings that differ by more than this factor do not agree: one of them is a slip. */
const AGREE = 8;

/**
 * A plain number without a count behind it: the median of three, so that one absurd reading moves nothing, then a
 * moving mean of these. `count` is 0 until two readings agree.
 */
export function steadied(frames: readonly Frame[]): Pooled {
  const newest = frames[frames.length - 1];
  const before = frames[frames.length - 2];
  if (newest === undefined || before === undefined)
    return { value: newest?.value ?? null, count: 0 };
  if (frames.length === 2) {
    const [low, high] = [newest.value, before.value].sort((a, b) => a - b) as [number, number];
    const agree = high <= AGREE * low || high - low <= AGREE;
    return { value: (low + high) / 2, count: agree ? newest.count : 0 };
  }
  let value: number | null = null;
  for (let i = Math.max(2, frames.length - STEADY_FRAMES + 2); i < frames.length; i++) {
    const median = middle(frames[i - 2]!.value, frames[i - 1]!.value, frames[i]!.value);
    value = value === null ? median : value + STEADY_WEIGHT * (median - value);
  }
  return { value, count: newest.count };
}

function middle(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

/** Lowest value of the last `spanMs`: a queue that empties in between is not a standing one. */
export function lowest(frames: readonly Frame[], spanMs: number): Pooled {
  const newest = frames[frames.length - 1];
  if (newest === undefined) return { value: null, count: 0 };
  let value = newest.value;
  let count = 0;
  for (let i = frames.length - 1; i >= 0; i--) {
    const frame = frames[i]!;
    if (newest.atMs - frame.atMs >= spanMs) break;
    if (frame.value < value) value = frame.value;
    count += 1;
  }
  return { value, count };
}

/** Σ value of the last `spanMs`. */
export function summed(frames: readonly Frame[], spanMs: number): Pooled {
  const newest = frames[frames.length - 1];
  if (newest === undefined) return { value: null, count: 0 };
  const recent = frames.filter((frame) => newest.atMs - frame.atMs < spanMs);
  return {
    value: recent.reduce((sum, frame) => sum + frame.value, 0),
    count: recent.reduce((sum, frame) => sum + frame.count, 0),
  };
}
