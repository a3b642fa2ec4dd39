/** What a policy says of the limiter itself: its numbers, subjects, routes, algorithm. Stage: policy. */
import { z } from 'zod';
import { downstreamSchema } from './downstream-schema.js';
import { cap, capacity, cost, name, rate, route, subjectName, text } from './fields.js';
import { tiersSchema } from './tiers-schema.js';
import { number, ratio, refuse, time } from './units.js';

export const limiterSchema = z.strictObject({
  name,
  /** Limits taken together in one call share a group (one cluster slot). */
  group: name.optional(),
  /** Fleet-wide tokens per second. */
  rate,
  /** Most tokens held, fleet-wide; at least 1. */
  capacity,
  /** Most admitted requests under way, fleet-wide. Without it only the rate is enforced. */
  inFlightMax: cap.optional(),
  perSubject: z
    .strictObject({
      /** Template filled from the caller's attributes: `user:{userId}`. */
      subject: text(
        /^(?=[\s\S]{1,256}$)[^{}]*\{[A-Za-z_][A-Za-z0-9_.]*\}(?:[^{}]*[^{}A-Za-z0-9%][^{}]*\{[A-Za-z_][A-Za-z0-9_.]*\})*[^{}]*$/,
        "a template of at most 256 characters with at least one attribute in braces ('user:{userId}'), two of them parted by a ':' or '/'",
      ),
      rate,
      capacity,
      /** Scale the subject's rate with the total's. Default false. */
      follow: z.boolean().default(false),
      /** Good outcomes in a row raise a subject's numbers: `limiter.outcome(subject, 'paid')`. Default: none. */
      tiers: tiersSchema.optional(),
    })
    .optional(),
  /**
   * Routes it stands in front of: `POST /api/pay/**`. `*` and `:id` are one segment, `**` any number. A request falls
   * under the most exact route. Default none.
   */
  routes: z
    .array(route)
    .max(64, 'are more than 64 routes. Name a common path: /api/**.')
    .default([]),
  /** Which processes report completions; with `none` the rate-only law rules. Default 'all'. */
  completions: z.enum(['all', 'some', 'none']).default('all'),
  /** Largest cost a caller takes; the lowest capacity must not lie below it. Default 1. */
  maxCost: cost.default(1),
  /** Share of the capacity that must remain after a take of that priority. Defaults 0. */
  reserve: z.strictObject({ default: ratio.default(0), sheddable: ratio.default(0) }).prefault({}),
  /**
   * How takes are decided. With a window, limit = rate × window, capacity aside; 'auto': a sliding log up to 1,000
   * tokens a window, above it a sliding counter. Default: what `createLimiter` says, else the token bucket.
   */
  algorithm: z
    .enum([
      'token-bucket',
      'sliding-log',
      'sliding-counter',
      'fixed-window',
      'leaky-bucket',
      'auto',
    ])
    .optional(),
  /** Length of the window: '1m'. Only with 'auto' and the sliding and fixed ones, which need it. */
  window: time({ min: 1, max: 31_622_400_000 }).optional(),
  /** Cells of a sliding counter: what was taken returns up to window ÷ cells late. Default 6. */
  cells: number('cells', { min: 1, max: 1000, whole: true }).optional(),
  /** What buckets hold after Redis lost them: 'full', 'empty', or a share of the capacity, 0 to 1. Default 'full'. */
  coldStart: z
    .custom<'full' | 'empty' | number>(
      (value) =>
        value === 'full' ||
        value === 'empty' ||
        (typeof value === 'number' && value >= 0 && value <= 1),
      { error: (issue) => refuse(issue.input, "'full', 'empty' or a share from 0 to 1 (0.25)") },
    )
    .default('full'),
  /** What a take counts: every request, or only those that end so; the others are given back. Default 'all'. */
  count: z.enum(['all', 'failures', 'successes']).optional(),
  /** One token at a time, or blocks that a process decides from itself for 250 ms at most. Default 'each'. */
  draw: z.enum(['each', 'block']).optional(),
  /** Keep the in-flight cap as places in Redis: exact, for a cap smaller than the fleet. Default: where it is needed. */
  exact: z.boolean().optional(),
  /** For whom it is enforced so far; the others are in shadow. Default: all. */
  rollout: z
    .strictObject({
      /** Share of the subjects, by a stable hash: whom 1 % reaches, 10 % reaches too. */
      percent: number('percent', { min: 0, max: 100 }),
      /** Enforced first, whatever the share: `user:42`. */
      subjects: z.array(subjectName).max(100, 'are more than 100 subjects.').optional(),
      /** 'subject', or 'request': a random share of the requests. Default 'subject'. */
      by: z.enum(['subject', 'request']).optional(),
    })
    .optional(),
  /** What it shares with other limiters: `downstream('orders-db', { capacity: 2000 })`. Default: nothing. */
  downstream: downstreamSchema.optional(),
  /**
   * While the total refuses somebody, subjects above their max-min share of it are refused first. Token buckets only;
   * `perSubject` says who the subjects are. Default false.
   */
  fair: z.boolean().optional(),
  /** Most subjects with a bucket of their own; past it new ones share one bucket. Default: no limit. */
  subjects: z
    .strictObject({
      max: number('subjects', { min: 1, max: 1e7, whole: true }),
      overflow: z.literal('shared').optional(),
    })
    .optional(),
});
