/** `flyball plan`: what adopting the policies would change, before anything is changed. Stage: cli. */
import { Command } from 'commander';
import { EXIT, PolicyError } from '../errors.js';
import { type LoadedPolicy, loadPolicies } from '../policy/load.js';
import { type PlanView, planView } from '../view/plan.js';
import { actorName } from './change.js';
import { policyPaths } from './doctor-policies.js';
import { policyDeadlineMs } from './options.js';
import type { CliIo } from './output.js';
import { savePlan } from './plan-file.js';
import { planText } from './plan-text.js';
import { withRedis } from './session.js';
import { clean } from './text.js';

/** `--detailed-exitcode`: something would change. */
const CHANGES = 2;

interface PlanFlags {
  out?: string;
  detailedExitcode?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('plan')
      .description('Show what adopting policies would change: now, then, and who owns each number.')
      .argument('[policies...]', 'files or folders (default: FLYBALL_POLICIES, else ./policies)')
      .option('-o, --out <file>', 'save the plan, for flyball apply <file>')
      .option('--detailed-exitcode', 'exit 0: nothing would change, 2: something would, 1: a fault')
      .addHelpText(
        'before',
        `Examples:
  flyball plan                                  against ./policies
  flyball plan policies/checkout.ts
  flyball plan --out plan.json && flyball apply plan.json
  flyball plan --detailed-exitcode              for CI
`,
      )
      .action(async (given: string[], flags: PlanFlags) => {
        try {
          await plan(io, given, flags);
        } catch (error) {
          if (!flags.detailedExitcode) throw error;
          io.fail(error);
          io.exitCode = EXIT.fault;
        }
      }),
  );
}

async function plan(io: CliIo, given: readonly string[], flags: PlanFlags): Promise<void> {
  const loaded = await loadAll(io, given);
  await withRedis(io, async (session) => {
    const view = await planView(session, loaded, actorName(), true);
    if (flags.out !== undefined) savePlan(flags.out, view, loaded, actorName());
    if (io.flags.json) io.json({ ...view, saved: flags.out ?? null });
    else io.out(planText(io.c, view));
    if (flags.out !== undefined) {
      io.say(`Saved: flyball apply ${clean(flags.out)} adopts exactly this, or refuses.`);
    }
    if (flags.detailedExitcode && changesOf(view) > 0) io.exitCode = CHANGES;
    if (view.counts.refuse > 0) io.exitCode = EXIT.fault;
  });
}

/** How many limiters adopting would change. */
export function changesOf({ counts }: PlanView): number {
  return counts.create + counts.change + counts.mend;
}

/** All policies, or every fault of them. */
export async function loadAll(io: CliIo, given: readonly string[]): Promise<LoadedPolicy[]> {
  const paths = policyPaths(io, given);
  const { loaded, faults } = await loadPolicies(paths.length > 0 ? paths : 'policies', {
    deadlineMs: policyDeadlineMs(io.env),
  });
  if (faults.length > 0) throw new PolicyError(faults);
  return loaded;
}
