/** `flyball freeze` and `flyball thaw`: law, tuning and schedules change nothing for a while. Stage: cli. */
import type { Command } from 'commander';
import { freeze, thaw } from '../actuate/verbs/freeze.js';
import { type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import type { CliIo } from './output.js';

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'freeze',
    'Hold what is in force now: law, tuning and schedules change nothing. A trip still goes through.',
    `  flyball freeze checkout                   asks first; holds 1 h
  flyball freeze checkout --for 30m --reason "game day" --yes
  flyball freeze checkout --hold            until thawed`,
  )
    .argument('<limiter>')
    .option('--hold-breaker', 'hold the breaker too: not even a trip moves it');
  holding(command, '1s … 365d (default 1h)').action(
    async (limiter: string, flags: ChangeFlags & { holdBreaker?: boolean }) => {
      const options = flags.holdBreaker ? { holdBreaker: true } : {};
      await runChange(io, limiter, flags, () => freeze(holdOf(flags), options));
    },
  );
  program.addCommand(command);

  program.addCommand(
    changing('thaw', 'End a freeze; the autopilot goes on from here.', '  flyball thaw checkout')
      .argument('<limiter>')
      .action(async (limiter: string, flags: ChangeFlags) => {
        await runChange(io, limiter, flags, () => thaw());
      }),
  );
}
