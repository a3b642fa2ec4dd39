/** Rate limit header fields of an answer (draft-ietf-httpapi-ratelimit-headers-11, RFC 9110 Retry-After). Stage: enforce. */
import { createHash } from 'node:crypto';
import type { FallbackNumbers } from '../redis/calls.js';
import type { TakeDecision } from './decision.js';
import { UNBOUND } from './in-force.js';

/** Retry hints of one moment are spread over this share of the wait, so that clients do not return as one. */
const JITTER = 0.2;
/** The largest integer of a structured field. */
const MAX_INTEGER = 999_999_999_999_999;
/** Hashed subjects that are remembered: hashing is most of what the fields cost. */
const MAX_KEYS = 4_096;

export interface HeaderOptions {
  /** Also send `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from now. Default false. */
  legacyHeaders?: boolean;
  /** The algorithm's window, whose limit is rate × window; 0: a bucket with its capacity. Default 0. */
  windowMs?: number;
  /** 0 ≤ r < 1; tests pass their own. */
  random?: () => number;
}

/** What `RateLimit-Policy` says of one limit. */
interface Quota {
  name: string;
  item: string;
  quota: number;
  rate: number;
}

/** The fields that hold for as long as the numbers do: written once, not on each answer. */
export interface Quotas {
  numbers: FallbackNumbers;
  windowMs: number;
  /** null: nobody has given a total. */
  total: Quota | null;
  own: Quota | null;
}

export function quotasOf(name: string, numbers: FallbackNumbers, windowMs = 0): Quotas {
  const { rate, capacity, subjectRate, subjectCapacity } = numbers;
  return {
    numbers,
    windowMs,
    total:
      rate === UNBOUND && capacity === UNBOUND ? null : quotaOf(name, rate, capacity, windowMs),
    own:
      subjectRate > 0 ? quotaOf(`${name}.subject`, subjectRate, subjectCapacity, windowMs) : null,
  };
}

export function sameQuotas(known: Quotas, numbers: FallbackNumbers, windowMs: number): boolean {
  const { numbers: old } = known;
  return (
    old === numbers ||
    (old.rate === numbers.rate &&
      old.capacity === numbers.capacity &&
      old.subjectRate === numbers.subjectRate &&
      old.subjectCapacity === numbers.subjectCapacity &&
      known.windowMs === windowMs)
  );
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
  return fieldsOf(quotasOf(name, numbers, options.windowMs), decision, options);
}

export function fieldsOf(
  { total, own }: Quotas,
  decision: TakeDecision,
  options: HeaderOptions,
): Record<string, string> {
  const { allowed, limit, subject } = decision;
  // More left than its bucket can hold: this subject has numbers of its own, which are not known here.
  const hasOwn = own !== null && subject !== null && !(allowed && decision.remaining > own.quota);
  const ofOwn = hasOwn && (allowed || limit === 'subject' || limit === 'cost');
  const shown = ofOwn ? own : total;
  if (shown === null) return allowed ? {} : retryFields(decision, options.random);
  const left = allowed || isBySize(decision) ? whole(Math.floor(decision.remaining)) : 0;
  // The numbers may have changed since they were decided by.
  const remaining = Math.min(left, shown.quota);
  const resetS = allowed ? secondsToUse(shown, remaining) : retrySeconds(decision);
  const item = `${shown.name};r=${remaining}`;
  const headers: Record<string, string> = {
    'RateLimit-Policy': policyField(
      total,
      hasOwn ? `${own.item};pk=${partitionKey(subject)}` : null,
    ),
    RateLimit: resetS === null ? item : `${item};t=${resetS}`,
  };
  if (!allowed && resetS !== null) headers['Retry-After'] = spread(resetS, options.random);
  if (options.legacyHeaders) {
    headers['X-RateLimit-Limit'] = String(shown.quota);
    headers['X-RateLimit-Remaining'] = String(remaining);
    const fullS = allowed ? secondsToFull(shown, remaining) : resetS;
    if (fullS !== null) headers['X-RateLimit-Reset'] = String(fullS);
  }
  return headers;
}

/** All that can be said to a denied client where no numbers are known, or may be told; nothing if it never can pass. */
export function retryFields(decision: TakeDecision, random?: () => number): Record<string, string> {
  const resetS = retrySeconds(decision);
  return resetS === null ? {} : { 'Retry-After': spread(resetS, random) };
}

function policyField(total: Quota | null, own: string | null): string {
  if (total === null) return own ?? '';
  return own === null ? total.item : `${total.item}, ${own}`;
}

/** Denied for its cost alone: a smaller one could pass now. By a cap, breaker, reserve or block none could. */
function isBySize({ limit, reason }: TakeDecision): boolean {
  return limit === 'rate' || limit === 'cost' || (limit === 'subject' && reason !== 'blocked');
}

/** Whole seconds until a denied take could pass, at least 1; null when it never can. */
export function retrySeconds({ retryAfterMs }: TakeDecision): number | null {
  return retryAfterMs === null ? null : whole(Math.max(1, Math.ceil(retryAfterMs / 1000)));
}

/** Later than the wait by up to a fifth of it, at least by a second: never earlier. */
function spread(seconds: number, random: () => number = Math.random): string {
  const most = Math.max(1, Math.floor(seconds * JITTER));
  return String(whole(seconds + Math.floor(random() * (most + 1))));
}

/**
 * Until all is back, and long enough that a client which spreads what is left over it stays within the rate: a full
 * bucket that said `r=200;t=0` would invite any pace. Null at rate 0.
 */
function secondsToUse(quota: Quota, remaining: number): number | null {
  if (quota.rate <= 0) return null;
  return whole(Math.ceil(Math.max(quota.quota - remaining, remaining, 0) / quota.rate));
}

function secondsToFull({ quota, rate }: Quota, remaining: number): number | null {
  return rate > 0 ? whole(Math.ceil(Math.max(0, quota - remaining) / rate)) : null;
}

/** `"name";q=200;w=2`: quota and the whole seconds in which it is refilled; no window at rate 0. */
function quotaOf(name: string, rate: number, capacity: number, windowMs: number): Quota {
  const quota = whole(Math.floor(windowMs > 0 ? Math.max(1, (rate * windowMs) / 1000) : capacity));
  const windowS = windowMs > 0 ? windowMs / 1000 : rate > 0 ? capacity / rate : null;
  const text = sfString(name);
  const window = windowS === null ? '' : `;w=${whole(Math.max(1, Math.ceil(windowS)))}`;
  return { name: text, item: `${text};q=${quota}${window}`, quota, rate };
}

function whole(number: number): number {
  return Math.min(MAX_INTEGER, number);
}

/** RFC 9651 string: printable ASCII in quotes, `"` and `\` escaped; anything else becomes `_`. */
export function sfString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '_').replace(/["\\]/g, '\\$&')}"`;
}

const keys = new Map<string, string>();

/** A byte sequence that names the subject without telling it: the first 12 bytes of its SHA-256. */
function partitionKey(subject: string): string {
  let key = keys.get(subject);
  if (key !== undefined) return key;
  const hash = createHash('sha256').update(subject, 'utf8').digest().subarray(0, 12);
  key = `:${hash.toString('base64')}:`;
  // A subject may be long; only what is cheap to keep is kept.
  if (subject.length > 128) return key;
  if (keys.size >= MAX_KEYS) keys.clear();
  keys.set(subject, key);
  return key;
}
