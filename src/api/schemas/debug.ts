/** Why a subject is answered as it is, as zod. Stage: api. */
import { z } from 'zod';
import type { DebugAnswer } from '../types.js';
import { known, limiterName, ms, number, schemaOne, text } from './common.js';
import { decisionSample } from './limiters.js';

const priority = z.enum(['critical', 'default', 'sheddable']);

const step = z.object({
  step: z.enum([
    ...(['params', 'route', 'subject', 'rollout', 'override', 'tier', 'breaker'] as const),
    ...(['cost', 'total', 'own_bucket', 'fair_share', 'in_flight', 'service'] as const),
  ]),
  verdict: z.enum(['ok', 'denies', 'admits', 'look']),
  sentence: text,
});

const answer = z.object({
  allowed: z.boolean(),
  reason: z.enum([
    ...(['ok', 'off', 'rate', 'subject', 'breaker_open', 'probe_budget', 'reserve'] as const),
    ...(['cost_exceeds_capacity', 'bad_cost', 'blocked', 'exempt', 'fair_share'] as const),
  ]),
  remaining: number,
  retryAfterMs: known(number),
  delayMs: number.optional(),
  shared: z.literal(true).optional(),
  enforced: z.boolean(),
  passes: z.boolean().describe('what the service lets through'),
  sentence: text,
});

export const debugAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  subject: text,
  cost: number,
  priority,
  atMs: ms,
  epoch: known(number),
  revision: known(number),
  key: text,
  keptMs: known(number),
  answer: known(answer).describe('null: no params, each service decides by its code'),
  steps: z.array(step),
  recent: known(z.object({ tokens: known(number), denied: known(number) })),
  samples: z.array(decisionSample),
}) satisfies z.ZodType<DebugAnswer>;
