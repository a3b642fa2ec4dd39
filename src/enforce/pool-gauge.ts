/** How many requests wait for a pool connection, as the service reports it. Stage: enforce. */

/** More than that is no queue, and a sum must stay a whole number. */
const MOST = 1e9;
/** A gauge nobody renewed for this long is unknown, not old news. */
const LIFE_MS = 5_000;

export interface PoolGauge {
  /** A number seen now, or a function that is asked at each flush. */
  report(waiting: number | (() => number), nowMs: number): void;
  /** Mean since the last call, or the last number while it is fresh; null when nobody reports. */
  take(nowMs: number): number | null;
}

export function createPoolGauge(): PoolGauge {
  let sum = 0;
  let count = 0;
  let last = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  let source: (() => number) | null = null;

  function see(waiting: number, nowMs: number) {
    if (typeof waiting !== 'number' || !(waiting >= 0 && waiting <= MOST)) return;
    sum += waiting;
    count += 1;
    last = waiting;
    lastMs = nowMs;
  }

  return {
    report(waiting, nowMs) {
      if (typeof waiting === 'function') source = waiting;
      else see(waiting, nowMs);
    },
    take(nowMs) {
      if (source) {
        // A service's own gauge that throws must not end its telemetry.
        try {
          see(source(), nowMs);
        } catch {}
      }
      const mean = count > 0 ? sum / count : nowMs - lastMs <= LIFE_MS ? last : null;
      sum = 0;
      count = 0;
      return mean;
    },
  };
}
