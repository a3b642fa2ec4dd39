/** Audit entries, and what explains them, as zod. Stage: api. */
import { z } from 'zod';
import type { AuditAnswer, AuditRecord, ExplainAnswer } from '../types.js';
import {
  actor,
  counts,
  known,
  limiterName,
  number,
  record,
  schemaOne,
  text,
  values,
  verdict,
} from './common.js';
import { decisionFields, signal } from './limiters.js';

export const auditRecord = z.object({
  id: text,
  v: z.literal(1),
  kind: z.enum(['change', 'note']),
  limiter: text,
  epoch: number,
  revision: number,
  atMs: number.describe("by the writer's clock"),
  at: known(text),
  actor,
  reason: text,
  sentence: text,
  before: known(values),
  after: known(values),
  policyHash: text,
  law: text.optional(),
  verdicts: z.array(verdict).optional(),
  terms: counts.optional(),
  detail: record.optional(),
  sample: z.custom<AuditRecord['sample']>().optional().describe('with `full`: what was seen'),
  stateBefore: z.custom<AuditRecord['stateBefore']>().optional().describe('with `full`'),
  hash: text,
  prev: text,
}) satisfies z.ZodType<AuditRecord>;

export const auditAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  entries: z.array(auditRecord),
  unreadable: z.array(
    z.object({ id: text, epoch: known(number), revision: known(number), why: text }),
  ),
  next: known(text).describe('give it as `before` to read on; null: these were the oldest'),
}) satisfies z.ZodType<AuditAnswer>;

const decision = z.object({
  ...decisionFields,
  openForMs: number.optional(),
  cause: z.enum(['law', 'breaker', 'settle']),
  why: text,
  over: z.object({ signal: text, value: text, setpoint: text, ratio: number }).optional(),
  heldBack: z
    .object({
      guards: z.array(text),
      rate: number.optional(),
      inFlightMax: number.optional(),
    })
    .optional(),
  reserve: z.object({ default: number, sheddable: number }).optional(),
});

export const explainAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  verdict: z.enum(['agrees', 'differs', 'other_version', 'not_a_decision', 'incomplete']),
  sentence: text,
  differences: z.array(text),
  decision: known(decision),
  entry: auditRecord,
  signals: z.array(signal),
}) satisfies z.ZodType<ExplainAnswer>;
