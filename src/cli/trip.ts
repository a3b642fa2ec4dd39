/** `flyball trip` and `flyball reset`: a person opens the breaker, or ends its open time. Stage: cli. */
import type { Command } from 'commander';
import { reset, trip } from '../actuate/verbs/breaker.js';
import { type ChangeFlags, changing, holding, runChange } from './change.js';
import type { CliIo } from './output.js';

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'trip',
    'Open the breaker: rate 0 at once, for every service.',
    `  flyball trip checkout                     asks first; for the policy's open time
  flyball trip checkout --for 10m --reason "payments are down" --yes
  flyball trip checkout --hold              until reset`,
  ).argument('<limiter>');
  holding(command, "1s … 365d (default: the policy's open time)").action(
    async (limiter: string, flags: ChangeFlags) => {
      await runChange(io, limiter, flags, () => trip(flags.hold ? 'until-ended' : flags.for));
    },
  );
  program.addCommand(command);

  program.addCommand(
    changing(
      'reset',
      'End an open breaker. Buckets begin empty and, with an autopilot, the rate grows back: never a burst.',
      '  flyball reset checkout',
    )
      .argument('<limiter>')
      .action(async (limiter: string, flags: ChangeFlags) => {
        await runChange(io, limiter, flags, () => reset());
      }),
  );
}
