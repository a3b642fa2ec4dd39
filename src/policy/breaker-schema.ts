/** What a policy says of its breaker: what trips it, how it comes back, whom it opens with. Stage: policy. */
import { z } from 'zod';
import { name, rate } from './fields.js';
import { level, number, time } from './units.js';

/** A level that opens the breaker when a signal passes it. */
const tripFields = {
  /**
   * Key of the signal it watches: a share of the answers, a count of failures, failures in a row, or a number of the
   * database or another source.
   */
  on: z.string(),
  /** Trips above this: a ratio for shares, a count for errors, the signal's own unit otherwise. */
  above: level,
  /**
   * Window of a count or share, or how long another number must stay above. Default 1 minute for counts, 2 s for
   * shares, 30 s for others.
   */
  per: time({ min: 1000, max: 600_000 }).optional(),
};
const minAnswers = number('answers', { min: 1, whole: true });

const tripSchema = z.strictObject({ ...tripFields, minAnswers: minAnswers.optional() });

export const breakerSchema = z.strictObject({
  ...tripFields,
  /** Answers below which a share proves nothing. Default 10. */
  minAnswers: minAnswers.default(10),
  /** Further levels: any of them trips it too. Default: none. */
  or: z
    .array(tripSchema)
    .max(7, 'are more than 7 levels beside the first. Fewer tell more.')
    .optional(),
  /** Time at rate zero after the first trip. Default 5 s. */
  openFor: time({ min: 100 }).default(5000),
  /** Cap of the doubling open time. Default 60 s. */
  openForMax: time({ min: 100 }).default(60_000),
  /** Tokens per second while half-open. Default 1. */
  probeRate: rate.default(1),
  /** Probes that must succeed before recovering. Default 3. */
  successes: number('probes', { min: 1, max: 10_000, whole: true }).default(3),
  /** Half-open without a verdict for this long opens again. Default 30 s. */
  probeDeadline: time({ min: 1000 }).default(30_000),
  /** What a share above its level takes away: all, or a part that grows with the share. Default 'all'. */
  shed: z.enum(['all', 'proportional']).optional(),
  /** The breakers of all limiters that name this upstream open and come back together. Default: alone. */
  upstream: name.optional(),
});
