/** The params a fresh limiter gets from its policy: every number a script needs, defaults filled in. Pure. Stage: policy → actuate. */
import { type Algorithm, autoAlgorithm, DEFAULT_CELLS, hasWindow } from '../redis/algorithms.js';
import type { OnRedisError, ParamChange } from '../redis/params.js';
import { rolloutText } from '../redis/rollout.js';
import { serviceTermsText } from '../redis/service-terms.js';
import { subjectTermsText } from '../redis/subject-terms.js';
import type { Policy } from './schema.js';

/** What `openForMs` and `probeRate` say when a policy has no breaker: a person can still trip the limiter. */
const TRIP_DEFAULTS = { openForMs: 5000, probeRate: 1 } as const;

/**
 * Bounds that a policy leaves out are its own number, so that nothing can move it; the safe values of a lost
 * autopilot are `whenLost`'s, else the policy's own. The caller adds `policyHash`.
 */
export function paramsFromPolicy(policy: Policy) {
  const { limiter, bounds, breaker, whenLost } = policy;
  const inFlightMax = limiter.inFlightMax ?? 0;
  return {
    mode: policy.mode,
    state: 'closed',
    generation: 0,
    rate: limiter.rate,
    capacity: limiter.capacity,
    inFlightMax,
    subjectRate: limiter.perSubject?.rate ?? -1,
    subjectCapacity: limiter.perSubject?.capacity ?? 0,
    subjectFollow: limiter.perSubject?.follow ? 1 : 0,
    policyRate: limiter.rate,
    minRate: bounds?.rate.min ?? limiter.rate,
    maxRate: bounds?.rate.max ?? limiter.rate,
    minCapacity: bounds?.capacity?.min ?? limiter.capacity,
    maxCapacity: bounds?.capacity?.max ?? limiter.capacity,
    minInFlight: bounds?.inFlight?.min ?? inFlightMax,
    maxInFlight: bounds?.inFlight?.max ?? inFlightMax,
    openUntil: 0,
    openForMs: breaker?.openFor ?? TRIP_DEFAULTS.openForMs,
    probeRate: breaker?.probeRate ?? Math.min(TRIP_DEFAULTS.probeRate, limiter.rate),
    lostAfterMs: whenLost.after,
    lostOverMs: whenLost.over,
    safeRate: whenLost.rate ?? limiter.rate,
    safeInFlight: whenLost.inFlight ?? inFlightMax,
    reserveDefault: limiter.reserve.default,
    reserveSheddable: limiter.reserve.sheddable,
    frozenUntil: 0,
    pinnedUntil: 0,
    holdBreaker: 0,
    heldBy: '',
    onRedisError: (policy.onRedisError ?? '') as OnRedisError | '',
    subject: (limiter.perSubject?.subject ?? '') as string,
    ...algorithmOf(limiter),
    terms: termsOf(limiter) as string,
    ...subjectRulesOf(limiter),
    rollout: rolloutText(limiter.rollout) as string,
  } as const satisfies ParamChange;
}

/** What services must know beside the numbers. */
function termsOf({ routes, count, draw, exact }: Policy['limiter']): string {
  return serviceTermsText({
    ...(routes.length > 0 && { routes }),
    ...(count !== undefined && { count }),
    ...(draw !== undefined && { draw }),
    ...(exact !== undefined && { exact }),
  });
}

/** Overrides by a person count too: whoever adopts adds them. */
function subjectRulesOf({ subjects, perSubject, fair }: Policy['limiter']) {
  const subjectTerms: string = subjectTermsText(subjects?.max, perSubject?.tiers, fair);
  return { subjectTerms, subjectRules: (subjectTerms === '' ? 0 : 1) as 0 | 1 };
}

/** `auto` is settled here, by the policy's own rate, so that the whole fleet takes the same. */
function algorithmOf({ algorithm, rate, window, cells }: Policy['limiter']) {
  if (algorithm === undefined || !hasWindow(algorithm)) {
    return { algorithm: (algorithm ?? '') as Algorithm | '', windowMs: 0, cells: 0 };
  }
  const windowMs = Math.round(window ?? 0);
  const chosen = algorithm === 'auto' ? autoAlgorithm(rate, windowMs) : algorithm;
  return {
    algorithm: chosen as Algorithm | '',
    windowMs,
    cells: chosen === 'sliding-counter' ? (cells ?? DEFAULT_CELLS) : 0,
  };
}
