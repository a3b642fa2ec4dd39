/** `flyball pin` and `flyball release`: a person's own value, held, and the hand back. Stage: cli. */
import type { Command } from 'commander';
import { pin, release } from '../actuate/verbs/pin.js';
import { type ChangeFlags, changing, holding, holdOf, runChange } from './change.js';
import { parseNumber, parseWhole } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

interface PinFlags extends ChangeFlags {
  rate?: number;
  inFlight?: number;
  holdBreaker?: boolean;
}

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'pin',
    'Set the rate, the in-flight cap or both, and hold them against the autopilot.',
    `  flyball pin checkout --rate 80                      asks first; holds 1 h
  flyball pin checkout --rate 40 --in-flight 8 --for 2h --reason "db migration" --yes
  flyball pin checkout --rate 0 --hold                nothing passes until released`,
  )
    .argument('<limiter>')
    .option('--rate <n>', 'tokens per second, 0 … bounds.rate.max', parseNumber)
    .option('--in-flight <n>', 'in-flight cap, 1 … bounds.inFlight.max', parseWhole)
    .option('--hold-breaker', 'hold the breaker too: not even a trip moves it');
  holding(command, '1s … 365d (default 1h)').action(async (limiter: string, flags: PinFlags) => {
    // Before the question of --yes: no answer to that would mend it.
    if (flags.rate === undefined && flags.inFlight === undefined) {
      throw new UsageError(
        'give --rate, --in-flight or both.',
        `To hold what is in force: flyball freeze ${clean(limiter)}.`,
      );
    }
    const wanted = {
      ...(flags.rate === undefined ? {} : { rate: flags.rate }),
      ...(flags.inFlight === undefined ? {} : { inFlight: flags.inFlight }),
      ...(flags.holdBreaker ? { holdBreaker: true } : {}),
    };
    await runChange(io, limiter, flags, () => pin(wanted, holdOf(flags)));
  });
  program.addCommand(command);

  program.addCommand(
    changing(
      'release',
      'End a pin or the hold of a rollback; the autopilot goes on from the held value.',
      '  flyball release checkout',
    )
      .argument('<limiter>')
      .action(async (limiter: string, flags: ChangeFlags) => {
        await runChange(io, limiter, flags, () => release());
      }),
  );
}
