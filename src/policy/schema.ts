/** What a policy may say: one strict zod schema, the source of the types, of defaults and of errors. Stage: policy. */
import { z } from 'zod';
import { level, number, ratio, refuse, time } from './units.js';

const rate = number('tokens per second', { min: 1e-6, max: 1e6 });
const capacity = number('tokens', { min: 1, max: 1e9 });
const cost = number('tokens', { min: 1e-6, max: 1e9 });
const cap = number('requests in flight', { min: 1, max: 1e6, whole: true });
const factor = (range: { above?: number; below?: number }) => number('a factor', range);

const text = (pattern: RegExp, allowed: string) =>
  z.custom<string>((value) => typeof value === 'string' && pattern.test(value), {
    error: (issue) => refuse(issue.input, allowed),
  });
const name = text(
  /^[a-z0-9][a-z0-9._-]{0,63}$/,
  "a name (1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit)",
);
/** As the SDK reports it; what is reported in other characters comes in as `_`. */
const code = text(/^[A-Za-z0-9._-]{1,64}$/, "a name of 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'");
const key = z
  .string()
  .regex(
    /^[a-zA-Z][a-zA-Z0-9_]{0,63}$/,
    'is not a plain identifier: use letters, digits and _, beginning with a letter',
  );

/** A secret or address that only the reading daemon resolves; the reference is what is stored and hashed. */
export const envRef = z.strictObject({
  env: text(/^[A-Z][A-Z0-9_]{0,127}$/, "the name of an environment variable ('DATABASE_URL')"),
});

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
    })
    .optional(),
  /** Routes it stands in front of: `POST /api/pay/**`. Default none. */
  routes: z
    .array(text(/^([A-Z]+ |\* )?\/\S*$/, "a route ('POST /api/pay/**', or a path alone)"))
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
});

const telemetrySignal = z.discriminatedUnion('stat', [
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.enum(['latency', 'dbWait']),
    /** 'mean' or a quantile 0…1. */
    of: z.custom<'mean' | number>(
      (of) => of === 'mean' || (typeof of === 'number' && of > 0 && of < 1),
      { error: (issue) => refuse(issue.input, "'mean' or a quantile between 0 and 1 (0.95)") },
    ),
  }),
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.enum(['errorRatio', 'poolWaiting', 'inFlight', 'goodput']),
  }),
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.literal('errors'),
    /** Count only failures with this code, of this upstream. */
    code: code.optional(),
    upstream: code.optional(),
  }),
]);

export const signalSchema = z.discriminatedUnion('source', [
  telemetrySignal,
  z.strictObject({
    source: z.literal('postgres'),
    stat: z.enum(['waiting', 'connectionsRatio', 'longestTransactionMs']),
    url: z.union([envRef, z.string()]),
    /** Time the reading may take, within one tick. Default 800 ms. */
    deadlineMs: time({ min: 10, max: 1000 }).default(800),
  }),
]);

/** `below` or `above`: '250ms' for times, '1%' for ratios, a number for counts. */
export const objectiveSchema = z.strictObject({
  below: level.optional(),
  above: level.optional(),
  /** How much it counts beside the others. Default 1. */
  weight: number('a weight', { above: 0, max: 100 }).default(1),
  /** It must be missed for this long before it counts. Default 0. */
  sustain: time().default(0),
});

