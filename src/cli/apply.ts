/** `flyball apply`: adopts policies, or exactly what a saved plan says, each limiter in one write. Stage: cli. */
import type { Command } from 'commander';
import { readParamsAnyhow } from '../actuate/actuator.js';
import { policyAddress } from '../actuate/adopt.js';
import { JUDGED_AFTER_MS } from '../actuate/canary.js';
import type { AdoptStep } from '../actuate/verbs/adopt-all.js';
import { movesSince } from '../actuate/verbs/stood.js';
import { FlyballError } from '../errors.js';
import { planView, stepsOf } from '../view/plan.js';
import { carryOut } from './adopting.js';
import { actorName, type ChangeFlags, changing, checkAnswer, checkReason } from './change.js';
import { parsePercent, parseSpan } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { loadAll } from './plan.js';
import { readPlan } from './plan-file.js';
import { type Session, withRedis } from './session.js';
import { clean } from './text.js';

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    changing(
      'apply',
      'Adopt policies, or what a saved plan says; each limiter in one write.',
      `  flyball apply                             shows the plan of ./policies, asks
  flyball apply plan.json --yes             exactly what was planned, or nothing
  flyball apply policies/checkout.ts --reason "sale on Friday" --yes
  flyball apply policies/checkout.ts --canary 5% --for 10m --yes
  flyball apply --dry-run`,
    )
      .argument('[plan-or-policies...]', 'a saved plan, or files or folders of policies')
      .option(
        '--canary <percent>',
        'run for a percent of the subjects first, and judge it',
        parsePercent,
      )
      .option('--for <span>', 'how long until it is judged (default: 10m)', parseSpan)
      .action((given: string[], flags: ApplyFlags) => apply(io, given, flags)),
  );
}

interface ApplyFlags extends ChangeFlags {
  canary?: number;
}

const LONGEST_MS = 86_400_000;

async function apply(io: CliIo, given: readonly string[], flags: ApplyFlags): Promise<void> {
  checkReason(flags);
  const { canary: percent, for: forMs = JUDGED_AFTER_MS } = flags;
  if (percent === undefined && flags.for !== undefined) {
    throw new UsageError('--for says when a canary is judged.', 'Give --canary 5% too.');
  }
  if (forMs > LONGEST_MS) throw new UsageError('--for is longer than 24h.', 'Write 10m or 2h.');
  const saved = savedPlan(given);
  const loaded = saved?.map((step) => step.loaded) ?? (await loadAll(io, given));
  checkAnswer(io, flags);
  await withRedis(io, async (session) => {
    if (saved !== null) await refuseMoved(session, given[0]!, saved);
    const view = await planView(session, loaded, actorName(), saved === null);
    const steps = saved ?? stepsOf(view.limiters, loaded);
    const canary = percent === undefined ? undefined : { percent, forMs };
    await carryOut(io, session, flags, view, steps, canary);
  });
}

function savedPlan(given: readonly string[]): AdoptStep[] | null {
  const [first, ...more] = given;
  const saved = first === undefined ? null : readPlan(first);
  if (saved !== null && more.length > 0) {
    throw new UsageError('a saved plan is applied alone.', `Leave out ${clean(more.join(', '))}.`);
  }
  return saved;
}

/** Before anything is written: of a plan all is done, or nothing. */
async function refuseMoved({ redis, prefix }: Session, path: string, steps: readonly AdoptStep[]) {
  const moved: string[] = [];
  for (const { loaded, stood } of steps) {
    const address = policyAddress(loaded.policy, prefix);
    const { params, nowUs } = await readParamsAnyhow(redis, address);
    if (params?.policyHash === loaded.hash && stood?.policy !== loaded.hash) continue;
    const told = movesSince(stood, params, nowUs / 1000);
    if (told.length > 0) moved.push(`${address.name} (${told.join('; ')})`);
  }
  if (moved.length === 0) return;
  throw new FlyballError(
    'FLYBALL_E_PLAN_MOVED',
    `${path} does not fit any more: ${moved.join(', ')}. Nothing was adopted. Plan anew: flyball plan --out ${path}`,
  );
}
