/** Whom a rollout has reached: a stable part of the subjects, the same in every process and language. Stage: enforce. */
import { hash } from 'node:crypto';
import { isPartial, parseRollout, ROLLOUT_PARTS } from '../redis/rollout.js';

export interface Reach {
  /** Is this take enforced? The others are in shadow. */
  reaches(subject: string | null): boolean;
}

/**
 * Where a subject stands among 10,000 parts: the first four bytes of SHA-256 of `<limiter>:<subject>`, big-endian,
 * modulo 10,000. With the limiter's name in it, no subject is the first of every rollout.
 */
export function rolloutPart(limiter: string, subject: string): number {
  const head = Number.parseInt(hash('sha256', `${limiter}:${subject}`).slice(0, 8), 16);
  return head % ROLLOUT_PARTS;
}

/**
 * null: it is enforced for all. A raised percentage only ever adds subjects. A take without a subject has no place
 * that would last, so a random part of them is enforced.
 */
export function compileRollout(
  limiter: string,
  text: string | null | undefined,
  random: () => number = Math.random,
): Reach | null {
  const rollout = parseRollout(text);
  if (!isPartial(rollout)) return null;
  const named = new Set(rollout.subjects);
  // 0.29 × 100 is 28.999…: parts are whole.
  const parts = Math.round((rollout.percent / 100) * ROLLOUT_PARTS);
  const bySubject = rollout.by !== 'request';
  return {
    reaches(subject) {
      if (subject !== null) {
        if (named.has(subject)) return true;
        if (bySubject) return parts > 0 && rolloutPart(limiter, subject) < parts;
      }
      return random() * ROLLOUT_PARTS < parts;
    },
  };
}
