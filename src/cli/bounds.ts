/** `flyball bounds`: a person widens or narrows the bounds of a limiter for a while. Stage: cli. */
import { type Command, Option } from 'commander';
import { clearBounds, setBounds } from '../actuate/verbs/bounds.js';
import { DEFAULT_HOLD_MS } from '../actuate/verbs/plan.js';
import { type ChangeFlags, changing, runChange } from './change.js';
import { parseNumber, parseSpan, parseWhole } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

interface BoundsFlags extends ChangeFlags {
  rateMin?: number;
  rateMax?: number;
  inFlightMin?: number;
  inFlightMax?: number;
  clear?: boolean;
}

export function register(program: Command, io: CliIo): void {
  const command = changing(
    'bounds',
    'Set within what the autopilot may move the limits, for a while, in place of the bounds of the policy.',
    `  flyball bounds checkout --rate-max 600 --for 2h --reason "sale"     asks first
  flyball bounds checkout --rate-min 50 --in-flight-max 64 --yes      holds 1 h
  flyball bounds checkout --clear                                     the policy's own hold again`,
  )
    .argument('<limiter>')
    .option('--rate-min <n>', 'least rate, tokens per second', parseNumber)
    .option('--rate-max <n>', 'most, above bounds.rate.max of the policy too', parseNumber)
    .option('--in-flight-min <n>', 'least in-flight cap', parseWhole)
    .option('--in-flight-max <n>', 'most', parseWhole)
    .addOption(new Option('--for <span>', 'how long: 1s … 365d (default 1h)').argParser(parseSpan))
    .addOption(
      new Option('--clear', 'end those that hold').conflicts([
        ...['rateMin', 'rateMax', 'inFlightMin', 'inFlightMax', 'for'],
      ]),
    )
    .action(async (limiter: string, flags: BoundsFlags) => {
      const { rateMin, rateMax, inFlightMin, inFlightMax } = flags;
      const wanted = {
        ...(rateMin === undefined ? {} : { rateMin }),
        ...(rateMax === undefined ? {} : { rateMax }),
        ...(inFlightMin === undefined ? {} : { inFlightMin }),
        ...(inFlightMax === undefined ? {} : { inFlightMax }),
      };
      // Before the question of --yes: no answer to that would mend it.
      if (!flags.clear && Object.keys(wanted).length === 0) {
        throw new UsageError(
          'give --rate-min, --rate-max, --in-flight-min or --in-flight-max, or --clear.',
          `What holds now: flyball status ${clean(limiter)}.`,
        );
      }
      const planner = flags.clear ? clearBounds() : setBounds(wanted, flags.for ?? DEFAULT_HOLD_MS);
      await runChange(io, limiter, flags, () => planner);
    });
  program.addCommand(command);
}
