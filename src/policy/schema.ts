/** What a policy may say: one strict zod schema, the source of the types, of defaults and of errors. Stage: policy. */
import { z } from 'zod';

const UNIT_MS = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `250` (ms) or `'250ms'`, `'5s'`, `'1m'`, `'2h'`, `'7d'` → milliseconds. */
export const duration = z.union([z.number().nonnegative(), z.string()]).transform((value, ctx) => {
  if (typeof value === 'number') return value;
  const match = /^(\d+(?:\.\d+)?)(us|ms|s|m|h|d)$/.exec(value.trim());
  if (!match) {
    ctx.addIssue({
      code: 'custom',
      message: `${JSON.stringify(value)} is not a duration. Write a number of milliseconds, or '250ms', '5s', '1m', '2h'.`,
    });
    return z.NEVER;
  }
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
});

/** `0.01` or `'1%'` → 0…1. */
export const ratio = z.union([z.number(), z.string()]).transform((value, ctx) => {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)%$/.exec(value.trim()) : null;
  const number = typeof value === 'number' ? value : match ? Number(match[1]) / 100 : Number.NaN;
  if (!(number >= 0 && number <= 1)) {
    ctx.addIssue({
      code: 'custom',
      message: `${JSON.stringify(value)} is not a ratio. Write 0 … 1 or '1%'.`,
    });
    return z.NEVER;
  }
  return number;
});

const rate = z.number().positive();
const tokens = z.number().positive();
const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "use 1 to 64 of a-z, 0-9, '.', '_', '-'");
const key = z.string().regex(/^[a-zA-Z][a-zA-Z0-9_]{0,63}$/, 'use a plain identifier');

/** A secret or address that only the reading daemon resolves; the reference is what is stored and hashed. */
export const envRef = z.strictObject({ env: z.string().regex(/^[A-Z][A-Z0-9_]*$/) });

export const limiterSchema = z.strictObject({
  name,
  /** Limits taken together in one call share a group (one cluster slot). */
  group: name.optional(),
  /** Fleet-wide tokens per second. */
  rate,
  /** Most tokens held, fleet-wide. */
  capacity: tokens,
  /** Most admitted requests under way, fleet-wide. Without it only the rate is enforced. */
  inFlightMax: z.number().int().positive().optional(),
  perSubject: z
    .strictObject({
      /** Template filled from the caller's attributes: `user:{userId}`. */
      subject: z.string().min(1),
      rate,
      capacity: tokens,
      /** Scale the subject's rate with the total's. Default false. */
      follow: z.boolean().default(false),
    })
    .optional(),
  routes: z.array(z.string()).default([]),
  completions: z.enum(['all', 'some', 'none']).default('all'),
  /** Largest cost a caller takes; the lowest capacity must not lie below it. */
  maxCost: tokens.default(1),
  /** Share of the capacity that must remain after a take of that priority. Defaults 0. */
  reserve: z.strictObject({ default: ratio.default(0), sheddable: ratio.default(0) }).prefault({}),
  /** What fills buckets after Redis lost them. Default 'full'. */
  coldStart: z.enum(['full', 'empty']).default('full'),
});

export const signalSchema = z.discriminatedUnion('source', [
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.enum(['latency', 'dbWait']),
    /** 'mean' or a quantile 0…1. */
    of: z.union([z.literal('mean'), z.number().gt(0).lt(1)]),
  }),
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.enum(['errorRatio', 'poolWaiting', 'inFlight', 'goodput']),
  }),
  z.strictObject({
    source: z.literal('telemetry'),
    stat: z.literal('errors'),
    /** Count only failures with this code, of this upstream. */
    code: z.string().min(1).optional(),
    upstream: z.string().min(1).optional(),
  }),
  z.strictObject({
    source: z.literal('postgres'),
    stat: z.enum(['waiting', 'connectionsRatio', 'longestTransactionMs']),
    url: z.union([envRef, z.string().min(1)]),
    deadlineMs: duration.default(800),
  }),
]);

