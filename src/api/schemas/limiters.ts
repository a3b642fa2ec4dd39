/** Answers about limiters, as zod. Stage: api. */
import { z } from 'zod';
import type {
  DecisionsAnswer,
  LimiterAnswer,
  LimitersAnswer,
  SeriesAnswer,
  SignalsAnswer,
  TopAnswer,
} from '../types.js';
import {
  actor,
  anything,
  counts,
  known,
  limiterName,
  mode,
  ms,
  number,
  schemaOne,
  state,
  text,
  unit,
  verdict,
} from './common.js';
import { bounds, status } from './status.js';

export const limitersAnswer = z.object({
  schema: schemaOne,
  redis: text,
  atMs: ms,
  limiters: z.array(status),
  unreadable: z.array(z.object({ limiter: text, message: text })),
}) satisfies z.ZodType<LimitersAnswer>;

export const decisionFields = {
  change: z.boolean(),
  reason: text,
  sentence: text,
  state,
  rate: number,
  capacity: number,
  inFlightMax: number,
  verdicts: z.array(verdict),
  terms: counts,
};

export const limiterAnswer = z.object({
  schema: schemaOne,
  redis: text,
  atMs: ms,
  limiter: status,
  // The compiler knows both; a document would only copy docs/contract.md and the guide.
  params: z.custom<LimiterAnswer['params']>().describe('fields of docs/contract.md#params; null'),
  decision: known(z.object({ ...decisionFields, atMs: ms, tickMs: number, law: text })),
  policy: z.custom<LimiterAnswer['policy']>().describe('as adopted; null: none, or unreadable'),
}) satisfies z.ZodType<LimiterAnswer>;

export const signal = z.object({
  signal: text,
  source: text,
  stat: text,
  unit,
  value: known(number),
  ageMs: number,
  count: number,
  setpoint: known(number),
  side: known(z.enum(['below', 'above'])),
  tripsAbove: known(number),
  verdict: z.enum(['fresh', 'waiting', 'thin', 'stale', 'missing']),
  follows: text,
  reason: known(text),
  detail: known(text),
});

export const signalsAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  owner: known(text),
  ageMs: known(number),
  held: known(text),
  signals: z.array(signal),
}) satisfies z.ZodType<SignalsAnswer>;

export const point = z.object({
  timeMs: ms,
  state: known(state),
  rate: known(number),
  capacity: known(number),
  inFlightMax: known(number),
  inFlight: known(number),
  offered: known(number),
  admitted: known(number),
  denied: known(number),
  signals: z.record(z.string(), known(number)),
});

const column = z.array(known(number));

export const seriesAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  window: z.enum(['15m', '1h', '24h']),
  fromMs: ms,
  atMs: ms,
  timeMs: z.array(ms),
  state: z.array(known(state)),
  rate: column,
  capacity: column,
  inFlightMax: column,
  inFlight: column,
  offered: column,
  admitted: column,
  denied: column,
  signals: z.array(
    signal
      .pick({ signal: true, unit: true, setpoint: true, side: true, tripsAbove: true })
      .extend({ values: column }),
  ),
  bounds: known(bounds),
  changes: z.array(
    z.object({
      id: text,
      atMs: ms,
      epoch: number,
      revision: number,
      reason: text,
      actor,
      sentence: text,
    }),
  ),
}) satisfies z.ZodType<SeriesAnswer>;

export const topAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  by: z.enum(['taken', 'denied']),
  sinceMs: ms,
  atMs: ms,
  total: number,
  error: number.describe('each count may be so much too low'),
  seen: number,
  read: number,
  subjects: z.array(
    z.object({
      subject: text,
      hashed: z.boolean(),
      tokens: known(number),
      denied: known(number),
    }),
  ),
}) satisfies z.ZodType<TopAnswer>;

export const decisionSample = z.object({
  atMs: ms,
  process: text,
  subject: known(text),
  hashed: z.boolean(),
  cost: number,
  priority: text,
  allowed: z.boolean(),
  wouldAllow: z.boolean(),
  reason: text,
  limit: known(text),
  remaining: number,
  retryAfterMs: known(number),
  delayMs: number,
  source: text,
  epoch: number,
  revision: number,
  state,
  mode,
  tookMs: number,
});

export const decisionsAnswer = z.object({
  schema: schemaOne,
  limiter: limiterName,
  samples: z.array(decisionSample),
}) satisfies z.ZodType<DecisionsAnswer>;

export { anything };
