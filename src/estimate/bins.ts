/** Quantiles and sums over log-spaced bins. Stage: estimate. */
import { type Bins, GAMMA, MAX_BIN, MIN_BIN } from '../sense/readings.js';

/** Bins as pairs `[bin, count]` in order of the bin: half the JSON of an object, and ready to walk. */
export type PackedBins = [bin: number, count: number][];

/** Only finite, positive counts: a bad bin is left out, never summed. */
export function packBins(bins: Bins): PackedBins {
  const packed: PackedBins = [];
  for (const [bin, count] of Object.entries(bins)) {
    if (count > 0 && count <= 1e12 && Number(bin) >= MIN_BIN && Number(bin) <= MAX_BIN) {
      packed.push([Number(bin), count]);
    }
  }
  return packed.sort((a, b) => a[0] - b[0]);
}

export function countOf(bins: PackedBins): number {
  let total = 0;
  for (const [, count] of bins) total += count;
  return total;
}

/** Adds up frames of bins. */
export function mergeBins(frames: readonly PackedBins[]): PackedBins {
  const sums = new Map<number, number>();
  for (const frame of frames) {
    for (const [bin, count] of frame) sums.set(bin, (sums.get(bin) ?? 0) + count);
  }
  return [...sums].sort((a, b) => a[0] - b[0]);
}

/**
 * Quantile in ms, within 1 %: the middle of the bin that holds it, 2γ^i ÷ (γ + 1) (DDSketch). Null when empty.
 */
export function binQuantile(bins: PackedBins, q: number): number | null {
  const total = countOf(bins);
  if (!(total > 0) || !(q >= 0 && q <= 1)) return null;
  const wanted = q * total;
  let seen = 0;
  for (const [bin, count] of bins) {
    seen += count;
    if (seen >= wanted) return middleOf(bin);
  }
  return middleOf(bins[bins.length - 1]![0]);
}

function middleOf(bin: number): number {
  return (2 * GAMMA ** bin) / (GAMMA + 1);
}
