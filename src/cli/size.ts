/** `flyball size`: capacity and rate by hand, from the numbers of a service, and which of them binds. Stage: cli. */
import { Command, InvalidArgumentError } from 'commander';
import { durationMs } from '../policy/units.js';
import { HEADROOM, sizeOf } from '../tune/capacity.js';
import { parseCount, parseNumber } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { number } from './text.js';

interface SizeFlags {
  p999: number;
  slots: number;
  instances: number;
  connections?: number;
  hold?: number;
  rate?: number;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('size')
      .description('Capacity from response time, slots, instances and connections, by hand.')
      .requiredOption('--p999 <time>', 'response time that 99.9 % keep off peak: 80ms', parseTime)
      .requiredOption('--slots <n>', 'requests that one instance serves at a time', parseCount)
      .requiredOption('--instances <n>', 'instances of the service', parseCount)
      .option('--connections <n>', 'database connections of all instances together', parseCount)
      .option('--hold <time>', 'how long a request holds a connection, on average', parseTime)
      .option('--rate <n>', 'tokens per second that are wanted', parseNumber)
      .addHelpText(
        'before',
        `Examples:
  flyball size --p999 80ms --slots 1 --instances 8
  flyball size --p999 80ms --slots 1 --instances 8 --connections 20 --hold 15ms --rate 60
`,
      )
      .addHelpText(
        'after',
        `\ncapacity = floor(1000 ÷ p999 in ms × slots × instances × ${HEADROOM}),
at most connections ÷ hold, at least a second of the rate.`,
      )
      .action((flags: SizeFlags) => size(io, flags)),
  );
}

function size(io: CliIo, flags: SizeFlags): void {
  const { p999, slots, instances, connections, hold, rate } = flags;
  if ((connections === undefined) !== (hold === undefined)) {
    throw new UsageError(
      'connections bind by how many there are and how long each is held.',
      'Give --connections and --hold together.',
    );
  }
  if (rate === 0) throw new UsageError('--rate is 0.', 'Give tokens per second above 0.');
  const service = { p999Ms: p999, slotsPerInstance: slots, instances, connections, rate };
  const sized = sizeOf({ ...service, holdMs: hold });
  if (io.flags.json) {
    io.json({ ...sized });
    return;
  }
  const lines = [`capacity   ${number(sized.capacity)}`];
  if (sized.rate !== null) lines.push(`rate       ${number(sized.rate)}/s`);
  lines.push(`in flight  ${number(sized.slots)} at most: the slots there are`, sized.sentence);
  io.out(lines.join('\n'));
}

function parseTime(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined || !(ms >= 0.001 && ms <= 3_600_000)) {
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is no time from 1us to 1h. Write 80ms, 1.5ms or 2s.`,
    );
  }
  return ms;
}
