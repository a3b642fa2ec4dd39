/** How much is asked for, against what the limits let through: what an autoscaler follows, since shedding hides load from CPU. Stage: report. */
import type { Sample } from '../decide/types.js';

/**
 * Requests asked for ÷ requests that could be admitted, both a second; above 1 some are shed. The rate binds, or the
 * in-flight cap by Little's law. Null: not known, or the breaker stops the traffic, which more instances do not mend.
 * Subjects that are denied by buckets of their own ask for nothing more.
 */
export function demandRatio({
  traffic,
  inForce,
}: Pick<Sample, 'traffic' | 'inForce'>): number | null {
  const { admittedRate, deniedByRate, deniedByCap, meanMs } = traffic;
  if (!traffic.fresh || inForce.state === 'open' || inForce.state === 'half-open') return null;
  const byCap =
    inForce.inFlightMax > 0 && meanMs !== null && meanMs > 0
      ? (inForce.inFlightMax * 1000) / meanMs
      : Number.POSITIVE_INFINITY;
  const capacity = Math.min(inForce.rate, byCap);
  return capacity > 0 ? (admittedRate + deniedByRate + deniedByCap) / capacity : null;
}
