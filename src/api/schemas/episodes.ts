/** Episodes and reports, as zod. Stage: api. */
import { z } from 'zod';
import type { EpisodesAnswer, ReportAnswer } from '../types.js';
import { counts, known, limiterName, mode, ms, number, schemaOne, text, values } from './common.js';

const cost = z.object({
  denied: number,
  byReason: counts,
  shed: number,
  objectiveMissedS: number,
  notClosedS: number,
  minutes: number,
});

const cause = z.object({
  kind: z.enum([
    ...(['redis', 'breaker', 'objective', 'person', 'rollback', 'window', 'policy'] as const),
    ...(['tune', 'downstream', 'signals', 'autopilot_lost', 'recovery', 'other'] as const),
  ]),
  reason: text,
  text,
  signal: text.optional(),
  value: text.optional(),
  setpoint: text.optional(),
  ratio: number.optional(),
  revision: number,
  epoch: number,
});

export const episode = z.object({
  limiter: limiterName,
  from: known(text),
  to: known(text),
  id: text,
  lastId: text,
  lane: z.enum(['in_force', 'would_be']),
  moved: z.boolean(),
  fromMs: ms,
  toMs: ms,
  open: z.boolean(),
  cut: z.boolean(),
  epoch: number,
  firstRevision: number,
  lastEpoch: number,
  lastRevision: number,
  changes: number,
  before: known(values),
  farthest: known(z.object({ rate: number, inFlightMax: number })),
  after: known(values),
  cause,
  trips: number,
  openMs: number,
  persons: z.array(
    z.object({
      verb: text,
      by: text,
      why: known(text),
      epoch: number,
      revision: number,
      atMs: number,
    }),
  ),
  cost: known(cost),
  sentence: text,
});

export const episodesAnswer = z.object({
  schema: schemaOne,
  episodes: z.array(episode),
  next: known(text).describe('give it as `before` to read on; null: these were the oldest'),
}) satisfies z.ZodType<EpisodesAnswer>;

type Report = ReportAnswer['limiters'][number];

const report = z.looseObject({
  limiter: limiterName,
  mode,
  sinceMs: ms,
  atMs: ms,
  episodes: z.array(episode),
  more: z.boolean(),
  knownMs: number,
  atFloorMs: number,
  atCeilingMs: number,
  trips: number,
  openMs: number,
});

export const reportAnswer = z.object({
  schema: schemaOne,
  sinceMs: ms,
  atMs: ms,
  // Its parts beyond these are named in docs/cli.md.
  limiters: z.array(report as unknown as z.ZodType<Report>),
  unreadable: z.array(z.object({ limiter: text, message: text })),
}) satisfies z.ZodType<ReportAnswer>;
