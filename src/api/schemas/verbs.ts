/** What each verb takes, and what verbs answer, as zod. Stage: api. */
import { z } from 'zod';
import type { VerbAnswer, VerbRequest } from '../types.js';
import { known, limiterName, ms, number, schemaOne, text, values } from './common.js';

export const VERBS = [
  'rollback',
  'pin',
  'release',
  'freeze',
  'thaw',
  'bounds',
  'trip',
  'reset',
  'approve',
  'promote',
] as const satisfies readonly VerbAnswer['verb'][];

export const DAY_MS = 86_400_000;
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
/** What all that changes something takes. */
export const writes = {
  revision: count.optional().describe('what you saw: stands it elsewhere by now, 409'),
  epoch: count.optional(),
  basis: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/)
    .optional()
    .describe('of a dry run: done as long as what was shown still holds'),
  dryRun: z.boolean().optional().describe('only say what would change'),
  reason: z.string().trim().min(1).max(500).optional().describe('for the audit log'),
};
const timed = {
  forMs: z
    .number()
    .int()
    .min(1000)
    .max(365 * DAY_MS)
    .optional()
    .describe('how long it holds'),
  hold: z.boolean().optional().describe('until a person ends it'),
};
const holdBreaker = z.boolean().optional().describe('not even a trip moves it');

/** Of each verb what it takes. */
export const verbBodies = {
  rollback: z.strictObject({
    ...writes,
    ...timed,
    to: z.enum(['last', 'good']).optional().describe('before the last change; last proved good'),
    toRevision: count.optional().describe('its rate, capacity and cap come back'),
    toEpoch: count.optional(),
    toMs: count.optional().describe('what held at that time'),
  }),
  pin: z.strictObject({
    ...writes,
    ...timed,
    rate: z.number().min(0).optional().describe('tokens per second'),
    inFlight: z.number().int().min(1).optional(),
    holdBreaker,
  }),
  release: z.strictObject(writes),
  freeze: z.strictObject({ ...writes, ...timed, holdBreaker }),
  thaw: z.strictObject(writes),
  bounds: z.strictObject({
    ...writes,
    forMs: timed.forMs,
    rateMin: z.number().positive().optional().describe('tokens per second'),
    rateMax: z.number().positive().optional(),
    inFlightMin: z.number().int().min(1).optional(),
    inFlightMax: z.number().int().min(1).optional(),
    clear: z.boolean().optional().describe('end those that hold, instead'),
  }),
  trip: z.strictObject({ ...writes, ...timed }),
  reset: z.strictObject(writes),
  approve: z.strictObject(writes),
  promote: z.strictObject({
    ...writes,
    mode: z.enum(['shadow', 'recommend', 'auto', 'file']).describe('file: what the policy says'),
    anyway: z.boolean().optional().describe('though the evidence is not enough; needs a reason'),
  }),
} as const satisfies Record<VerbAnswer['verb'], z.ZodType<VerbRequest>>;

const ends = z.object({ min: number, max: number });
const boundsTold = z.object({ rate: ends, inFlight: known(ends) });

export const verbAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  verb: z.enum(VERBS),
  status: z.enum(['done', 'dry_run', 'nothing']),
  epoch: known(number),
  revision: known(number),
  before: known(values),
  after: known(values),
  hold: known(z.object({ untilMs: known(ms).describe('null: until a person ends it') })),
  bounds: known(z.object({ before: boundsTold, after: boundsTold })).describe('of `bounds`'),
  basis: known(text),
  sentence: text,
  notes: z.array(text),
  evidence: known(
    z.object({
      sinceMs: ms,
      hours: number,
      fresh: known(number),
      cuts: number,
      trips: number,
      admitted: number,
      denied: number,
      text,
    }),
  ),
}) satisfies z.ZodType<VerbAnswer>;
