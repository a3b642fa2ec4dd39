/** What adopting a policy takes and answers, as zod. Stage: api. */
import { z } from 'zod';
import type { ApplyAnswer, ApplyRequest } from '../types.js';
import { count, DAY_MS, writes } from './audit.js';
import { known, limiterName, number, schemaOne, text } from './common.js';
import { plan } from './episodes.js';

export const applyBody = z.strictObject({
  ...writes,
  revision: count.optional().describe('what you saw, with `desired`: stands it elsewhere, 409'),
  desired: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('hash of the file that you saw'),
  canaryPercent: z
    .number()
    .positive()
    .max(50)
    .optional()
    .describe('of the subjects, for which it runs first'),
  forMs: z.number().int().min(1000).max(DAY_MS).optional().describe('until a canary is judged'),
}) satisfies z.ZodType<ApplyRequest>;

export const applyAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  status: z.enum(['done', 'dry_run', 'nothing']),
  result: known(
    z.enum(['created', 'changed', 'canary', 'unchanged', 'moved', 'refused', 'failed']),
  ),
  epoch: known(number),
  revision: known(number),
  sentence: text,
  plan,
  basis: known(text).describe('of a dry run: give it back to have this done'),
}) satisfies z.ZodType<ApplyAnswer>;
