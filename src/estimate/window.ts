/** Rolling frames of one signal and what they say together: pooled quantile, mean, minimum, ratio, sum. Stage: estimate. */
import { type PackedBins, quantileOfPacked } from '../histogram.js';
import { mergeBins } from './bins.js';

/** What one reading said of one signal. */
export interface Frame {
  /** Wall ms of the moment it speaks of, and how long it spoke of. */
  atMs: number;
  spanMs: number;
  count: number;
  /** A ready number, or for ratios and means the sum that `count` divides. */
  value: number;
  bins?: PackedBins;
}

/** Answers that a pooled quantile looks back over: a p99 of fewer is mostly noise. */
export const POOL_ANSWERS = 400;
const POOL_FRAMES = 40;

/** Newest last; forgets what no statistic would still use. */
export function pushFrame(frames: readonly Frame[], frame: Frame, keepMs: number): Frame[] {
  const kept = frames.filter((f) => frame.atMs - f.atMs < keepMs && f.atMs < frame.atMs);
  return [...kept, frame].slice(-POOL_FRAMES);
}

/** The newest frames that together hold `answers`, newest first; at least one. */
function pool(frames: readonly Frame[], answers: number): Frame[] {
  const pooled: Frame[] = [];
  let total = 0;
  for (let i = frames.length - 1; i >= 0 && total < answers; i--) {
    pooled.push(frames[i]!);
    total += frames[i]!.count;
  }
  return pooled;
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
  const pooled = pool(frames, POOL_ANSWERS);
  const count = pooled.reduce((sum, frame) => sum + frame.count, 0);
  const together = quantileOf(pooled, q);
  const alone = newest.count > 0 ? quantileOf([newest], q) : null;
  const value = alone !== null && together !== null ? Math.min(alone, together) : together;
  return { value, count };
}

function quantileOf(frames: readonly Frame[], q: number): number | null {
  const bins = frames.flatMap((frame) => (frame.bins === undefined ? [] : [frame.bins]));
  if (bins.length > 0) return quantileOfPacked(mergeBins(bins), q);
  // Ready quantiles cannot be merged exactly: the mean of their logarithms, weighted by answers.
  let weight = 0;
  let sum = 0;
  for (const frame of frames) {
    if (!(frame.count > 0)) continue;
    weight += frame.count;
    sum += frame.count * Math.log(Math.max(frame.value, 1e-6));
  }
  return weight > 0 ? Math.exp(sum / weight) : null;
}

/** Σ value ÷ Σ count over the newest frames that hold `answers`. */
export function pooledRatio(frames: readonly Frame[], answers: number): Pooled {
  const pooled = pool(frames, answers);
  const count = pooled.reduce((sum, frame) => sum + frame.count, 0);
  const value = pooled.reduce((sum, frame) => sum + frame.value, 0);
  return { value: count > 0 ? value / count : null, count };
}

/** Lowest value of the last `spanMs`: a queue that empties in between is not a standing one. */
export function lowest(frames: readonly Frame[], spanMs: number): Pooled {
  const newest = frames[frames.length - 1];
  if (newest === undefined) return { value: null, count: 0 };
  const recent = frames.filter((frame) => newest.atMs - frame.atMs < spanMs);
  return { value: Math.min(...recent.map((frame) => frame.value)), count: recent.length };
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
