/** Log-spaced bins of milliseconds: which bin a value is in, and quantiles of bins. Pure. Stage: enforce, estimate. */
import { type BinCounts, GAMMA, MAX_BIN, MIN_BIN } from './sense/readings.js';

/** Bin and count in turn, in order of the bin: one object where pairs would be a hundred, of which daemons keep many. */
export type PackedBins = number[];

/**
 * Counts by bin that come in any order, one by one. A table: an object or a list of them, made anew for each second of
 * a thousand limiters, would cost more than all else.
 */
export interface BinSums {
  readonly counts: Float64Array;
  /** The lowest and the highest bin with a count, and all counts together. */
  low: number;
  high: number;
  total: number;
}

export function createBinSums(): BinSums {
  const counts = new Float64Array(MAX_BIN - MIN_BIN + 1);
  return { counts, low: MAX_BIN, high: MIN_BIN, total: 0 };
}

/** Only finite, positive counts of bins that there are: a bad one is left out, never summed. */
export function sumBin(sums: BinSums, bin: number, count: number): void {
  if (!(count > 0 && count <= 1e12)) return;
  if (!(bin >= MIN_BIN && bin <= MAX_BIN && Number.isInteger(bin))) return;
  sums.counts[bin - MIN_BIN]! += count;
  sums.total += count;
  if (bin < sums.low) sums.low = bin;
  if (bin > sums.high) sums.high = bin;
}

/** Bins that are in order and sound. */
export function sumPacked(sums: BinSums, bins: PackedBins): void {
  const { length } = bins;
  if (length === 0) return;
  const { counts } = sums;
  let total = 0;
  for (let i = 0; i < length; i += 2) {
    const count = bins[i + 1]!;
    counts[bins[i]! - MIN_BIN]! += count;
    total += count;
  }
  sums.total += total;
  sums.low = Math.min(sums.low, bins[0]!);
  sums.high = Math.max(sums.high, bins[length - 2]!);
}

/** All of them in order, in a list of just the size: windows keep thousands for a minute. */
export function binsIn({ counts, low, high }: BinSums): PackedBins {
  let size = 0;
  for (let at = low - MIN_BIN; at <= high - MIN_BIN; at++) if (counts[at] !== 0) size += 1;
  const packed: PackedBins = new Array(2 * size);
  let next = 0;
  for (let at = low - MIN_BIN; at <= high - MIN_BIN; at++) {
    const count = counts[at]!;
    if (count === 0) continue;
    packed[next++] = at + MIN_BIN;
    packed[next++] = count;
  }
  return packed;
}

export function clearBins(sums: BinSums): void {
  if (sums.total === 0) return;
  sums.counts.fill(0, sums.low - MIN_BIN, sums.high - MIN_BIN + 1);
  sums.low = MAX_BIN;
  sums.high = MIN_BIN;
  sums.total = 0;
}

const PER_LOG = 1 / Math.log(GAMMA);

/**
 * The bin of a duration: i = ceil(ln(ms) / ln γ), so that γ^(i-1) < ms ≤ γ^i, clamped to
 * [MIN_BIN, MAX_BIN]. 0 and below (a clock's jitter) lie in the lowest bin. NaN has no bin: undefined,
 * for a caller must not count what was never measured.
 */
export function binOf(ms: number): number | undefined {
  if (Number.isNaN(ms)) return undefined;
  if (ms <= 0) return MIN_BIN;
  const bin = Math.ceil(Math.log(ms) * PER_LOG);
  // `+ 0` makes of -0 (values just under 1 ms) a plain 0: it becomes a field name.
  return Math.min(MAX_BIN, Math.max(MIN_BIN, bin)) + 0;
}

/** The value that stands for a bin: its relative error to any value inside is at most (γ-1)/(γ+1) ≈ 1 %. */
export function binValue(bin: number): number {
  return (2 * GAMMA ** bin) / (GAMMA + 1);
}

/** Adds `from` into `into`. */
export function addBins(into: BinCounts, from: BinCounts): void {
  for (const [bin, n] of Object.entries(from)) {
    into[Number(bin)] = (into[Number(bin)] ?? 0) + n;
  }
}

/**
 * The q-quantile (nearest rank), or null of nothing: 0 of 0 is unknown, not 0 ms.
 * `q` outside [0, 1], or NaN, is a mistake of the caller's.
 */
export function quantileOfBins(bins: BinCounts, q: number): number | null {
  const entries = Object.entries(bins).map(([bin, n]) => [Number(bin), n] as const);
  return quantileOfPacked(entries.sort((a, b) => a[0] - b[0]).flat(), q);
}

/** The same of bins in order. */
export function quantileOfPacked(bins: PackedBins, q: number): number | null {
  if (!(q >= 0 && q <= 1)) throw new RangeError(`quantile ${q} is not within 0 … 1`);
  let total = 0;
  for (let i = 1; i < bins.length; i += 2) total += bins[i]!;
  if (!(total > 0)) return null;
  const rank = Math.max(1, Math.ceil(q * total));
  let seen = 0;
  for (let i = 0; i < bins.length; i += 2) {
    seen += bins[i + 1]!;
    if (seen >= rank) return binValue(bins[i]!);
  }
  return null;
}
