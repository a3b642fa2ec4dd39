/** What happened, told: episodes of one limiter or of all, and reports of a time. Stage: api. */
import { z } from 'zod';
import { describeFault } from '../../faults.js';
import type { LimiterAddress } from '../../redis/keys.js';
import { redisNowMs } from '../../redis/redis-time.js';
import { type EpisodesPage, readEpisodes } from '../../view/episodes.js';
import { listLimiters, type Session } from '../../view/limiters.js';
import { readReport } from '../../view/report.js';
import { invalidField } from '../problem.js';
import { limiterOf, route } from '../route.js';
import { episodesAnswer, reportAnswer } from '../schemas/episodes.js';
import type { ReportAnswer } from '../types.js';
import { moment, whole } from './fields.js';

const DAY_MS = 86_400_000;

const pageQuery = z.strictObject({
  limit: whole(1, 100).default(20),
  before: z.string().max(200).optional(),
  since: moment.optional(),
  until: moment.optional(),
});

const reportQuery = z.strictObject({
  since: moment.optional(),
  suggest: z.enum(['0', '1']).optional(),
});

const allQuery = z.strictObject({ since: moment.optional() });

async function page(
  session: Session,
  addresses: readonly LimiterAddress[],
  query: z.output<typeof pageQuery>,
): Promise<EpisodesPage & { schema: 1 }> {
  const { limit, before, since: sinceMs, until: untilMs } = query;
  const read = await readEpisodes(session.redis, addresses, { limit, before, sinceMs, untilMs });
  return { schema: 1, ...read };
}

/** Of a day, if nothing else is said. */
async function reports(
  session: Session,
  addresses: readonly LimiterAddress[],
  { since, suggest }: z.output<typeof reportQuery>,
  /** What keeps one from being told keeps no other from it. */
  unread?: (address: LimiterAddress, error: unknown) => void,
): Promise<ReportAnswer> {
  const atMs = await redisNowMs(session.redis);
  const sinceMs = since ?? atMs - DAY_MS;
  if (sinceMs > atMs) throw invalidField('since', 'is still to come', 'query');
  const limiters = [];
  // One after another: each reads a day of a log.
  for (const address of addresses) {
    try {
      limiters.push(
        await readReport(session.redis, address, { sinceMs, suggest: suggest === '1' }),
      );
    } catch (error) {
      if (unread === undefined) throw error;
      unread(address, error);
    }
  }
  return { schema: 1, sinceMs, atMs, limiters, unreadable: [] };
}

export const episodeRoutes = [
  route({
    method: 'get',
    path: '/episodes',
    id: 'listEpisodes',
    summary: 'What happened to all limiters, as episodes, newest first.',
    role: 'reader',
    shared: true,
    query: pageQuery,
    answer: episodesAnswer,
    handle: async ({ session, query }) => page(session, await listLimiters(session), query),
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/episodes',
    id: 'readEpisodes',
    summary: 'What happened to one limiter, as episodes, newest first.',
    role: 'reader',
    shared: true,
    query: pageQuery,
    answer: episodesAnswer,
    faults: [404],
    handle: async (call) => page(call.session, [await limiterOf(call)], call.query),
  }),
  route({
    method: 'get',
    path: '/report',
    id: 'reportAll',
    summary: 'What all limiters did since a time (a day back), as `flyball report --json`.',
    role: 'reader',
    shared: true,
    query: allQuery,
    answer: reportAnswer,
    async handle({ session, query }) {
      const addresses = await listLimiters(session);
      const unreadable: ReportAnswer['unreadable'] = [];
      const told = await reports(session, addresses, query, ({ name }, error) => {
        unreadable.push({ limiter: name, message: describeFault(error).message });
      });
      return { ...told, unreadable };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/report',
    id: 'readReport',
    summary: 'What a limiter did since a time (a day back), as `flyball report --json`.',
    role: 'reader',
    shared: true,
    query: reportQuery,
    answer: reportAnswer,
    faults: [404, 422],
    handle: async (call) => reports(call.session, [await limiterOf(call)], call.query),
  }),
];
