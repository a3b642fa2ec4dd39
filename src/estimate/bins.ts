/** Log-spaced bins packed, counted and added up. Stage: estimate. */
import { binValue, type PackedBins } from '../histogram.js';
import { type BinPairs, type Bins, MAX_BIN, MIN_BIN } from '../sense/readings.js';

/** Counts by bin, empty between calls: a tick of a thousand limiters adds up many. */
const sums = new Float64Array(MAX_BIN - MIN_BIN + 1);

/** A reading's bins are asked for by several signals, and never change. */
const packedOf = new WeakMap<Bins, PackedBins>();

/** Of what is in `sums`: its lowest and highest bin, and how many bins. */
let low = MAX_BIN;
let high = MIN_BIN;
let size = 0;

/** Only finite, positive counts: a bad bin is left out, never summed. */
export function packBins(bins: Bins): PackedBins {
  const known = packedOf.get(bins);
  if (known !== undefined) return known;
  low = MAX_BIN;
  high = MIN_BIN;
  size = 0;
  if (isPairs(bins)) for (let i = 0; i < bins.length; i += 2) sum(bins[i]!, bins[i + 1]);
  else for (const key in bins) sum(Number(key), bins[Number(key)]);
  const packed = drained();
  packedOf.set(bins, packed);
  return packed;
}

function sum(bin: number, count: number | undefined): void {
  if (!(count !== undefined && count > 0 && count <= 1e12)) return;
  if (!(bin >= MIN_BIN && bin <= MAX_BIN && Number.isInteger(bin))) return;
  if (sums[bin - MIN_BIN] === 0) size += 1;
  sums[bin - MIN_BIN]! += count;
  if (bin < low) low = bin;
  if (bin > high) high = bin;
}

function isPairs(bins: Bins): bins is BinPairs {
  return Array.isArray(bins);
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
  let least = MAX_BIN;
  let most = MIN_BIN;
  let total = 0;
  for (const frame of frames) {
    if (frame.length === 0) continue;
    // They lie in order.
    least = Math.min(least, frame[0]!);
    most = Math.max(most, frame[frame.length - 2]!);
    for (let i = 0; i < frame.length; i += 2) {
      sums[frame[i]! - MIN_BIN]! += frame[i + 1]!;
      total += frame[i + 1]!;
    }
  }
  if (total === 0) return null;
  // From above, for it is high quantiles that are asked for: so many answers may lie above the one that is meant.
  let above = total - Math.max(1, Math.ceil(q * total));
  let bin = most;
  for (; above >= sums[bin - MIN_BIN]!; bin--) above -= sums[bin - MIN_BIN]!;
  sums.fill(0, least - MIN_BIN, most - MIN_BIN + 1);
  return binValue(bin);
}

/** Of just the size: windows keep thousands of them for a minute. */
function drained(): PackedBins {
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
