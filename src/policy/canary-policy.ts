/** The policy that a canary's part of the subjects gets, and which changes may go through a canary. Pure. Stage: policy → actuate. */
import { canaryName } from '../redis/canary.js';
import { policyDiff } from './plan.js';
import { profiled } from './profile.js';
import type { Policy } from './schema.js';

/** What decides how much passes. Another part of a policy cannot hold for some of the subjects alone. */
const MAY_DIFFER = [
  ...['limiter.rate', 'limiter.capacity', 'limiter.inFlightMax', 'limiter.reserve'],
  ...['limiter.perSubject.rate', 'limiter.perSubject.capacity', 'limiter.perSubject.follow'],
  ...['signals', 'objective', 'control', 'bounds', 'breaker', 'guards', 'whenLost', 'onMissing'],
];
/** What changes nothing that passes. */
const TELLS_ONLY = ['canary', 'owner', 'notify', 'reload', 'tune', 'onFailover'];

/** Does anything differ that a canary could prove? */
export function concernsTakes(from: Policy, to: Policy): boolean {
  return policyDiff(from, to).some(({ field }) => !isOf(TELLS_ONLY, field));
}

/** Why this change cannot run for a percent first; null: it can. */
export function noCanaryWhy(from: Policy, to: Policy, percent: number): string | null {
  const other = policyDiff(from, to).find(
    ({ field }) => !isOf(MAY_DIFFER, field) && !isOf(TELLS_ONLY, field),
  );
  if (other !== undefined) return `${other.field} changes, which cannot hold for some alone`;
  if (to.mode === 'off' || to.mode === 'shadow') return `mode ${to.mode} admits all`;
  if ((to.limiter.rollout?.percent ?? 100) < 100) return 'a rollout has not reached all';
  if (to.schedule?.some(({ profile }) => profile !== undefined)) {
    return 'its schedule sets the numbers by the time of day';
  }
  const { rate, window = 0, algorithm } = to.limiter;
  if (window > 0 && algorithm !== undefined && (rate * window * percent) / 100_000 < 1) {
    return `${percent} % of the limit is less than one take a window`;
  }
  return null;
}

function isOf(fields: readonly string[], field: string): boolean {
  return fields.some((each) => field === each || field.startsWith(`${each}.`));
}

/**
 * Totals are × `percent`, and so are the bounds and the safe values; numbers of single subjects stay. At least one take
 * of the largest cost fits. It shares no downstream and no upstream's breaker, is found by no route and tunes nothing:
 * that is the limiter's own.
 */
export function canaryPolicy(policy: Policy, percent: number): Policy {
  const share = percent / 100;
  const { profiles: _, schedule: _s, tune: _t, canary: _c, ...rest } = policy;
  const scaled = profiled({ ...rest, profiles: { canary: { times: share } } }, 'canary');
  const { downstream: _d, rollout: _r, ...limiter } = scaled.limiter;
  const { default: usual = 0, sheddable = 0 } = policy.bounds?.reserve ?? {};
  const { reserve } = limiter;
  const kept = Math.max(usual, sheddable, reserve.default, reserve.sheddable);
  const least = Math.max(1, limiter.maxCost / Math.max(0.01, 1 - kept));
  const { capacity } = scaled.bounds ?? {};
  const { rate = policy.limiter.rate, inFlight = policy.limiter.inFlightMax } = policy.whenLost;
  const { profiles: _p, breaker, ...without } = scaled;
  return {
    ...without,
    limiter: {
      ...limiter,
      name: canaryName(policy.limiter.name),
      capacity: Math.max(least, limiter.capacity),
      routes: [],
    },
    ...(scaled.bounds === undefined
      ? {}
      : {
          bounds: {
            ...scaled.bounds,
            ...(capacity && {
              capacity: {
                min: Math.max(least, capacity.min),
                max: Math.max(least, capacity.max),
              },
            }),
          },
        }),
    ...(breaker === undefined ? {} : { breaker: breakerPart(breaker, share) }),
    control: controlPart(policy.control, share),
    whenLost: {
      ...policy.whenLost,
      rate: part(rate, share),
      ...(inFlight === undefined ? {} : { inFlight: Math.max(1, Math.round(inFlight * share)) }),
    },
    reload: 'apply',
  };
}

/** What it opens is its own: the limiters of an upstream go by what holds for all of their subjects. */
function breakerPart(breaker: NonNullable<Policy['breaker']>, share: number): Policy['breaker'] {
  const { upstream: _, ...own } = breaker;
  if (own.probeRate === undefined) return own;
  return { ...own, probeRate: part(own.probeRate, share) };
}

/** Steps in tokens are parts of the total; factors and gains are not. */
function controlPart(control: Policy['control'], share: number): Policy['control'] {
  if (control.law !== 'aimd') return control;
  const { add, addInFlight } = control;
  return {
    ...control,
    ...(add === undefined ? {} : { add: part(add, share) }),
    ...(addInFlight === undefined ? {} : { addInFlight: part(addInFlight, share) }),
  };
}

function part(value: number, share: number): number {
  return Number((value * share).toPrecision(12));
}
