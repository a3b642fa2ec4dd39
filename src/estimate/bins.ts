/** Log-spaced bins packed, counted and added up. Stage: estimate. */
import {
  binsIn,
  binValue,
  clearBins,
  createBinSums,
  type PackedBins,
  sumBin,
  sumPacked,
} from '../histogram.js';
import { type BinPairs, type Bins, MAX_BIN, MIN_BIN } from '../sense/readings.js';

const NONE: PackedBins = [];

/** Empty between calls: a tick of a thousand limiters adds up many. */
const sums = createBinSums();

/** Bins that had to be put in order are asked for by several signals, and never change. */
const packedOf = new WeakMap<Bins, PackedBins>();

/** In order, and only finite, positive counts: a bad bin is left out, never summed. */
export function packBins(bins: Bins): PackedBins {
  if (isPacked(bins)) return bins;
  const known = packedOf.get(bins);
  if (known !== undefined) return known;
  if (isPairs(bins)) for (let i = 0; i < bins.length; i += 2) sumBin(sums, bins[i]!, bins[i + 1]!);
  else for (const key in bins) sumBin(sums, Number(key), bins[Number(key)]!);
  const packed = binsIn(sums);
  clearBins(sums);
  packedOf.set(bins, packed);
  return packed;
}

function isPairs(bins: Bins): bins is BinPairs {
  return Array.isArray(bins);
}

/** As the telemetry gives them: in order already, and sound. */
function isPacked(bins: Bins): bins is PackedBins {
  if (!isPairs(bins) || bins.length % 2 !== 0) return false;
  let before = MIN_BIN - 1;
  for (let i = 0; i < bins.length; i += 2) {
    const bin = bins[i]!;
    const count = bins[i + 1]!;
    if (!(bin > before && bin <= MAX_BIN && Number.isInteger(bin))) return false;
    if (!(count > 0 && count <= 1e12)) return false;
    before = bin;
  }
  return true;
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

/**
 * Quantile (nearest rank) of all bins of the frames from `from` on, and of `also`, together; null of nothing. A frame
 * without bins adds none.
 */
export function quantileOfFrames(
  frames: readonly { bins?: PackedBins }[],
  from: number,
  q: number,
  also: PackedBins = NONE,
): number | null {
  for (let i = from; i < frames.length; i++) sumPacked(sums, frames[i]!.bins ?? NONE);
  sumPacked(sums, also);
  if (sums.total === 0) return null;
  // From above, for it is high quantiles that are asked for: so many answers may lie above the one that is meant.
  let above = sums.total - Math.max(1, Math.ceil(q * sums.total));
  let bin = sums.high;
  for (; above >= sums.counts[bin - MIN_BIN]!; bin--) above -= sums.counts[bin - MIN_BIN]!;
  clearBins(sums);
  return binValue(bin);
}
