/** Episodes, reports and policies, as zod. Stage: api. */
import { z } from 'zod';
import type {
  EpisodesAnswer,
  PoliciesAnswer,
  PolicyHistoryAnswer,
  ReportAnswer,
} from '../types.js';
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

const owned = {
  owner: z.enum(['policy', 'window', 'law', 'tuning', 'person', 'nobody']),
  by: known(text),
  untilMs: known(number),
};

export const plan = z.object({
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
