/** `flyball init`: writes a first policy, in recommend mode, for its author to fill in. Stage: cli. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { assertName } from '../redis/keys.js';
import { parseCount, parseNumber } from './options.js';
import { type CliIo, UsageError } from './output.js';

interface InitFlags {
  dir: string;
  rate: number;
  inFlight?: number;
  dryRun?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('init')
      .description('Write a first policy that changes nothing: it recommends until you say auto.')
      .argument('<limiter>', 'name of the limiter, as the service gives it to createLimiter')
      .option('--dir <folder>', 'where policies lie', 'policies')
      .option('--rate <per second>', 'what the service surely bears, fleet-wide', parseNumber, 100)
      .option(
        '--in-flight <n>',
        'most requests under way at once, fleet-wide (default: no cap)',
        parseCount,
      )
      .option('-n, --dry-run', 'print the policy, write nothing')
      .addHelpText(
        'before',
        'Examples:\n  flyball init checkout --rate 100 --in-flight 24\n  flyball init checkout --dry-run\n',
      )
      .action((name: string, flags: InitFlags) => init(io, name, flags)),
  );
}

function init(io: CliIo, name: string, { dir, rate, inFlight, dryRun = false }: InitFlags): void {
  assertName('limiter', name);
  if (!(rate >= 1 && rate <= 1e5)) {
    throw new UsageError(`--rate ${rate} is not within 1 … 100000 per second.`);
  }
  if (inFlight !== undefined && inFlight > 1e5) {
    throw new UsageError(`--in-flight ${inFlight} is not within 1 … 100000.`);
  }
  const file = join(dir, `${name}.ts`);
  const text = firstPolicy(name, rate, inFlight);
  if (existsSync(file)) {
    throw new UsageError(
      `${file} exists and is left as it is.`,
      'Choose another name, or edit that file.',
    );
  }
  if (!dryRun) {
    mkdirSync(dirname(file), { recursive: true });
    // `wx`: a file that appeared since is left alone too.
    writeFileSync(file, text, { flag: 'wx' });
  }
  if (io.flags.json) io.json({ file, limiter: name, written: !dryRun, policy: text });
  else if (dryRun) io.out(text);
  else {
    io.out(file);
    io.say(`Next: flyball check ${file}, then flyball run ${dir}`);
  }
}

/** Written to be read: each number says what it is, and what to do before \`mode: 'auto'\`. */
export function firstPolicy(name: string, rate: number, inFlight?: number): string {
  const tidy = (value: number) => Number(value.toPrecision(3));
  const cap =
    inFlight === undefined
      ? '// inFlightMax: 24, // most requests under way at once; give it when the service reports completions'
      : `inFlightMax: ${inFlight}, // most requests under way at once; the service reports completions`;
  const capBounds =
    inFlight === undefined
      ? ''
      : `, inFlight: { min: ${Math.min(2, inFlight)}, max: ${inFlight * 4} }`;
  return `import { adaptive, definePolicy, telemetry, upstreamErrors } from 'flyball';

export default definePolicy({
  limiter: {
    name: '${name}',
    // Totals over all instances of the service. Start with what it surely bears.
    rate: ${rate}, // tokens per second; a request takes one unless it says otherwise
    capacity: ${Math.max(1, tidy(rate * 2))}, // most tokens held: how large a burst may be
    ${cap}
  },
  signals: {
    p95: telemetry.latency('p95'),
    errors: telemetry.errorRatio(),
    upstream: upstreamErrors('SYSTEMERROR'), // failures that the service reports with this code
    // dbWait: postgres.waiting({ url: env('DATABASE_URL') }), // import postgres and env too
  },
  // What should hold. Set it from what users need, not from what is measured today.
  objective: {
    p95: { below: '250ms' },
    errors: { below: '1%' },
  },
  control: adaptive(),
  // The autopilot never leaves these.
  bounds: { rate: { min: ${tidy(rate / 5)}, max: ${tidy(rate * 4)} }${capBounds} },
  // More than 100 of those failures in a minute: nothing passes for 5 s, then one probe a second.
  breaker: { on: 'upstream', above: 100, per: '1m', openFor: '5s', probeRate: 1 },
  // While Redis is away each process limits on its own, with its part of the rate.
  onRedisError: 'local',
  // The numbers above are enforced as they are; what the autopilot would do is only recorded
  // (flyball audit ${name}). When you agree with it: mode: 'auto'.
  mode: 'recommend',
});
`;
}
