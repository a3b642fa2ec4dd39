/** What a decision puts in force, as numbers: 0 while open, the probe rate while half-open. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { boundsOf } from './bounds.js';
import type { Proposal } from './types.js';

/** For simulations and people; in Redis `effective()` does the same from params, with glide and time. */
export function enforcedNumbers(
  policy: Policy,
  decision: Pick<Proposal, 'state' | 'rate' | 'capacity' | 'inFlightMax'>,
): { rate: number; capacity: number; inFlightMax: number } {
  const { state, rate, capacity, inFlightMax } = decision;
  if (state === 'open') return { rate: 0, capacity, inFlightMax };
  if (state !== 'half-open') return { rate, capacity, inFlightMax };
  const { probeRate } = boundsOf(policy);
  return { rate: probeRate, capacity: Math.max(1, probeRate), inFlightMax };
}
