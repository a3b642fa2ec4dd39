/** What changed and why: the log, one revision explained, sampled decisions, the heaviest subjects. Stage: api. */
import { z } from 'zod';
import { readEntries } from '../../actuate/audit.js';
import { explain } from '../../actuate/explain.js';
import { readSamples } from '../../view/decisions.js';
import { entryRecord } from '../../view/entry.js';
import { signalViews } from '../../view/signals.js';
import { readTop, TOP_MINUTES } from '../../view/top.js';
import { ApiError } from '../problem.js';
import { limiterOf, route } from '../route.js';
import { auditAnswer, explainAnswer } from '../schemas/audit.js';
import { decisionsAnswer, topAnswer } from '../schemas/limiters.js';
import { moment, whole } from './fields.js';

const streamId = z.string().regex(/^\d{1,15}-\d{1,19}$/, 'is no id of an entry');

function revisionOf(text: string): number {
  const parsed = whole(0, Number.MAX_SAFE_INTEGER).safeParse(text);
  if (parsed.success) return parsed.data;
  const [{ message }] = parsed.error.issues as [z.core.$ZodIssue];
  const shown = JSON.stringify(text.slice(0, 100));
  throw new ApiError(400, 'FLYBALL_E_API_INVALID', `The revision ${shown} ${message}.`, {
    faults: [{ field: 'revision', message }],
  });
}

export const auditRoutes = [
  route({
    method: 'get',
    path: '/limiters/{limiter}/audit',
    id: 'readAudit',
    summary: 'What changed, newest first, as `flyball audit --json`.',
    role: 'reader',
    query: z.strictObject({
      limit: whole(1, 500).default(50),
      before: streamId.optional(),
      kind: z.enum(['change', 'note']).optional(),
      actor: z.enum(['person', 'autopilot']).optional(),
      since: moment.optional(),
      until: moment.optional(),
      full: z.enum(['0', '1']).optional(),
    }),
    answer: auditAnswer,
    faults: [404],
    async handle(call) {
      const address = await limiterOf(call);
      const { limit, before, kind, actor, since, until, full } = call.query;
      const page = await readEntries(call.session.redis, address, {
        limit,
        ...(before === undefined ? {} : { before }),
        ...(kind === undefined ? {} : { kind }),
        ...(actor === undefined ? {} : { actor }),
        ...(since === undefined ? {} : { sinceMs: since }),
        ...(until === undefined ? {} : { untilMs: until }),
      });
      return {
        schema: 1,
        limiter: address.name,
        entries: page.entries.map((entry) => entryRecord(entry, full === '1')),
        unreadable: page.unreadable,
        next: page.next,
      };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/revisions/{revision}/explain',
    id: 'explainRevision',
    summary:
      'Why a revision is what it is, recomputed from its entry, as `flyball explain --json`.',
    role: 'reader',
    query: z.strictObject({ epoch: whole(0, Number.MAX_SAFE_INTEGER).optional() }),
    answer: explainAnswer,
    faults: [404, 422],
    async handle(call) {
      const address = await limiterOf(call);
      const revision = revisionOf(call.path.revision ?? '');
      const found = await explain(call.session.redis, address, revision, call.query.epoch);
      const { sample } = found.entry.body;
      return {
        schema: 1,
        limiter: address.name,
        verdict: found.verdict,
        sentence: found.sentence,
        differences: found.differences ?? [],
        decision: found.decision ?? null,
        entry: entryRecord(found.entry, true),
        signals: found.policy && sample ? signalViews(found.policy, sample, {}) : [],
      };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/decisions',
    id: 'readDecisions',
    summary:
      'Sampled decisions of the last minute, newest first, as `flyball tail --json`. Asking has services sample for 5 s more: ask again for what goes on.',
    role: 'reader',
    query: z.strictObject({
      ratio: z
        .string()
        .regex(/^\d*\.?\d+$/, 'is no share, above 0, at most 1')
        .transform(Number)
        .refine((n) => n > 0 && n <= 1, 'is no share, above 0, at most 1')
        .default(0.01),
      limit: whole(1, 500).default(50),
    }),
    answer: decisionsAnswer,
    faults: [404],
    async handle(call) {
      const address = await limiterOf(call);
      const { ratio, limit } = call.query;
      const asker = `api-${call.deps.daemon.owner}`;
      const samples = await readSamples(call.session.redis, address, { asker, ratio, limit });
      return { schema: 1, limiter: address.name, samples };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/top',
    id: 'readTop',
    summary: 'Who takes most, or is denied most, as `flyball top --json`.',
    role: 'reader',
    query: z.strictObject({
      by: z.enum(['taken', 'denied']).default('taken'),
      over: z.enum(['1m', '5m', '60m']).default('5m'),
      limit: whole(1, 100).default(20),
    }),
    answer: topAnswer,
    faults: [404],
    async handle(call) {
      const { by, over, limit } = call.query;
      const minutes = TOP_MINUTES[over];
      const view = await readTop(call.session, await limiterOf(call), { by, minutes, limit });
      return { schema: 1, ...view };
    },
  }),
];
