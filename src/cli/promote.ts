/** `flyball promote` and `flyball approve`: up the ladder of trust on evidence, and one recommendation taken. Stage: cli. */
import { type Command, Option } from 'commander';
import { evidenceText, readEvidence } from '../actuate/evidence.js';
import { readFacts } from '../actuate/verbs/apply.js';
import { approve, readRecommendation } from '../actuate/verbs/approve.js';
import { promote } from '../actuate/verbs/promote.js';
import { type ChangeFlags, changing, runChange } from './change.js';
import { parseRevision } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

interface PromoteFlags extends ChangeFlags {
  to?: 'shadow' | 'recommend' | 'auto';
  release?: boolean;
  anyway?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    changing(
      'promote',
      'Trust a limiter with more, on the evidence: recommend enforces, auto lets the law move.',
      `  flyball promote checkout --to auto --dry-run   the evidence
  flyball promote checkout --to auto --reason "a week of agreement"
  flyball promote checkout --to auto --anyway --reason "load test" --yes
  flyball promote checkout --to recommend        down again, without evidence
  flyball promote checkout --release             what the policy file says`,
    )
      .argument('<limiter>')
      .addOption(
        new Option('--to <mode>', 'what it may do from now on').choices([
          'shadow',
          'recommend',
          'auto',
        ]),
      )
      .option('--release', "back to the policy's own mode")
      .option('--anyway', 'though the evidence is not enough; needs --reason')
      .action((limiter: string, flags: PromoteFlags) => runPromote(io, limiter, flags)),
  );

  program.addCommand(
    changing(
      'approve',
      'Put in force what is recommended for a limiter in mode recommend.',
      `  flyball approve checkout                  the newest recommendation; asks first
  flyball approve checkout 41 --yes         only if it was made at revision 41`,
    )
      .argument('<limiter>')
      .argument('[revision]', 'the revision that it was made at', parseRevision)
      .action(async (limiter: string, revision: number | undefined, flags: ChangeFlags) => {
        await runChange(io, limiter, flags, async ({ redis }, address) =>
          approve(await readRecommendation(redis, address), revision),
        );
      }),
  );
}

async function runPromote(io: CliIo, limiter: string, flags: PromoteFlags): Promise<void> {
  const { to, release, anyway = false, reason } = flags;
  if ((to === undefined) === (release !== true)) {
    const [what, hint] =
      to === undefined
        ? [
            'give --to recommend, --to auto, --to shadow or --release.',
            `To see its mode: flyball status ${clean(limiter)}.`,
          ]
        : ['--to and --release exclude each other.', 'Leave one out.'];
    throw new UsageError(what, hint);
  }
  if (anyway && reason === undefined) {
    throw new UsageError('--anyway needs --reason.', 'The audit log keeps why: --reason "…".');
  }
  await runChange(io, limiter, flags, async ({ redis }, address) => {
    const { params, nowMs } = await readFacts(redis, address, { actor: '' });
    const evidence = await readEvidence(redis, address, params, nowMs);
    io.say(`Evidence: ${evidenceText(evidence)}.`);
    return promote({ to: to ?? 'file', evidence, anyway });
  });
}
