/** Response time at leisure, and the response to the cap that it lets one expect before a cap has been tried. Stage: decide. */
import { clamp } from './bounds.js';
import { numberIn } from './law.js';
import type { LawMemory, Sample } from './types.js';

/**
 * With W the mean response time and L what it is when nothing waits, Little's law (N = X · W) ties the response of
 * throughput to that of time: s = d ln X ÷ d ln N = 1 − d ln W ÷ d ln N. Where W grows from L ever faster with N, as
 * it does in any queue, d ln W ÷ d ln N is at least 1 − L ÷ W, so
 *
 *   s expected = 1 − convex · (1 − L ÷ W)        convex ≥ 1: 1 is M/M/1, more a service under contention (USL)
 *
 * A mean of n answers varies by 1/√n, a p99 by almost three times that: idle noise of the one looks like overload,
 * while the other shows that nothing waits. L is only what is expected: what throughput is seen to do overrules it,
 * but for the least that s can be while W is near L.
 */
export const LEISURE = {
  /** Answers that weigh as much as all that came before. */
  answers: 100,
  /** L follows a lower W by this share a sample, a higher one so slowly: faster while the cap does not bind. */
  down: 0.3,
  freeMs: 60_000,
  boundMs: 600_000,
  /** Much more takes a service that became slower by itself for one with a queue, and cuts for nothing. */
  convex: 1.4,
  /** No more is expected than this: L may have been learnt under load; and no less, since the service may be slower by itself. */
  most: 0.8,
  least: -0.3,
  /** This near L nothing waits, so s is at least `free`, and at least 0 up to W = near ÷ (near − 1) · L. */
  near: 4,
  free: 0.4,
  /** Time in which L comes up to what throughput shows. */
  shownMs: 10_000,
};

export interface Leisure {
  /** W, smoothed over about as many answers as `LEISURE.answers`; 0: not known yet. */
  meanMs: number;
  /** L. */
  leisureMs: number;
}

export function leisureOf(before: LawMemory, sample: Sample, bound: boolean): Leisure {
  const { traffic } = sample;
  const was = {
    meanMs: numberIn(before, 'meanMs', 0),
    leisureMs: numberIn(before, 'leisureMs', 0),
  };
  if (!traffic.fresh || traffic.meanMs === null || !(traffic.answers > 0)) return was;
  if (!(was.meanMs > 0)) return { meanMs: traffic.meanMs, leisureMs: traffic.meanMs };
  const weight = traffic.answers / (traffic.answers + LEISURE.answers);
  const meanMs = was.meanMs + weight * (traffic.meanMs - was.meanMs);
  const up = clamp(sample.dtMs / (bound ? LEISURE.boundMs : LEISURE.freeMs), 0, 1);
  const share = meanMs < was.leisureMs ? LEISURE.down : up;
  return { meanMs, leisureMs: was.leisureMs + share * (meanMs - was.leisureMs) };
}

/** The slope to expect; one half when nothing is known. */
export function expectedSlope({ meanMs, leisureMs }: Leisure): number {
  if (!(meanMs > 0)) return 0.5;
  return clamp(1 - LEISURE.convex * (1 - leisureMs / meanMs), LEISURE.least, LEISURE.most);
}

/**
 * The least that the slope can be while hardly anything waits. Operating points of a service that was slower a moment
 * ago (a cold start, after an outage) say that a smaller cap brought more throughput, and would have it cut further.
 */
export function leastSlope({ meanMs, leisureMs }: Leisure): number {
  if (!(meanMs > 0)) return LEISURE.least;
  return Math.min(LEISURE.free, 1 - LEISURE.near * (1 - leisureMs / meanMs));
}

/** Throughput answers to the cap better than expected: the service is slower by itself than it was, so L comes up. */
export function shownBy(slope: number, leisure: Leisure, dtMs: number): Leisure {
  const shownMs = leisure.meanMs * clamp(1 - (1 - slope) / LEISURE.convex, 0, 1);
  if (!(shownMs > leisure.leisureMs)) return leisure;
  const share = clamp(dtMs / LEISURE.shownMs, 0, 1);
  return { ...leisure, leisureMs: leisure.leisureMs + share * (shownMs - leisure.leisureMs) };
}
