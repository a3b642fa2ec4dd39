/** The most that the rate may be for a while, after a failover: law and guards take it for the upper bound. Stage: guard. */
import { boundsOf } from '../decide/bounds.js';
import type { Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';

/** The policy with the ceiling as the upper bound of the rate; never below the lower one. */
export function withinCeiling(policy: Policy, sample: Sample): Policy {
  if (sample.ceiling === undefined) return policy;
  const { rate } = boundsOf(policy);
  const max = Math.max(rate.min, Math.min(rate.max, sample.ceiling));
  if (max === rate.max) return policy;
  return { ...policy, bounds: { ...policy.bounds, rate: { min: rate.min, max } } };
}