/** `below` or `above`: '250ms' for times, '1%' for ratios, a number for counts. */
const level = z.union([z.number().nonnegative(), duration, ratio]);
export const objectiveSchema = z
  .strictObject({
    below: level.optional(),
    above: level.optional(),
    weight: z.number().positive().default(1),
    sustain: duration.default(0),
  })
  .refine(
    (o) => (o.below === undefined) !== (o.above === undefined),
    'give exactly one of below, above',
  );

export const controlSchema = z.discriminatedUnion('law', [
  z.strictObject({ law: z.literal('fixed') }),
  z.strictObject({
    law: z.literal('adaptive'),
    completions: z.enum(['all', 'some', 'none']).optional(),
  }),
  z.strictObject({
    law: z.literal('step'),
    slowAboveMs: duration.default(500),
    slowFor: duration.default(30_000),
    down: z.number().gt(0).lt(1).default(0.8),
    healthyBelow: ratio.default(0.001),
    healthyFor: duration.default(300_000),
    up: z.number().gt(1).default(1.1),
    /** Answers in `healthyFor` below which a minute proves nothing. */
    minAnswersPerMinute: z.number().positive().default(10),
    dbWaitsAbove: z.number().nonnegative().optional(),
    dbWaitsFor: duration.default(30_000),
  }),
]);

const range = (item: z.ZodNumber) => z.strictObject({ min: item, max: item });
export const boundsSchema = z.strictObject({
  rate: range(rate),
  inFlight: range(z.number().int().positive()).optional(),
  capacity: range(tokens).optional(),
});

export const breakerSchema = z.strictObject({
  /** Key of the signal it watches. */
  on: key,
  /** Trips above this: a ratio for error ratios, a count for errors. */
  above: z.union([z.number().nonnegative(), ratio]),
  /** Window of the count or ratio. Default 1 minute for counts, 2 s for ratios. */
  per: duration.optional(),
  /** Answers in the window below which a ratio proves nothing. Default 10. */
  minAnswers: z.number().int().positive().default(10),
  openFor: duration.default(5000),
  /** Cap of the doubling open time. Default 60 s. */
  openForMax: duration.default(60_000),
  /** Tokens per second while half-open. Default 1. */
  probeRate: rate.default(1),
  /** Probes that must succeed before recovering. Default 3. */
  successes: z.number().int().positive().default(3),
  /** Half-open without a verdict for this long opens again. Default 30 s. */
  probeDeadline: duration.default(30_000),
});

export const guardsSchema = z.strictObject({
  /** Relative change below which nothing is written. Default 3 %. */
  deadBand: ratio.default(0.03),
  /** Least time between two raises. Default 2 s. */
  cooldown: duration.default(2000),
  /** Largest factor of one raise. Default 2. */
  raiseMax: z.number().gt(1).default(2),
  /** Changes a minute beyond which raises wait. Default 30. */
  changesPerMinute: z.number().int().positive().default(30),
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
      after: duration.default(60_000),
      over: duration.default(30_000),
      rate: rate.optional(),
      inFlight: z.number().int().positive().optional(),
    })
    .prefault({}),
  /** What the SDK does when Redis does not answer in time. Default 'local'. */
  onRedisError: z.enum(['open', 'closed', 'local']).default('local'),
  /** What a missing or stale signal does. Never a raise, never a trip. Default 'hold'. */
  onMissing: z.enum(['hold', 'glide', 'ignore']).default('hold'),
  mode: z.enum(['off', 'shadow', 'recommend', 'auto']).default('recommend'),
  reload: z.enum(['auto', 'apply']).default('auto'),
  owner: z.string().optional(),
});

/** What an author writes. */
export type PolicyInput = z.input<typeof policySchema>;
/** Plain data with all defaults filled in: adopted, hashed, stored, and what every pure function takes. */
export type Policy = z.output<typeof policySchema>;
export type Signal = Policy['signals'][string];
export type Breaker = NonNullable<Policy['breaker']>;
export type Control = Policy['control'];
