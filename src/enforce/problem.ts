/** A denial as an HTTP answer: status and an RFC 9457 problem that says which limit denied and why. Stage: enforce. */
import type { TakeDecision } from './decision.js';
import { retrySeconds } from './headers.js';

export const PROBLEM_TYPE = 'application/problem+json';

export interface Problem {
  type: string;
  title: string;
  status: 429 | 503;
  detail: string;
  limiter: string;
  limit: string;
  reason: string;
  retryAfterSeconds?: number;
  'violated-policies'?: string[];
}

const IANA = 'https://iana.org/assignments/http-problem-types#';

/** What the client may do about it, by reason. */
const WHY: Record<string, string> = {
  subject: 'this client used up its own allowance',
  rate: 'all clients together used up the rate',
  in_flight: 'as many requests are under way as the service bears',
  breaker_open: 'the service behind it is failing and is left alone for a while',
  probe_budget: 'the service behind it is being tried with a few requests',
  reserve: 'what is left is kept for requests of a higher priority',
  fair_share: 'this client is above its fair share while others are refused',
  cost_exceeds_capacity: 'the request costs more than the limit can ever hold',
  blocked: 'this client is blocked',
  redis_away: 'the limit cannot be checked at the moment',
};

/** Denied by a quota that `RateLimit-Policy` lists; the others are none. */
const BY_QUOTA: readonly string[] = ['subject', 'cost', 'rate', 'reserve'];

/** 429: the client's own doing (its bucket, its cost, more than its share). 503: the state of the service. */
export function statusOf({ limit, reason }: TakeDecision): 429 | 503 {
  return limit === 'subject' || limit === 'cost' || reason === 'fair_share' ? 429 : 503;
}

/** `retryS`: the `Retry-After` of the same answer, so that header and body say one thing. */
export function problemOf(
  name: string,
  decision: TakeDecision,
  retryS: number | null = retrySeconds(decision),
): Problem {
  const status = statusOf(decision);
  const limit = decision.limit ?? 'rate';
  const own = limit === 'subject';
  const again = retryS === null ? '' : ` Try again in ${retryS} s.`;
  return {
    type: `${IANA}${status === 429 ? 'quota-exceeded' : 'temporary-reduced-capacity'}`,
    title: status === 429 ? 'Too many requests' : 'Service is limiting requests',
    status,
    detail: `Limiter ${name} denied the request: ${WHY[decision.reason] ?? decision.reason}.${again}`,
    limiter: name,
    limit,
    reason: decision.reason,
    ...(retryS === null ? {} : { retryAfterSeconds: retryS }),
    ...(BY_QUOTA.includes(limit) ? { 'violated-policies': [own ? `${name}.subject` : name] } : {}),
  };
}
