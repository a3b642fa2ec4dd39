/** Repeats here what Redis has just denied, until it could pass: who asks again at once costs Redis nothing. Stage: enforce. */
import type { InForce, TakeAnswer } from '../redis/calls.js';
import { Decision } from './decision.js';
import type { TakeWish } from './pending-take.js';

/** The longest that a raise which this process has not heard of goes unnoticed. */
const LIFE_MS = 1_000;
/** Of longer subjects nothing is remembered. */
const LONGEST_SUBJECT = 1_024;
/** Subjects remembered; beyond it the oldest denial is forgotten. */
const MAX_DENIALS = 10_000;

export interface KnownDenial {
  answer: TakeAnswer;
  inForce: InForce;
}

export interface DenyCache {
  /**
   * What Redis said of this very take and would say again, its waiting time counted down; else null. Read it at once:
   * it is counted down in place.
   */
  find(wish: TakeWish, nowMs: number): KnownDenial | null;
  /** `askedMs` is before the call, so that the time to wait never ends later here than in Redis. */
  learn(wish: TakeWish, answer: TakeAnswer, inForce: InForce, askedMs: number): void;
  /** Other numbers are in force, or another server answers. */
  clear(): void;
}

interface Denial extends KnownDenial {
  cost: number;
  priority: TakeWish['priority'];
  /** Null: not by waiting. */
  passesAtMs: number | null;
  untilMs: number;
}

/** It only ever denies, and only while (epoch, revision) holds. Null subject: the total's own takes. */
export function createDenyCache(): DenyCache {
  const denials = new Map<string | null, Denial>();

  return {
    find({ subject, cost, priority }, nowMs) {
      const known = denials.get(subject);
      if (known === undefined) return null;
      if (nowMs >= known.untilMs) {
        denials.delete(subject);
        return null;
      }
      if (known.cost !== cost || known.priority !== priority) return null;
      if (known.passesAtMs === null) return known;
      known.answer.retryAfterMs = Math.max(1, Math.ceil(known.passesAtMs - nowMs));
      return known;
    },
    learn({ subject, cost, priority }, answer, inForce, askedMs) {
      // A glide moves the numbers without a write; without params there is no revision to hold on to.
      if (!inForce.managed || inForce.gliding || inForce.mode === 'shadow') return;
      // Ten thousand of the longest would be hundreds of megabytes.
      if (subject !== null && subject.length > LONGEST_SUBJECT) return;
      // Waiting times are rounded up to a ms: it is given back.
      const passesAtMs =
        answer.retryAfterMs === null ? null : askedMs + Math.max(0, answer.retryAfterMs - 1);
      const untilMs = Math.min(passesAtMs ?? Number.POSITIVE_INFINITY, askedMs + LIFE_MS);
      denials.delete(subject);
      if (denials.size >= MAX_DENIALS) denials.delete(denials.keys().next().value!);
      const own = { ...answer };
      denials.set(subject, { answer: own, inForce, cost, priority, passesAtMs, untilMs });
    },
    clear: () => denials.clear(),
  };
}

/** A remembered denial as a decision; the clock, a good part of what it costs, was read by the caller. */
export function repeatDenial(known: KnownDenial, subject: string | null, nowMs: number): Decision {
  const { reason, remaining, retryAfterMs } = known.answer;
  return new Decision(
    false,
    false,
    reason,
    remaining,
    retryAfterMs,
    'cached',
    subject,
    known.inForce,
    null,
    nowMs,
    null,
  );
}

/** Switched off. */
export const NO_DENY_CACHE: DenyCache = { find: () => null, learn() {}, clear() {} };
