/** How long a request takes here, roughly: when a full in-flight cap may have room again. Stage: enforce. */

const WEIGHT = 1 / 16;
const LEAST_MS = 50;
const MOST_MS = 5_000;

export interface ServiceTime {
  add(ms: number): void;
  /** The smoothed mean, within 50 ms and 5 s. */
  hintMs(): number;
}

export function createServiceTime(): ServiceTime {
  let mean = 0;
  return {
    add(ms) {
      mean = mean === 0 ? ms : mean + (ms - mean) * WEIGHT;
    },
    hintMs: () => Math.ceil(Math.min(MOST_MS, Math.max(LEAST_MS, mean))),
  };
}
