/** Rate limit header fields of an answer (draft-ietf-httpapi-ratelimit-headers, RFC 9110 Retry-After). Stage: enforce. */
import { createHash } from 'node:crypto';
import type { FallbackNumbers } from '../redis/calls.js';
import type { TakeDecision } from './decision.js';

/** Retry hints of one moment are spread over this share of the wait, so that clients do not return as one. */
const JITTER = 0.2;

export interface HeaderOptions {
  /** Also send `X-RateLimit-Limit`, `-Remaining`, `-Reset`. Default false. */
  legacy?: boolean;
  /** 0 ≤ r < 1; tests pass their own. */
  random?: () => number;
}

/**
 * `RateLimit-Policy` lists the total (`"name"`) and, where it is in force, the subject's bucket
 * (`"name.subject"`, with the hashed subject as partition key). `RateLimit` shows the one that binds: what
 * denied, else the subject's. Whole numbers: r rounded down, t and Retry-After up, Retry-After ≥ t.
 */
export function headersOf(
  name: string,
  decision: TakeDecision,
  numbers: FallbackNumbers,
  options: HeaderOptions = {},
): Record<string, string> {
  const headers: Record<string, string> = {};
  const ownBucket = decision.subject !== null && numbers.subjectRate > 0;
  const total = policyItem(name, numbers.capacity, numbers.rate);
  if (ownBucket) {
    const pk = partitionKey(decision.subject!);
    const own = policyItem(`${name}.subject`, numbers.subjectCapacity, numbers.subjectRate);
    headers['RateLimit-Policy'] = `${total}, ${own};pk=${pk}`;
  } else headers['RateLimit-Policy'] = total;

  const denied = !decision.allowed;
  const shown = ownBucket && (!denied || decision.limit === 'subject' || decision.limit === 'cost');
  const capacity = shown ? numbers.subjectCapacity : numbers.capacity;
  const rate = shown ? numbers.subjectRate : numbers.rate;
  // What a denied client may use now is nothing, whatever the other bucket holds.
  const remaining = decision.limit === 'in_flight' ? 0 : Math.floor(decision.remaining);
  const resetS = denied
    ? decision.retryAfterMs === null
      ? null
      : Math.max(1, Math.ceil(decision.retryAfterMs / 1000))
    : rate > 0
      ? Math.ceil(Math.max(0, capacity - remaining) / rate)
      : null;
  const item = sfString(shown ? `${name}.subject` : name);
  headers.RateLimit = `${item};r=${remaining}${resetS === null ? '' : `;t=${resetS}`}`;
  if (denied && resetS !== null) {
    const spread = Math.max(1, Math.floor(resetS * JITTER));
    const random = options.random ?? Math.random;
    headers['Retry-After'] = String(resetS + Math.floor(random() * (spread + 1)));
  }
  if (options.legacy) {
    headers['X-RateLimit-Limit'] = String(Math.floor(capacity));
    headers['X-RateLimit-Remaining'] = String(remaining);
    if (resetS !== null) headers['X-RateLimit-Reset'] = String(resetS);
  }
  return headers;
}

/** `"name";q=200;w=2`: quota and the whole seconds in which it is refilled; no window at rate 0. */
function policyItem(name: string, capacity: number, rate: number): string {
  const window = rate > 0 ? `;w=${Math.max(1, Math.ceil(capacity / rate))}` : '';
  return `${sfString(name)};q=${Math.floor(capacity)}${window}`;
}

/** RFC 9651 string: printable ASCII in quotes, `"` and `\` escaped; anything else becomes `_`. */
export function sfString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '_').replace(/["\\]/g, '\\$&')}"`;
}

/** A byte sequence that names the subject without telling it. */
function partitionKey(subject: string): string {
  const hash = createHash('sha256').update(subject, 'utf8').digest().subarray(0, 12);
  return `:${hash.toString('base64')}:`;
}
