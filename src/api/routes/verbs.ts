/** What changes a limiter: a person's verbs, by the same functions as the CLI's, on what the caller saw. Stage: api. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../actuate/entry.js';
import { evidenceText, readEvidence } from '../../actuate/evidence.js';
import { applyVerb, readFacts, type VerbOutcome } from '../../actuate/verbs/apply.js';
import { approve as approveNote, readRecommendation } from '../../actuate/verbs/approve.js';
import { clearBounds, setBounds } from '../../actuate/verbs/bounds.js';
import type { WantedBounds } from '../../actuate/verbs/bounds-wanted.js';
import { reset, trip } from '../../actuate/verbs/breaker.js';
import { freeze, thaw } from '../../actuate/verbs/freeze.js';
import { pin, release } from '../../actuate/verbs/pin.js';
import {
  DEFAULT_HOLD_MS,
  type Facts,
  type HoldFor,
  type Planner,
  type VerbPlan,
} from '../../actuate/verbs/plan.js';
import { promote } from '../../actuate/verbs/promote.js';
import { rollback } from '../../actuate/verbs/rollback.js';
import type { LimiterAddress } from '../../redis/keys.js';
import type { Session } from '../../view/limiters.js';
import { type RollbackWish, rollbackTarget } from '../../view/rollback-target.js';
import { ApiError, invalidField } from '../problem.js';
import { limiterOf, route } from '../route.js';
import { VERBS, verbAnswer, verbBodies } from '../schemas/verbs.js';
import type { Verb, VerbAnswer, VerbRequest } from '../types.js';

const WHAT: Record<Verb, string> = {
  rollback: 'Put the rate, capacity and cap of an old revision back, and hold them.',
  pin: 'Set rate, cap or both, and hold them against the autopilot.',
  release: 'End a pin or the hold of a rollback.',
  freeze: 'Law, tuning and schedules change nothing for a while.',
  thaw: 'End a freeze.',
  bounds: 'Widen or narrow within what the limits may move, for a while; or end that.',
  trip: 'Open the breaker: rate 0 at once.',
  reset: 'End an open breaker, without a burst.',
  approve: 'Put in force what is recommended, in mode recommend.',
  promote: 'Trust a limiter with more, on the evidence; or with less.',
};

export const verbRoutes = VERBS.map((verb) =>
  route({
    method: 'post',
    path: `/limiters/{limiter}/${verb}`,
    id: verb,
    summary: WHAT[verb],
    role: verb === 'promote' ? 'admin' : 'operator',
    body: verbBodies[verb],
    answer: verbAnswer,
    faults: [404, 409, 422],
    async handle(call) {
      const request: VerbRequest = call.body;
      checkSeen(request);
      const address = await limiterOf(call);
      const { planner, evidence = null } = await plannerOf(verb, call.session, address, request);
      const outcome = await applyVerb(call.session.redis, address, planner, {
        actor: call.caller.name ?? '?',
        verified: true,
        reason: request.reason,
        dryRun: request.dryRun === true,
        nowMs: () => call.deps.clock.nowMs(),
        // A change by others between two readings is one in between too.
        check: (plan, facts) => checkStands(request, plan, facts),
        approve: async () => true,
      });
      if (outcome.status === 'done') {
        const { name } = call.caller;
        const { limiter } = outcome.facts;
        const revision = outcome.revision;
        call.deps.log.info({ event: 'verb', verb, limiter, name, revision }, outcome.plan.sentence);
      }
      return { ...told(verb, address.name, outcome), evidence };
    },
  }),
);

function checkSeen({ dryRun, revision, basis }: VerbRequest): void {
  if (dryRun === true || revision !== undefined || basis !== undefined) return;
  throw invalidField('revision', 'say the revision that you saw, or the basis of a dry run');
}

async function plannerOf(
  verb: Verb,
  session: Session,
  address: LimiterAddress,
  wish: VerbRequest,
): Promise<{ planner: Planner; evidence?: VerbAnswer['evidence'] }> {
  const hold: HoldFor | undefined = wish.hold === true ? 'until-ended' : wish.forMs;
  if (wish.hold === true && wish.forMs !== undefined) {
    throw invalidField('forMs', 'say either forMs or hold');
  }
  const { holdBreaker } = wish;
  const breaker = holdBreaker === undefined ? {} : { holdBreaker };
  switch (verb) {
    case 'rollback': {
      const target = await rollbackTarget(session.redis, address, targetOf(wish));
      return { planner: rollback(target, hold ?? DEFAULT_HOLD_MS) };
    }
    case 'pin': {
      const { rate, inFlight } = wish;
      const wanted = {
        ...(rate === undefined ? {} : { rate }),
        ...(inFlight === undefined ? {} : { inFlight }),
        ...breaker,
      };
      return { planner: pin(wanted, hold ?? DEFAULT_HOLD_MS) };
    }
    case 'freeze':
      return { planner: freeze(hold ?? DEFAULT_HOLD_MS, breaker) };
    case 'trip':
      return { planner: trip(hold) };
    case 'bounds':
      return { planner: boundsPlanner(wish) };
    case 'release':
      return { planner: release() };
    case 'thaw':
      return { planner: thaw() };
    case 'reset':
      return { planner: reset() };
    case 'approve':
      return { planner: approveNote(await readRecommendation(session.redis, address)) };
    case 'promote':
      return promotion(session, address, wish);
  }
}

/** Either bounds, or the end of those that hold. */
function boundsPlanner(wish: VerbRequest): Planner {
  const { rateMin, rateMax, inFlightMin, inFlightMax, forMs = DEFAULT_HOLD_MS } = wish;
  const wanted: WantedBounds = {
    ...(rateMin === undefined ? {} : { rateMin }),
    ...(rateMax === undefined ? {} : { rateMax }),
    ...(inFlightMin === undefined ? {} : { inFlightMin }),
    ...(inFlightMax === undefined ? {} : { inFlightMax }),
  };
  if (!wish.clear) return setBounds(wanted, forMs);
  if (Object.keys(wanted).length === 0) return clearBounds();
  throw invalidField('clear', 'clear ends the bounds that hold: give it without others');
}

