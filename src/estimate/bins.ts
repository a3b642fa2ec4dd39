/** Log-spaced bins packed, counted and added up. Stage: estimate. */
import type { PackedBins } from '../histogram.js';
import { type Bins, MAX_BIN, MIN_BIN } from '../sense/readings.js';

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
