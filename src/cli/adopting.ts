/** What all commands that adopt policies share: the plan shown, the question, each limiter's result. Stage: cli. */
import type { CanaryWish } from '../actuate/canary.js';
import { type AdoptResult, type AdoptStep, adoptAll } from '../actuate/verbs/adopt-all.js';
import { EXIT } from '../errors.js';
import type { Session } from '../view/limiters.js';
import type { PlanView } from '../view/plan.js';
import { actorName, type ChangeFlags } from './change.js';
import type { CliIo } from './output.js';
import { planText } from './plan-text.js';
import { clean } from './text.js';

/** Shows, asks, adopts, tells; sets the exit code. */
export async function carryOut(
  io: CliIo,
  session: Session,
  flags: ChangeFlags,
  view: PlanView,
  steps: readonly AdoptStep[],
  canary?: CanaryWish,
): Promise<void> {
  const refused = view.limiters.filter(({ action }) => action === 'refuse');
  if (refused.length > 0) io.exitCode = EXIT.fault;
  const say = flags.dryRun && !io.flags.json ? io.out : io.say;
  if (!io.flags.json || !flags.yes) say(planText(flags.dryRun ? io.c : io.ce, view));
  const unwritten = (status: string) =>
    steps.map(({ loaded }) => ({ limiter: loaded.policy.limiter.name, status }));
  if (steps.length === 0) {
    if (io.flags.json) return io.json({ status: 'nothing', limiters: [], plan: view });
    return io.say('Nothing to adopt.');
  }
  if (flags.dryRun) {
    if (io.flags.json) {
      return io.json({ status: 'dry_run', limiters: unwritten('dry_run'), plan: view });
    }
    return io.say('Dry run: nothing was written.');
  }
  const count = steps.length === 1 ? '1 policy' : `${steps.length} policies`;
  const first = canary === undefined ? '' : ` for ${canary.percent} % of the subjects first`;
  if (!flags.yes && !(await io.confirm(`Adopt ${count}${first}?`))) {
    io.exitCode = EXIT.fault;
    return io.say('Nothing was changed.');
  }
  const results = await adoptAll(session.redis, steps, {
    actor: { kind: 'person', name: actorName() },
    why: flags.reason,
    prefix: session.prefix,
    canary,
    nowMs: Date.now,
  });
  if (results.some(({ status }) => FAILED.includes(status))) io.exitCode = EXIT.fault;
  if (io.flags.json) io.json({ status: 'done', limiters: results, plan: view });
  else for (const result of results) io.out(resultText(io, result));
}

const FAILED: readonly AdoptResult['status'][] = ['moved', 'refused', 'failed'];

function resultText({ c }: CliIo, { limiter, status, revision, sentence }: AdoptResult): string {
  const name = clean(limiter);
  if (FAILED.includes(status)) return `${c.red('not adopted')}  ${name}  ${clean(sentence)}`;
  const at = revision === null ? status : `${status}, revision ${revision}`;
  const done = status === 'canary' ? 'begun' : 'adopted';
  return `${c.green(done)}  ${name}  ${at}  ${clean(sentence)}`;
}