async function promotion(session: Session, address: LimiterAddress, wish: VerbRequest) {
  const { mode: to = 'file', anyway = false, reason } = wish;
  if (anyway && reason === undefined) throw invalidField('reason', 'anyway needs a reason');
  const { params, nowMs } = await readFacts(session.redis, address, { actor: '' });
  const evidence = await readEvidence(session.redis, address, params, nowMs);
  const planner = promote({ to, evidence, anyway });
  return { planner, evidence: { ...evidence, text: evidenceText(evidence) } };
}

function targetOf(wish: VerbRequest): RollbackWish {
  const { to, toRevision, toEpoch, toMs } = wish;
  if ([to, toRevision, toMs].filter((one) => one !== undefined).length !== 1) {
    throw invalidField('to', 'say one of to (last, good), toRevision and toMs');
  }
  if (toRevision !== undefined) return { to: 'revision', revision: toRevision, epoch: toEpoch };
  if (toMs !== undefined) return { to: 'before', at: { atMs: toMs } };
  return { to: to! };
}

/** Does it still stand where the caller saw it, or is what they were shown still what would be done? */
function checkStands(request: VerbRequest, plan: VerbPlan, facts: Facts): void {
  const { epoch, revision } = facts.params;
  const same = request.revision === revision && (request.epoch ?? epoch) === epoch;
  if (same || request.basis === basisOf(plan, facts)) return;
  throw new ApiError(
    409,
    'FLYBALL_E_API_CHANGED',
    `${facts.limiter} is at revision ${revision} by now (epoch ${epoch}). Nothing was written; look again and say the new revision, or give the basis of a dry run.`,
    { current: { epoch, revision } },
  );
}

/** What a person's yes stands on: as the CLI's question does, not on what the autopilot moves besides. */
function basisOf(plan: VerbPlan, { params }: Facts): string {
  const { pinnedUntil, frozenUntil, heldBy, epoch } = params;
  const agreed = plan.agreed.map((key) => [key, plan.after[key]]);
  const stands = [plan.reason, agreed, plan.basis ?? '', pinnedUntil, frozenUntil, heldBy, epoch];
  return createHash('sha256').update(canonicalJson(stands)).digest('base64url');
}

function told(verb: Verb, limiter: string, outcome: VerbOutcome): Omit<VerbAnswer, 'evidence'> {
  if (outcome.status === 'nothing') {
    return {
      ...{ schema: 1, limiter, verb, status: 'nothing', epoch: null, revision: null },
      ...{ before: null, after: null, hold: null, bounds: null, basis: null },
      ...{ sentence: outcome.sentence, notes: [] },
    };
  }
  const { plan, facts } = outcome;
  const done = outcome.status === 'done';
  const { epoch, revision } = done ? outcome : facts.params;
  const { until } = plan.detail;
  return {
    ...{ schema: 1, limiter, verb, status: done ? 'done' : 'dry_run', epoch, revision },
    ...{ before: plan.before, after: plan.after },
    hold: typeof until === 'number' ? { untilMs: until === -1 ? null : until } : null,
    bounds: (plan.detail.bounds as VerbAnswer['bounds'] | undefined) ?? null,
    basis: done ? null : basisOf(plan, facts),
    ...{ sentence: plan.sentence, notes: plan.notes },
  };
}
