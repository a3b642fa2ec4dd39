/** What a policy may say: one strict zod schema, the source of the types, of defaults and of errors. Stage: policy. */
import { z } from 'zod';
import { breakerSchema } from './breaker-schema.js';
import { cap, capacity, factor, rate } from './fields.js';
import { limiterSchema } from './limiter-schema.js';
import { notifySchema } from './notify-schema.js';
import { signalSchema } from './signals-schema.js';
import { tuneSchema } from './tune-schema.js';
import { level, number, ratio, time } from './units.js';
import { profileSchema, windowSchema } from './windows-schema.js';

const key = z
  .string()
  .regex(
    /^[a-zA-Z][a-zA-Z0-9_]{0,63}$/,
    'is not a plain identifier: use letters, digits and _, beginning with a letter',
  );

const profileName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "is not a name: use 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit",
  );

/** `below` or `above`: '250ms' for times, '1%' for ratios, a number for counts. */
export const objectiveSchema = z.strictObject({
  below: level.optional(),
  above: level.optional(),
  /** How much it counts beside the others. Default 1. */
  weight: number('a weight', { above: 0, max: 100 }).default(1),
  /** It must be missed for this long before it counts. Default 0. */
  sustain: time().default(0),
  /** Nothing is cut for it until one of these signals is past its level too: `{ dbWait: { above: 2 } }`. */
  confirm: z
    .record(key, z.strictObject({ below: level.optional(), above: level.optional() }))
    .optional(),
  /** What it does while its signal is missing. Default: the policy's `onMissing`. */
  onMissing: z.enum(['hold', 'glide', 'ignore']).optional(),
});

export const controlSchema = z.discriminatedUnion('law', [
  z.strictObject({ law: z.literal('fixed') }),
  z.strictObject({
    law: z.literal('adaptive'),
    /** Overrides `limiter.completions` for the law alone. */
    completions: z.enum(['all', 'some', 'none']).optional(),
  }),
  z.strictObject({
    law: z.literal('aimd'),
    /** Factor of a cut, of rate and cap alike. Default 0.7. */
    down: factor({ above: 0, below: 1 }).default(0.7),
    /** Tokens per second that a second under a rate that binds adds. Default: 2 % of the policy's rate. */
    add: number('tokens per second', { above: 0, max: 1e6 }).optional(),
    /** The same for the in-flight cap. Default: 2 % of the policy's cap. */
    addInFlight: number('requests in flight', { above: 0, max: 1e6 }).optional(),
  }),
  z.strictObject({
    law: z.literal('pi'),
    /** Log change of the limits for each log change of the error. Default 0.3. */
    kp: number('a gain', { min: 0, max: 10 }).default(0.3),
    /** Log change a second for each unit of the error. Default 0.1. */
    ki: number('a gain', { min: 0, max: 10 }).default(0.1),
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
  /** Given: under overload `limiter.reserve` rises up to these, and falls back to itself. Default: it stays. */
  reserve: z.strictObject({ default: ratio.optional(), sheddable: ratio.optional() }).optional(),
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
  /** Factor by which rate and cap may rise within an hour above what they have been. Default: no limit. */
  driftPerHour: factor({ above: 1 }).optional(),
  /** In mode `auto`: when goodput falls after a raise or an adoption, back to the last good values. Default: true. */
  autoRollback: z.boolean({ error: 'is neither true nor false.' }).optional(),
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
  /** A change of the numbers, the law or the bounds runs for a percent of the subjects first. Default: at once for all. */
  canary: z
    .strictObject({
      /** Share of the subjects. */
      percent: number('percent', { above: 0, max: 50 }),
      /** It is judged after this time: '10m'. */
      for: time({ min: 1000, max: 86_400_000 }),
    })
    .optional(),
  /** After another Redis server took over: the rate is × `factor` for that time. Default 0.5, 30 s. */
  onFailover: z
    .strictObject({
      factor: number('a factor', { above: 0, max: 1 }).optional(),
      for: time({ max: 3_600_000 }).optional(),
    })
    .optional(),
  /** Numbers and bounds of certain times, by name; `schedule` says when they hold. */
  profiles: z.record(profileName, profileSchema).optional(),
  /** Windows of time in which a profile, or a freeze, holds; of two at once the first leads. Default: none. */
  schedule: z.array(windowSchema).max(64, 'are more than 64 windows.').optional(),
  /** Self-tuning from history. Default: none by itself. */
  tune: tuneSchema.optional(),
  /** Who answers for it: shown, and named in each alert. */
  owner: z.string().optional(),
  /** Where its alerts go. Default: nowhere but the log. */
  notify: notifySchema.optional(),
});

/** What an author writes. */
export type PolicyInput = z.input<typeof policySchema>;
/** Plain data with all defaults filled in: adopted, hashed, stored, and what every pure function takes. */
export type Policy = z.output<typeof policySchema>;
export type Signal = Policy['signals'][string];
export type Breaker = NonNullable<Policy['breaker']>;
export type Control = Policy['control'];
