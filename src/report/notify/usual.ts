/** What share of requests is usually denied, so that far more than that can be told. Stage: report. */

/** Exponentially forgotten mean and mean absolute deviation (Jacobson 1988, as of round-trip times). */
export interface Usual {
  mean: number;
  deviation: number;
  /** Ticks that it was learned from. */
  ticks: number;
}

export const NOTHING_USUAL: Usual = { mean: 0, deviation: 0, ticks: 0 };

/** A time constant of about ten minutes of ticks of a second. */
const KEEP = 1 / 600;
/** Before so many ticks nothing is usual. */
const LEARNED_TICKS = 300;
const DEVIATIONS = 6;
/** However steady it has been: shares below this, and rises of less than this, trouble nobody. */
const LEAST_SHARE = 0.05;

export function farAboveUsual(usual: Usual, share: number): boolean {
  if (usual.ticks < LEARNED_TICKS) return false;
  return share > LEAST_SHARE + usual.mean + DEVIATIONS * usual.deviation;
}

/** What is far above is not learned quickly: an incident must not become usual within its first minutes. */
export function learnUsual(usual: Usual, share: number): Usual {
  const keep = Math.max(KEEP, 1 / (usual.ticks + 1)) / (farAboveUsual(usual, share) ? 10 : 1);
  const off = Math.abs(share - usual.mean);
  return {
    mean: usual.mean + keep * (share - usual.mean),
    deviation: usual.ticks === 0 ? 0 : usual.deviation + keep * (off - usual.deviation),
    ticks: Math.min(usual.ticks + 1, 1_000_000),
  };
}
