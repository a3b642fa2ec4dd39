/** `flyball rollout`: for whom a limiter is enforced, step by step; the others are in shadow. Stage: cli. */
import { type Command, Option } from 'commander';
import { rollout } from '../actuate/verbs/rollout.js';
import { type ChangeFlags, changing, runChange } from './change.js';
import { parseNumber } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

interface RolloutFlags extends ChangeFlags {
  percent?: number;
  subject?: string[];
  drop?: string[];
  by?: 'subject' | 'request';
  done?: boolean;
  release?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    changing(
      'rollout',
      'Enforce a limiter for some first; the others are in shadow: admitted, and counted.',
      `  flyball rollout checkout --percent 0 --subject user:42   one subject, to try it
  flyball rollout checkout --percent 1 --reason "looks right" --yes
  flyball rollout checkout --percent 10                    whom 1 % reached stays
  flyball rollout checkout --done                          for all
  flyball rollout checkout --release                       back to what the policy says`,
    )
      .argument('<limiter>')
      .option('--percent <n>', 'share of the subjects, 0 … 100', parseNumber)
      .option('--subject <subjects...>', 'enforce these by name, beside those that are already')
      .option('--drop <subjects...>', 'no longer enforce these by name')
      .addOption(
        new Option('--by <what>', "'request': a random share of the requests").choices([
          'subject',
          'request',
        ]),
      )
      .option('--done', 'enforce it for all')
      .option('--release', "back to the policy's own rollout")
      .action(async (limiter: string, flags: RolloutFlags) => {
        const { percent, subject, drop, by, done, release } = flags;
        const wish = {
          ...(percent === undefined ? {} : { percent }),
          ...(subject === undefined ? {} : { subjects: subject }),
          ...(drop === undefined ? {} : { drop }),
          ...(by === undefined ? {} : { by }),
          ...(done ? { done } : {}),
          ...(release ? { release } : {}),
        };
        // Before the question of --yes: no answer to that would mend it.
        if (Object.keys(wish).length === 0) {
          throw new UsageError(
            'give --percent, --subject, --drop, --by, --done or --release.',
            `To see whom it is enforced for: flyball status ${clean(limiter)}.`,
          );
        }
        await runChange(io, limiter, flags, () => rollout(wish));
      }),
  );
}
