/** The policy within the bounds that a person set for a while: theirs lie over a profile's, and those over its own. Pure. Stage: policy → decide, actuate. */
import type { PersonBounds, Windows } from '../redis/windows.js';
import { profiled } from './profile.js';
import type { Policy } from './schema.js';

type Range = { min: number; max: number };

/** The policy as what holds at the moment makes it: a profile of its schedule, then a person's bounds. */
export function inWindows(policy: Policy, { profile, bounds }: Windows): Policy {
  return bounded(profiled(policy, profile?.name), bounds);
}

/**
 * The policy with a person's bounds; what they left out stays. The numbers stay the policy's own, and those for a lost
 * autopilot too, but for what lies above a narrower maximum: going safe must not raise past what a person allows.
 */
export function bounded(policy: Policy, said: PersonBounds | undefined): Policy {
  if (said?.rate === undefined && said?.inFlight === undefined) return policy;
  const { limiter, bounds, whenLost } = policy;
  const cap = limiter.inFlightMax;
  const rate = laidOver(bounds?.rate ?? { min: limiter.rate, max: limiter.rate }, said.rate);
  const ownCap = bounds?.inFlight ?? (cap === undefined ? undefined : { min: cap, max: cap });
  const inFlight = ownCap && laidOver(ownCap, said.inFlight);
  return {
    ...policy,
    bounds: { ...bounds, rate, ...(inFlight && { inFlight }) },
    whenLost: {
      ...whenLost,
      rate: Math.min(whenLost.rate ?? limiter.rate, rate.max),
      ...(cap !== undefined &&
        inFlight && { inFlight: Math.min(whenLost.inFlight ?? cap, inFlight.max) }),
    },
  };
}

/** Where only one end was said and the other lies beyond it, the other follows. */
function laidOver(own: Range, said: PersonBounds['rate']): Range {
  const { min = own.min, max = own.max } = said ?? {};
  if (min <= max) return { min, max };
  return said?.max === undefined ? { min, max: min } : { min: max, max };
}