export const controlSchema = z.discriminatedUnion('law', [
  z.strictObject({ law: z.literal('fixed') }),
  z.strictObject({
    law: z.literal('adaptive'),
    /** Overrides `limiter.completions` for the law alone. */
    completions: z.enum(['all', 'some', 'none']).optional(),
  }),
  z.strictObject({
    law: z.literal('step'),
    /** Average response time above which, for `slowFor`, the rate is × `down`. Defaults 500 ms, 30 s, 0.8. */
    slowAboveMs: time({ min: 1 }).default(500),
    slowFor: time({ min: 1000 }).default(30_000),
    down: factor({ above: 0, below: 1 }).default(0.8),
    /** Error ratio below which, for `healthyFor`, the rate is multiplied by `up`. Defaults 0.1 %, 5 min, 1.1. */
    healthyBelow: ratio.default(0.001),
    healthyFor: time({ min: 1000 }).default(300_000),
    up: factor({ above: 1 }).default(1.1),
    /** Answers in a minute below which it proves nothing. Default 10. */
    minAnswersPerMinute: number('answers', { above: 0 }).default(10),
    /** Database waits above which, for `dbWaitsFor`, the rate is × `down`, and no raise meanwhile. Default: none. */
    dbWaitsAbove: number('waits', { min: 0 }).optional(),
    dbWaitsFor: time({ min: 1000 }).default(30_000),
  }),
]);

const range = <T extends z.ZodType<number, number>>(item: T) =>
  z.strictObject({ min: item, max: item });
export const boundsSchema = z.strictObject({
  /** The law, tuning and schedules keep the rate within. */
  rate: range(rate),
  /** The same for the in-flight cap. */
  inFlight: range(cap).optional(),
  /** Given: the capacity moves in proportion to the rate, within. Default: it stays the policy's. */
  capacity: range(capacity).optional(),
});

export const breakerSchema = z.strictObject({
  /** Key of the signal it watches: errors, or an error ratio. */
  on: z.string(),
  /** Trips above this: a ratio for error ratios, a count for errors. */
  above: level,
  /** Window of the count or ratio. Default 1 minute for counts, 2 s for ratios. */
  per: time({ min: 1000, max: 600_000 }).optional(),
  /** Answers in the window below which a ratio proves nothing. Default 10. */
  minAnswers: number('answers', { min: 1, whole: true }).default(10),
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
});

export const guardsSchema = z.strictObject({
  /** Relative change below which nothing is written. Default 3 %. */
  deadBand: ratio.default(0.03),
  /** Least time between two raises. Default 2 s. */
  cooldown: time().default(2000),
  /** Largest factor of one raise. Default 2. */
  raiseMax: factor({ above: 1 }).default(2),
  /** Changes a minute beyond which raises wait. Default 30. */
  changesPerMinute: number('changes', { min: 1, whole: true }).default(30),
});

export const policySchema = z.strictObject({
  limiter: limiterSchema,
  signals: z.record(key, signalSchema).default({}),
  objective: z.record(key, objectiveSchema).default({}),
  control: controlSchema.default({ law: 'fixed' }),
  bounds: boundsSchema.optional(),
  breaker: breakerSchema.optional(),
  guards: guardsSchema.prefault({}),
  /** Where the limits go when no autopilot writes. Default: the policy's own numbers, after 60 s, over 30 s. */
  whenLost: z
    .strictObject({
      after: time().default(60_000),
      over: time().default(30_000),
      rate: rate.optional(),
      inFlight: cap.optional(),
    })
    .prefault({}),
  /** What the SDK does when Redis does not answer in time. Default: what `createLimiter` says, else 'local'. */
  onRedisError: z.enum(['open', 'closed', 'local']).optional(),
  /** What a missing or stale signal does. Never a raise, never a trip. Default 'hold'. */
  onMissing: z.enum(['hold', 'glide', 'ignore']).default('hold'),
  /** Default 'recommend': the policy's numbers are enforced, what the law would do is only recorded. */
  mode: z.enum(['off', 'shadow', 'recommend', 'auto']).default('recommend'),
  /** 'auto' adopts a valid changed file at once; 'apply' waits for `flyball apply`. Default 'auto'. */
  reload: z.enum(['auto', 'apply']).default('auto'),
  /** Who answers for it; shown, not used. */
  owner: z.string().optional(),
});

/** What an author writes. */
export type PolicyInput = z.input<typeof policySchema>;
/** Plain data with all defaults filled in: adopted, hashed, stored, and what every pure function takes. */
export type Policy = z.output<typeof policySchema>;
export type Signal = Policy['signals'][string];
export type Breaker = NonNullable<Policy['breaker']>;
export type Control = Policy['control'];
