/** A histogram of milliseconds with its sum, in the bins of the telemetry. Stage: demo. */
import { addBins, binOf, quantileOfBins } from '../histogram.js';
import type { BinCounts } from '../sense/readings.js';

export interface Histogram {
  count: number;
  sumMs: number;
  bins: BinCounts;
}

export function emptyHistogram(): Histogram {
  return { count: 0, sumMs: 0, bins: {} };
}

export function record(histogram: Histogram, ms: number): void {
  const bin = binOf(ms);
  if (bin === undefined) return;
  histogram.bins[bin] = (histogram.bins[bin] ?? 0) + 1;
  histogram.count += 1;
  histogram.sumMs += ms;
}

export function merge(histograms: Iterable<Histogram>): Histogram {
  const out = emptyHistogram();
  for (const { count, sumMs, bins } of histograms) {
    out.count += count;
    out.sumMs += sumMs;
    addBins(out.bins, bins);
  }
  return out;
}

/** Within 1 % of the true quantile; null of nothing. */
export function quantile(histogram: Histogram, q: number): number | null {
  return quantileOfBins(histogram.bins, q);
}

export function mean(histogram: Histogram): number | null {
  return histogram.count === 0 ? null : histogram.sumMs / histogram.count;
}
