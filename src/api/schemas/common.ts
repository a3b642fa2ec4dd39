/** Parts that several answers share, as zod: what the document says, held to the types by the compiler. Stage: api. */
import { z } from 'zod';
import { MODES } from '../../redis/params.js';
import type { Problem, Role } from '../types.js';

export const known = <T extends z.ZodType>(schema: T) => schema.nullable();
export const number = z.number();
export const text = z.string();
export const ms = z.number().describe('milliseconds since 1970, by the clock of Redis');
export const schemaOne = z.literal(1).describe('additive only: fields may be added, none changes');

export const role = z.enum(['reader', 'operator', 'admin']) satisfies z.ZodType<Role>;
export const mode = z.enum(MODES);
export const state = z.enum(['closed', 'open', 'half-open', 'recovering']);
export const unit = z.enum(['ms', 'ratio', 'per_second', '']);
export const limiterName = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/);

export const problem = z.object({
  type: text,
  title: text,
  status: number,
  detail: text.describe('the fault, the value, what is allowed, what mends it'),
  code: text.describe('one of docs/errors.md'),
  faults: z.array(z.object({ field: text, message: text })).optional(),
  current: z
    .object({ epoch: number, revision: number })
    .optional()
    .describe('with 409: where the limiter stands now'),
}) satisfies z.ZodType<Problem>;

export const actor = z.object({
  kind: z.enum(['autopilot', 'person']),
  name: text.describe('daemon; token; else `user@host (unverified)`'),
  verified: z.literal(true).optional().describe('the name was proved with a token'),
});

export const values = z.object({
  mode,
  state,
  rate: number,
  capacity: number,
  inFlightMax: number.describe('0: no cap'),
  reserve: z.object({ default: number, sheddable: number }).optional(),
});

export const verdict = z.object({
  guard: text,
  effect: z.enum(['passed', 'lowered', 'held', 'refused']),
  sentence: text.optional(),
});

/** What is shown as it stands: its own document says more. */
export const anything = z.unknown();
export const record = z.record(z.string(), z.unknown());
export const counts = z.record(z.string(), z.number());
