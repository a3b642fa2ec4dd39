/** `flyball freeze` and `flyball thaw`: law, tuning and schedules change nothing for a while. Stage: cli. */
import type { Command } from 'commander';
import { freeze, thaw } from '../actuate/verbs/freeze.js';
import { type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import { oneOrAll, runChangeAll } from './change-all.js';
import type { CliIo } from './output.js';

interface FreezeFlags extends ChangeFlags {
  holdBreaker?: boolean;
  all?: boolean;
}

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'freeze',
    'Hold what is in force now: law, tuning and schedules change nothing. A trip still goes through.',
    `  flyball freeze checkout                   asks first; holds 1 h
  flyball freeze checkout --for 30m --reason "game day" --yes
  flyball freeze checkout --hold            until thawed
  flyball freeze --all --for 2h --reason "stocktaking" --yes`,
  )
    .argument('[limiter]')
    .option('--all', 'every limiter that is registered now')
    .option('--hold-breaker', 'hold the breaker too: not even a trip moves it');
  holding(command, '1s … 365d (default 1h)').action(
    async (limiter: string | undefined, flags: FreezeFlags) => {
      const options = flags.holdBreaker ? { holdBreaker: true } : {};
      const planner = () => freeze(holdOf(flags), options);
      const one = oneOrAll(limiter, flags.all);
      if (one === null) await runChangeAll(io, flags, { plannerFor: planner });
      else await runChange(io, one, flags, planner);
    },
  );
  program.addCommand(command);

  program.addCommand(
    changing(
      'thaw',
      'End a freeze; the autopilot goes on from here.',
      '  flyball thaw checkout\n  flyball thaw --all --yes',
    )
      .argument('[limiter]')
      .option('--all', 'every limiter that is frozen now')
      .action(async (limiter: string | undefined, flags: FreezeFlags) => {
        const one = oneOrAll(limiter, flags.all);
        if (one === null) await runChangeAll(io, flags, { plannerFor: thaw });
        else await runChange(io, one, flags, thaw);
      }),
  );
}
