/** What a policy's schedule says of a moment, and the policy as a profile makes it. Pure. Stage: policy → decide, actuate. */
import type { Windows } from '../redis/windows.js';
import type { Policy } from './schema.js';
import { windowAt } from './windows.js';

type Range = { min: number; max: number };

/** Which windows hold; of several of one kind the first in the list. */
export function windowsAt(policy: Policy, nowMs: number): Windows {
  const found: Windows = {};
  for (const window of policy.schedule ?? []) {
    const { profile, freeze } = window;
    if (profile !== undefined ? found.profile !== undefined : found.freeze !== undefined) continue;
    const span = windowAt(window, nowMs);
    if (span === null) continue;
    if (profile !== undefined) found.profile = { name: profile, ...span };
    else if (freeze !== undefined) found.freeze = { why: freeze, ...span };
  }
  return found;
}

/**
 * The policy with the numbers and bounds of one of its profiles. The safe values of a lost autopilot stay the policy's
 * own: nobody would end the profile then.
 */
export function profiled(policy: Policy, name: string | undefined): Policy {
  const profile = name === undefined ? undefined : policy.profiles?.[name];
  if (profile === undefined) return policy;
  const { limiter, bounds, whenLost } = policy;
  const { times = 1 } = profile;
  const inFlightMax = profile.inFlightMax ?? (limiter.inFlightMax && caps(limiter.inFlightMax));
  function rates(value: number): number {
    return Number((value * times).toPrecision(12));
  }
  function caps(value: number): number {
    return Math.max(1, Math.round(value * times));
  }
  const scaled = (range: Range | undefined, scale: (value: number) => number) =>
    range && { min: scale(range.min), max: scale(range.max) };
  const rate = profile.bounds?.rate ?? scaled(bounds?.rate, rates);
  const inFlight = profile.bounds?.inFlight ?? scaled(bounds?.inFlight, caps);
  const capacity = profile.bounds?.capacity ?? scaled(bounds?.capacity, rates);
  return {
    ...policy,
    limiter: {
      ...limiter,
      rate: profile.rate ?? rates(limiter.rate),
      capacity: profile.capacity ?? Math.max(1, rates(limiter.capacity)),
      ...(inFlightMax === undefined ? {} : { inFlightMax }),
    },
    ...(rate === undefined
      ? {}
      : {
          bounds: { ...bounds, rate, ...(inFlight && { inFlight }), ...(capacity && { capacity }) },
        }),
    whenLost: {
      ...whenLost,
      rate: whenLost.rate ?? limiter.rate,
      ...(limiter.inFlightMax === undefined
        ? {}
        : { inFlight: whenLost.inFlight ?? limiter.inFlightMax }),
    },
  };
}
