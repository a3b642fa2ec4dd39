/** How throughput answered to the cap of late: the throughput–cap correlation guard of the adaptive law. Stage: decide. */

/**
 * Slope s = d ln X ÷ d ln N over the recent operating points near the cap in force (X good answers a second, N the
 * cap while it bound), by weighted least squares toward what response time lets expect (a neutral half
 * when nothing is known).
 *
 *   s ≈ 1   below the knee: every slot earns its share. A cut loses throughput and shortens no queue.
 *   s ≈ 0   past the knee: more in flight only waits longer. A cut is free.
 *   s < 0   past collapse: more in flight costs throughput.
 *
 * The idea of a throughput–in-flight correlation is that of failsafe-go's adaptive limiter.
 */
export const RESPONSE = {
  /** With no evidence a cut is worth half of itself. */
  prior: 0.5,
  /**
   * Weight of the prior: evidence counts once ln N has varied by about its root. So much ÷ the answers of a reading,
   * since ln X of n answers varies by 1/√n.
   */
  priorWeight: 5,
  /** Points further than this (log) from the cap say nothing of its neighbourhood. */
  nearby: 0.6,
  /** Time constant of forgetting. */
  forgetMs: 30_000,
  points: 16,
  /** Points nearer than this (log) are of one cap. */
  same: 0.03,
  /** A jump of ln X beyond this, and beyond so many standard deviations of the count, is not noise. */
  jump: 0.3,
  deviations: 3,
  /** No response is steeper than this: throughput does not fall by more than the cap did. */
  steepest: 1.5,
};

/** Triples [ln N, ln X, ageMs], newest last, flat: plain JSON. */
export type Points = readonly number[];

/** Where the points begin that are younger: the oldest stand first. */
function expired(points: Points, ageMs: number): number {
  let i = 0;
  while (i + 2 < points.length && !(points[i + 2]! < ageMs)) i += 3;
  return i;
}

export function agePoints(points: Points, dtMs: number): number[] {
  const out = points.slice(expired(points, 3 * RESPONSE.forgetMs - dtMs));
  for (let i = 2; i < out.length; i += 3) out[i]! += dtMs;
  return out;
}

/**
 * Adds a point; one at nearly the same cap is averaged in, so that the list spans what was tried. A point that no
 * response explains says that the service itself has changed: what was learnt of the old one is dropped.
 */
export function addPoint(
  points: Points,
  inFlight: number,
  throughput: number,
  answers = Number.POSITIVE_INFINITY,
): number[] {
  if (!(inFlight > 0) || !(throughput > 0)) return [...points];
  const n = Math.log(inFlight);
  const x = Math.log(throughput);
  const last = points.length - 3;
  if (last < 0 || changed(n - points[last]!, x - points[last + 1]!, answers)) {
    return [short(n), short(x), 0];
  }
  if (Math.abs(points[last]! - n) < RESPONSE.same) {
    const merged = 0.6 * points[last + 1]! + 0.4 * x;
    return [...points.slice(0, last), n, short(merged), 0];
  }
  return [...points, short(n), short(x), 0].slice(-3 * RESPONSE.points);
}

/** Is the step from one point to the next more than a cap can do? A fall while the cap rises it can: collapse. */
function changed(stepN: number, stepX: number, answers: number): boolean {
  const noise = Math.max(RESPONSE.jump, RESPONSE.deviations / Math.sqrt(Math.max(1, answers)));
  if (Math.abs(stepN) < RESPONSE.same) return Math.abs(stepX) > noise;
  return Math.sign(stepN) * stepX > RESPONSE.steepest * Math.abs(stepN) + noise;
}

export function responseSlope(
  points: Points,
  inFlight: number,
  answers = 250,
  prior = RESPONSE.prior,
): number {
  const { nearby, forgetMs } = RESPONSE;
  const priorWeight = RESPONSE.priorWeight / Math.max(1, answers);
  const at = Math.log(Math.max(inFlight, 1e-6));
  // One pass: sums about the cap in force and the first throughput, so that nothing cancels.
  const x0 = points[1] ?? 0;
  let weight = 0;
  let sumN = 0;
  let sumX = 0;
  let sumNX = 0;
  let sumNN = 0;
  for (let i = 0; i + 2 < points.length; i += 3) {
    const n = points[i]! - at;
    if (Math.abs(n) > nearby) continue;
    const x = points[i + 1]! - x0;
    const w = Math.exp(-points[i + 2]! / forgetMs);
    weight += w;
    sumN += w * n;
    sumX += w * x;
    sumNX += w * n * x;
    sumNN += w * n * n;
  }
  if (!(weight > 0)) return prior;
  const cov = priorWeight * prior + sumNX - (sumN * sumX) / weight;
  return cov / (priorWeight + sumNN - (sumN * sumN) / weight);
}

function short(value: number): number {
  return Math.round(value * 1000) / 1000;
}
