/** Limiters: all as rows, one with everything, its signals, its charts. Stage: api. */
import { z } from 'zod';
import { readPolicy } from '../../actuate/verbs/apply.js';
import { describeFault } from '../../faults.js';
import { redisNowMs } from '../../redis/redis-time.js';
import { listLimiters } from '../../view/limiters.js';
import { readSeries } from '../../view/series-read.js';
import { signalViews } from '../../view/signals.js';
import { seenByDaemon } from '../../view/signals-read.js';
import { statusView } from '../../view/status.js';
import { readStatusFacts, type StatusFacts } from '../../view/status-facts.js';
import { limiterOf, route } from '../route.js';
import { limiterAnswer, limitersAnswer, seriesAnswer, signalsAnswer } from '../schemas/limiters.js';
import type { LastDecision } from '../types.js';

export const limiterRoutes = [
  route({
    method: 'get',
    path: '/limiters',
    id: 'listLimiters',
    summary: 'All limiters, as `flyball status --json`.',
    role: 'reader',
    shared: true,
    answer: limitersAnswer,
    async handle({ session }) {
      const addresses = await listLimiters(session);
      const read = await Promise.allSettled(addresses.map((one) => readStatusFacts(session, one)));
      const facts = read.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const fault = read.find((one) => one.status === 'rejected');
      // None at all: it is not the limiters.
      if (facts.length === 0 && fault !== undefined) throw fault.reason;
      return {
        schema: 1,
        redis: session.url,
        atMs: Math.floor(facts[0]?.nowMs ?? (await redisNowMs(session.redis))),
        limiters: facts.map(statusView),
        unreadable: read.flatMap((one, i) =>
          one.status === 'fulfilled'
            ? []
            : [{ limiter: addresses[i]!.name, message: describeFault(one.reason).message }],
        ),
      };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}',
    id: 'readLimiter',
    summary: 'One limiter: its row, params, last decision and adopted policy.',
    role: 'reader',
    answer: limiterAnswer,
    faults: [404],
    async handle(call) {
      const { session } = call;
      const facts = await readStatusFacts(session, await limiterOf(call));
      return {
        schema: 1,
        redis: session.url,
        atMs: Math.floor(facts.nowMs),
        limiter: statusView(facts),
        params: facts.params,
        decision: lastDecision(facts),
        policy: facts.policy,
      };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/signals',
    id: 'readSignals',
    summary: 'Each signal as its daemon last saw it: reading, verdict, what follows.',
    role: 'reader',
    answer: signalsAnswer,
    faults: [404],
    async handle(call) {
      const address = await limiterOf(call);
      const policy = await readPolicy(call.session.redis, address);
      const seen = policy && (await seenByDaemon(call.session, address, policy));
      return {
        schema: 1,
        limiter: address.name,
        owner: seen?.owner ?? null,
        ageMs: seen?.ageMs ?? null,
        held: seen?.held ?? null,
        signals: seen ? signalViews(seen.policy, seen.sample, seen.details) : [],
      };
    },
  }),
  route({
    method: 'get',
    path: '/limiters/{limiter}/series',
    id: 'readSeries',
    summary: 'Points for charts, oldest first, and the changes among them.',
    role: 'reader',
    query: z.strictObject({ window: z.enum(['15m', '1h', '24h']).default('15m') }),
    answer: seriesAnswer,
    faults: [404],
    async handle(call) {
      const address = await limiterOf(call);
      const { window } = call.query;
      const series = await readSeries(call.session, address, window, call.deps.watch.ring);
      return { schema: 1, limiter: address.name, window, ...series };
    },
  }),
];

function lastDecision({ status }: StatusFacts): LastDecision | null {
  const { decision, atMs, tickMs, law } = status ?? {};
  if (decision === undefined || atMs === undefined || tickMs === undefined) return null;
  return { atMs, tickMs, law: law ?? '', ...decision };
}
