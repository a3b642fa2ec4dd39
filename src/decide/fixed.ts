/** Law `fixed`: the policy's own numbers, always. Stage: decide. */
import { boundsOf, clamp } from './bounds.js';
import type { Law } from './law.js';

export const fixedLaw: Law = (policy, memory) => {
  const bounds = boundsOf(policy);
  const cap = policy.limiter.inFlightMax ?? 0;
  return {
    memory,
    rate: clamp(policy.limiter.rate, bounds.rate.min, bounds.rate.max),
    inFlightMax:
      bounds.inFlight === null ? cap : clamp(cap, bounds.inFlight.min, bounds.inFlight.max),
    reason: 'fixed',
    why: 'The law is fixed',
    terms: {},
  };
};
