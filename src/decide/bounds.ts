/** The bounds of a policy with every default filled in. Stage: decide, guard. */
import type { Policy } from '../policy/schema.js';

export interface Bounds {
  rate: { min: number; max: number };
  /** null: no in-flight cap is enforced. */
  inFlight: { min: number; max: number } | null;
  capacity: { min: number; max: number };
  probeRate: number;
}

/** Without bounds the policy's own numbers are the most, and a tenth of them the least. */
export function boundsOf(policy: Policy): Bounds {
  const { limiter, bounds } = policy;
  const rate = bounds?.rate ?? { min: limiter.rate / 10, max: limiter.rate };
  const cap = limiter.inFlightMax;
  const inFlight =
    bounds?.inFlight ??
    (cap === undefined ? null : { min: Math.max(1, Math.floor(cap / 10)), max: cap });
  return {
    rate,
    inFlight,
    capacity: bounds?.capacity ?? { min: limiter.capacity, max: limiter.capacity },
    probeRate: policy.breaker?.probeRate ?? Math.min(1, rate.min),
  };
}

/** Capacity stays the policy's unless it has bounds; then it moves in proportion to the rate. */
export function capacityFor(policy: Policy, rate: number): number {
  const range = policy.bounds?.capacity;
  if (range === undefined) return policy.limiter.capacity;
  const wanted = (policy.limiter.capacity * rate) / policy.limiter.rate;
  return clamp(Math.round(wanted * 100) / 100, range.min, Math.max(range.min, range.max));
}

export function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
