/** Log-spaced bins packed, counted and added up. Stage: estimate. */
import { binValue, type PackedBins } from '../histogram.js';
import { type Bins, MAX_BIN, MIN_BIN } from '../sense/readings.js';

/** Counts by bin, empty between calls: a tick of a thousand limiters adds up many. */
const sums = new Float64Array(MAX_BIN - MIN_BIN + 1);

/** A reading's bins are asked for by several signals, and never change. */
const packedOf = new WeakMap<Bins, PackedBins>();

/** Only finite, positive counts: a bad bin is left out, never summed. */
export function packBins(bins: Bins): PackedBins {
  const known = packedOf.get(bins);
  if (known !== undefined) return known;
  let low = MAX_BIN;
  let high = MIN_BIN;
  let size = 0;
  for (const key in bins) {
    const bin = Number(key);
    const count = bins[bin];
    if (!(count !== undefined && count > 0 && count <= 1e12)) continue;
    if (!(bin >= MIN_BIN && bin <= MAX_BIN && Number.isInteger(bin))) continue;
    if (sums[bin - MIN_BIN] === 0) size += 1;
    sums[bin - MIN_BIN] = count;
    if (bin < low) low = bin;
    if (bin > high) high = bin;
  }
  const packed = drained(low, high, size);
  packedOf.set(bins, packed);
  return packed;
}

/** Observations in bins whose value passes. */
export function countWhere(bins: PackedBins, passes: (valueMs: number) => boolean): number {
  let total = 0;
  for (let i = 0; i < bins.length; i += 2) if (passes(binValue(bins[i]!))) total += bins[i + 1]!;
  return total;
}

export function countOf(bins: PackedBins): number {
  let total = 0;
  for (let i = 1; i < bins.length; i += 2) total += bins[i]!;
  return total;
}

/** Quantile (nearest rank) of all frames together; null of nothing. */
export function quantileOfFrames(frames: readonly PackedBins[], q: number): number | null {
  const [low, high, total] = added(frames);
  const rank = Math.max(1, Math.ceil(q * total));
  let seen = 0;
  let found: number | null = null;
  for (let bin = low; bin <= high; bin++) {
    seen += sums[bin - MIN_BIN]!;
    if (found === null && total > 0 && seen >= rank) found = bin;
  }
  sums.fill(0, low - MIN_BIN, Math.max(low, high + 1) - MIN_BIN);
  return found === null ? null : binValue(found);
}

function added(frames: readonly PackedBins[]): [low: number, high: number, total: number] {
  let low = MAX_BIN;
  let high = MIN_BIN;
  let total = 0;
  for (const frame of frames) {
    for (let i = 0; i < frame.length; i += 2) {
      const bin = frame[i]!;
      const count = frame[i + 1]!;
      sums[bin - MIN_BIN]! += count;
      total += count;
      if (bin < low) low = bin;
      if (bin > high) high = bin;
    }
  }
  return [low, high, total];
}

/** Of just the size: windows keep thousands of them for a minute. */
function drained(low: number, high: number, size: number): PackedBins {
  const packed: PackedBins = new Array(2 * size);
  let at = 0;
  for (let bin = low; bin <= high; bin++) {
    const count = sums[bin - MIN_BIN]!;
    if (count === 0) continue;
    packed[at++] = bin;
    packed[at++] = count;
    sums[bin - MIN_BIN] = 0;
  }
  return packed;
}
