/** Decides in this process while Redis is away: its part of the last numbers seen, and a little more. Stage: enforce. */
import type { InForceView } from './in-force.js';
import { keptSubject } from './kept-subject.js';

/** Load is never spread evenly: each process may use a fifth more than its even part. */
const MARGIN = 1.2;
/** Subjects remembered; beyond it the longest unseen is forgotten. The total still binds all. */
const MAX_SUBJECTS = 10_000;

export interface LocalAnswer {
  allowed: boolean;
  reason: 'ok' | 'off' | 'rate' | 'subject' | 'breaker_open' | 'cost_exceeds_capacity';
  remaining: number;
  retryAfterMs: number | null;
}

export interface LocalBucket {
  take(subject: string | null, cost: number, nowMs: number): LocalAnswer;
  /** Redis admitted this: an outage that begins now must not find a full bucket here. */
  spend(cost: number, nowMs: number): void;
  /** What `take` admitted here did not happen after all. */
  giveBack(subject: string | null, cost: number): void;
}

/** As much of what is in force as it is decided by. */
export type LocalView = Pick<
  InForceView,
  'mode' | 'unknown' | 'processes' | 'fallback' | 'openAt' | 'openForMs'
>;

interface Bucket {
  tokens: number;
  atMs: number;
}

/**
 * rate and capacity = the last in force ÷ live processes × 1.2. An open breaker stays shut for its open time,
 * then lets its part of one request a second through. Priorities are not told apart here: reserves are kept
 * in Redis.
 */
export function createLocalBucket(view: LocalView): LocalBucket {
  const total: Bucket = { tokens: Number.POSITIVE_INFINITY, atMs: 0 };
  const subjects = new Map<string, Bucket>();

  function share(number: number): number {
    return (number / view.processes) * MARGIN;
  }

  /** Never below one whole request, or a large fleet would admit nothing at all. */
  function capacityShare(capacity: number): number {
    return Math.max(Math.min(1, capacity), Math.min(capacity, share(capacity)));
  }

  function refill(bucket: Bucket, rate: number, capacity: number, nowMs: number): void {
    const elapsedS = Math.max(0, nowMs - bucket.atMs) / 1000;
    bucket.tokens = Math.min(capacity, bucket.tokens + elapsedS * rate);
    bucket.atMs = nowMs;
  }

  function subjectBucket(name: string): Bucket {
    const subject = keptSubject(name);
    let bucket = subjects.get(subject);
    if (bucket) subjects.delete(subject);
    else {
      bucket = { tokens: Number.POSITIVE_INFINITY, atMs: 0 };
      if (subjects.size >= MAX_SUBJECTS) subjects.delete(subjects.keys().next().value!);
    }
    subjects.set(subject, bucket);
    return bucket;
  }

  return {
    take(subject, cost, nowMs) {
      const mode = view.mode;
      if (mode === 'off' || view.unknown) {
        return {
          allowed: true,
          reason: mode === 'off' ? 'off' : 'ok',
          remaining: 0,
          retryAfterMs: 0,
        };
      }
      if (view.openAt(nowMs)) return denied('breaker_open', 0, view.openForMs(nowMs));
      const numbers = view.fallback();
      const rate = share(numbers.rate);
      const capacity = capacityShare(numbers.capacity);
      refill(total, rate, capacity, nowMs);
      if (cost > numbers.capacity) return denied('cost_exceeds_capacity', total.tokens, null);

      let own: Bucket | null = null;
      const ownRate = share(numbers.subjectRate);
      if (subject !== null && numbers.subjectRate >= 0) {
        if (cost > numbers.subjectCapacity) {
          return denied('cost_exceeds_capacity', total.tokens, null);
        }
        own = subjectBucket(subject);
        const ownCapacity = capacityShare(numbers.subjectCapacity);
        refill(own, ownRate, ownCapacity, nowMs);
        const missing = Math.min(cost, ownCapacity) - own.tokens;
        if (missing > 0) return denied('subject', own.tokens, waitMs(missing, ownRate));
      }
      // A cost above this process's part of the capacity passes from a full part, and leaves a debt.
      const missing = Math.min(cost, capacity) - total.tokens;
      if (missing > 0) return denied('rate', total.tokens, waitMs(missing, rate));
      total.tokens -= cost;
      if (own) own.tokens -= cost;
      return {
        allowed: true,
        reason: 'ok',
        remaining: whole(Math.min(total.tokens, own ? own.tokens : Number.POSITIVE_INFINITY)),
        retryAfterMs: 0,
      };
    },
    spend(cost, nowMs) {
      const numbers = view.fallback();
      refill(total, share(numbers.rate), capacityShare(numbers.capacity), nowMs);
      // A debt that an outage left stays; a spending makes none.
      total.tokens = Math.max(Math.min(0, total.tokens), total.tokens - cost);
    },
    giveBack(subject, cost) {
      total.tokens += cost;
      const own = subject === null ? undefined : subjects.get(keptSubject(subject));
      if (own) own.tokens += cost;
    },
  };
}

function denied(
  reason: LocalAnswer['reason'],
  tokens: number,
  retryAfterMs: number | null,
): LocalAnswer {
  return { allowed: false, reason, remaining: whole(tokens), retryAfterMs };
}

function whole(tokens: number): number {
  return Math.max(0, Math.floor(tokens));
}

function waitMs(missing: number, rate: number): number | null {
  return rate > 0 ? Math.max(1, Math.ceil((missing / rate) * 1000)) : null;
}
