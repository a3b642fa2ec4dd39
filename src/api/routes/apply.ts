/** Adopts a policy file of this daemon for a person, as `flyball apply` does: what was shown, or nothing. Stage: api. */
import { createHash } from 'node:crypto';
import type { LoadedPolicy } from '../../actuate/adopt.js';
import { type CanaryWish, JUDGED_AFTER_MS } from '../../actuate/canary.js';
import { canonicalJson } from '../../actuate/entry.js';
import { adoptOne } from '../../actuate/verbs/adopt-all.js';
import { redactUrl } from '../../log.js';
import { type LimiterPlan, planView, stepsOf } from '../../view/plan.js';
import { ApiError, invalidField } from '../problem.js';
import { type ApiDeps, type Call, route } from '../route.js';
import { applyAnswer, applyBody } from '../schemas/policies.js';
import type { ApplyAnswer, ApplyRequest } from '../types.js';

export const applyRoute = route({
  method: 'post',
  path: '/policies/{limiter}/apply',
  id: 'applyPolicy',
  summary:
    "Adopt this daemon's file of a limiter, as `flyball apply`: with `reload: apply` nothing else does. Give the `basis` of a dry run, or `revision` and `desired` as `GET /policies` tells them.",
  role: 'admin',
  body: applyBody,
  answer: applyAnswer,
  faults: [404, 409, 422],
  handle: apply,
});

async function apply(call: Call<unknown, ApplyRequest>): Promise<ApplyAnswer> {
  const { session, deps, caller, body: request } = call;
  const { revision, desired, basis, dryRun = false, reason } = request;
  if (!dryRun && basis === undefined && (revision === undefined || desired === undefined)) {
    throw invalidField('basis', 'say the basis of a dry run, or revision and desired');
  }
  const canary = canaryOf(request);
  const loaded = fileOf(deps, call.path.limiter ?? '');
  const actor = caller.name ?? '?';
  const view = await planView(session, [loaded], actor, false);
  const [plan] = view.limiters as [LimiterPlan];
  const shown = { plan, basis: basisOf(plan, canary) };
  const { limiter, sentence } = plan;
  if (plan.action === 'refuse') throw refused(sentence ?? 'it may not be adopted');
  const none = { result: null, epoch: plan.epoch, revision: plan.revision };
  const [step] = stepsOf([plan], [loaded]);
  if (step === undefined) {
    const why = 'it is adopted already, and in force as it says';
    return { schema: 1, limiter, status: 'nothing', ...none, sentence: why, plan, basis: null };
  }
  if (dryRun) {
    return { schema: 1, limiter, status: 'dry_run', ...none, sentence: sentence ?? '', ...shown };
  }
  const seen = sawThis(request, plan);
  if (!seen && basis !== shown.basis) throw changed(plan, 'it is not what you saw');
  const result = await adoptOne(
    session.redis,
    { ...step, exact: seen },
    {
      actor: { kind: 'person', name: actor, verified: true },
      ...{ why: reason, prefix: session.prefix, canary, nowMs: () => deps.clock.nowMs() },
    },
  );
  if (result.status === 'moved') throw changed(plan, result.sentence);
  if (result.status === 'refused') throw refused(result.sentence);
  const status = result.status === 'unchanged' ? 'nothing' : 'done';
  if (status === 'done') {
    const told = { event: 'apply', limiter, name: actor, revision: result.revision };
    deps.log.info(told, result.sentence);
  }
  return { schema: 1, ...result, status, result: result.status, plan, basis: null };
}

/** The file as this daemon last read it; one that does not load is not adopted in an older version. */
function fileOf(deps: ApiDeps, limiter: string): LoadedPolicy {
  const { loaded, faults } = deps.policies();
  const found = loaded.find(({ policy }) => policy.limiter.name === limiter);
  if (found === undefined) {
    const broken = [...new Set(faults.map(({ file }) => file))].slice(0, 5);
    const also = broken.length === 0 ? '' : ` Some do not load: ${broken.join(', ')}.`;
    throw new ApiError(
      404,
      'FLYBALL_E_API_NO_FILE',
      `No policy file of ${deps.daemon.name} is of ${JSON.stringify(limiter.slice(0, 100))}. GET /api/v1/policies lists those it has; another daemon may have others.${also}`,
    );
  }
  const own = faults.filter(({ file }) => file === found.file);
  if (own.length === 0) return found;
  const told = own.map(({ field, message }) => ({ field, message: redactUrl(message) }));
  throw new ApiError(
    422,
    'FLYBALL_E_API_NO_FILE',
    `${found.file} does not load as it stands: ${told.map(({ field, message }) => [field, message].filter(Boolean).join(': ')).join('; ')}. Nothing was adopted.`,
    { faults: told },
  );
}

function canaryOf({ canaryPercent, forMs }: ApplyRequest): CanaryWish | undefined {
  if (canaryPercent !== undefined) {
    return { percent: canaryPercent, forMs: forMs ?? JUDGED_AFTER_MS };
  }
  if (forMs === undefined) return undefined;
  throw invalidField('forMs', 'it says when a canary is judged: give canaryPercent too');
}

/** The file and what the limiter stands on, as a saved plan holds them: not what the law moves besides. */
function basisOf({ limiter, action, desired, stood }: LimiterPlan, canary?: CanaryWish): string {
  const stands = stood === null ? null : { ...stood, revision: 0 };
  const shown = [limiter, action, desired, stands, canary ?? null];
  return createHash('sha256').update(canonicalJson(shown)).digest('base64url');
}

function sawThis({ revision, epoch, desired }: ApplyRequest, plan: LimiterPlan): boolean {
  return (
    revision !== undefined &&
    revision === plan.revision &&
    desired === plan.desired &&
    (epoch ?? plan.epoch) === plan.epoch
  );
}

function changed({ limiter, epoch, revision, desired }: LimiterPlan, why: string): ApiError {
  const at = epoch === null || revision === null ? undefined : { epoch, revision };
  return new ApiError(
    409,
    'FLYBALL_E_API_CHANGED',
    `${limiter} or its file has changed: ${why}. The file says ${desired?.slice(0, 12)} by now. Nothing was adopted; look again and give the basis of a new dry run.`,
    at === undefined ? {} : { current: at },
  );
}

function refused(why: string): ApiError {
  return new ApiError(422, 'FLYBALL_E_ACTUATE_REFUSED', `Nothing was adopted: ${why}.`);
}
