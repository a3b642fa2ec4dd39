/** Policies: what files would change, the versions that are kept, and what adopting one takes and answers, as zod. Stage: api. */
import { z } from 'zod';
import type { ApplyAnswer, ApplyRequest, PoliciesAnswer, PolicyHistoryAnswer } from '../types.js';
import { known, limiterName, mode, ms, number, schemaOne, text } from './common.js';
import { count, DAY_MS, writes } from './verbs.js';

const owned = {
  owner: z.enum(['policy', 'window', 'law', 'tuning', 'person', 'nobody']),
  by: known(text),
  untilMs: known(number),
};

const plan = z.object({
  limiter: text,
  group: known(text),
  file: known(text),
  action: z.enum(['create', 'change', 'mend', 'unchanged', 'orphan', 'refuse']),
  epoch: known(number),
  revision: known(number),
  adopted: known(text),
  desired: known(text),
  mode: known(z.object({ inForce: known(mode), planned: known(mode), ...owned })),
  numbers: z.array(
    z.object({
      name: z.enum(['rate', 'capacity', 'inFlightMax']),
      inForce: known(number),
      planned: known(number),
      ...owned,
    }),
  ),
  rollout: known(z.object({ inForce: text, planned: text, ...owned })),
  fields: z.array(
    z.object({
      field: text,
      kind: z.enum(['add', 'change', 'remove']),
      before: z.unknown(),
      after: z.unknown(),
    }),
  ),
  drift: z.array(
    z.object({
      field: text,
      inForce: z.union([text, number]),
      adopted: z.union([text, number]),
    }),
  ),
  warnings: z.array(text),
  sentence: known(text),
  stood: z.custom<PoliciesAnswer['limiters'][number]['stood']>().describe('what it stands on'),
});

export const policiesAnswer = z.object({
  schema: schemaOne,
  redis: text,
  atMs: ms,
  limiters: z.array(plan),
  counts: z.object({
    create: number,
    change: number,
    mend: number,
    unchanged: number,
    orphan: number,
    refuse: number,
  }),
  warnings: z.array(text),
  faults: z.array(z.object({ file: text, field: text, message: text, line: number.optional() })),
}) satisfies z.ZodType<PoliciesAnswer>;

export const policyHistoryAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  adopted: known(text),
  versions: z.array(
    z.object({
      hash: text,
      atMs: ms,
      by: text,
      kind: z.enum(['autopilot', 'person']),
      file: text,
      epoch: number,
      revision: number,
      adopted: z.boolean(),
      replaced: z.boolean(),
      text: known(text),
    }),
  ),
}) satisfies z.ZodType<PolicyHistoryAnswer>;

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
