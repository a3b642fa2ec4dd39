/** Seeded randomness and Poisson arrival times over a stepped rate: the same seed gives the same load. Stage: demo. */

/** mulberry32: small, fast, good enough to spread arrivals. Numbers in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface RateStep {
  seconds: number;
  /** Arrivals per second. */
  rate: number;
}

/**
 * Times (ms from the start) of a Poisson process whose rate steps. An arrival drawn beyond the end of its step is
 * dropped and drawn anew from there: exact, since the exponential has no memory.
 */
export function* poissonArrivals(steps: readonly RateStep[], random: () => number) {
  let from = 0;
  for (const { seconds, rate } of steps) {
    const until = from + seconds * 1000;
    let at = from;
    while (rate > 0) {
      at += (-Math.log(1 - random()) / rate) * 1000;
      if (at >= until) break;
      yield at;
    }
    from = until;
  }
}
