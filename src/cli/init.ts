/** `flyball init`: writes a first policy that fits the service it finds, in recommend mode, and says what comes next. Stage: cli. */
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { makeFolder } from '../make-folder.js';
import { assertName } from '../redis/keys.js';
import { type Chosen, chosenBy, type InitFlags } from './init-choose.js';
import { type Measured, measuredFor } from './init-measure.js';
import { pasteFor } from './init-paste.js';
import { firstPolicy } from './init-policy.js';
import { type Fit, sizesOf } from './init-size.js';
import { FRAMEWORKS, isGuess, surroundings } from './init-surroundings.js';
import { parseCount, parseNumber, parseSpan } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { shellWord } from './undo.js';

const MOST_FIT_MS = 3_600_000;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('init')
      .description('Write a first policy that changes nothing: it recommends until you say auto.')
      .argument('[limiter]', 'name of the limiter, as the service gives it to createLimiter')
      .option('--dir <folder>', 'where policies lie', 'policies')
      .option('--rate <per second>', 'what the service surely bears, fleet-wide', parseRate)
      .option('--in-flight <n>', 'most requests under way at once, fleet-wide', parseCount)
      .addOption(new Option('--framework <name>', 'whose code to print').choices([...FRAMEWORKS]))
      .option('--database <variable>', 'environment variable with its address, or none')
      .option('--fit <span>', 'measure so long, 1s … 1h, and size the numbers by it', parseFit)
      .option('--metrics <url>', 'with --fit: a /metrics page of the service')
      .option(
        '--metric <name>',
        'histogram of response times on that page, in seconds',
        'http_request_duration_seconds',
      )
      .option('-n, --dry-run', 'print the policy, write nothing')
      .option('-y, --yes', 'do not ask: take what was found')
      .addHelpText(
        'before',
        `Examples:
  flyball init                              asks, with what it found as answers
  flyball init checkout --rate 100 --in-flight 24
  flyball init checkout --fit 10m           sizes the numbers by what it sees for ten minutes
  flyball init checkout --fit 10m --metrics http://127.0.0.1:3000/metrics
  flyball init --yes --dry-run
`,
      )
      .action((name: string | undefined, flags: InitFlags) => init(io, name, flags)),
  );
}

function parseRate(text: string): number {
  const rate = parseNumber(text);
  if (rate >= 1 && rate <= 1e5) return rate;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is not within 1 … 100000 per second.`);
}

function parseFit(text: string): number {
  const ms = parseSpan(text);
  if (ms <= MOST_FIT_MS) return ms;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is more than 1h. Write 10m.`);
}

async function init(io: CliIo, given: string | undefined, flags: InitFlags): Promise<void> {
  if (given !== undefined) assertName('limiter', given);
  if (flags.inFlight !== undefined && flags.inFlight > 1e5) {
    throw new UsageError(`--in-flight ${flags.inFlight} is not within 1 … 100000.`);
  }
  if (flags.metrics !== undefined && flags.fit === undefined) {
    throw new UsageError('--metrics is a page to measure by.', 'Add --fit 10m.');
  }
  const around = surroundings(process.cwd(), io.env, io.globals.redis);
  const chosen = await chosenBy(io, around, given, flags, refuseExisting);
  refuseExisting(flags.dir, chosen.name);
  const { redis, fit } = await measuredFor(io, around, chosen, flags);
  const sizes = sizesOf(fit, chosen);
  const policy = firstPolicy({ name: chosen.name, sizes, database: chosen.database });
  const file = fileOf(flags.dir, chosen.name);
  const paste = pasteFor({
    ...{ name: chosen.name, framework: chosen.framework, modules: around.modules },
    ...{ rate: sizes.rate.value, capacity: sizes.capacity },
    inFlightMax: sizes.inFlight?.value ?? null,
  });
  const next = nextSteps({ ...{ file, chosen, redis }, dir: flags.dir, packages: around.packages });
  const written = flags.dryRun !== true;
  if (written) write(file, policy);
  if (io.flags.json) {
    const { framework, database } = chosen;
    io.json({
      ...{ file, limiter: chosen.name, written, policy },
      found: {
        framework,
        redis: redis && { url: redis.shown, from: redis.from, answers: redis.answers },
        database: database && {
          kind: database.kind,
          variable: database.variable,
          from: database.from,
        },
      },
      ...{ fit, paste, next },
    });
    return;
  }
  tellFit(io, fit);
  io.out(written ? file : policy);
  const talk = written ? io.out : io.say;
  talk(`\n${io.c.dim(`// For the service (${chosen.framework}):`)}\n${paste}`);
  io.say(
    ['Next:', ...next.map((step, i) => `  ${i + 1}. ${step.why}\n     ${step.command}`)].join('\n'),
  );
}

function fileOf(dir: string, name: string): string {
  return join(dir, `${name}.ts`);
}

function refuseExisting(dir: string, name: string): void {
  const file = fileOf(dir, name);
  if (!existsSync(file)) return;
  const mend = 'Choose another name, or edit that file.';
  throw new UsageError(`${file} exists and is left as it is.`, mend);
}

function write(file: string, text: string): void {
  makeFolder(dirname(file));
  // `wx`: a file that appeared since is left alone too.
  writeFileSync(file, text, { flag: 'wx' });
}

function tellFit(io: CliIo, fit: Fit | null): void {
  if (fit === null) return;
  const { requests, seconds, from, missing } = fit;
  const heard = from.length > 0 ? `, heard from ${from.join(', ')}` : '';
  io.say(`Measured for ${seconds} s: ${requests} requests${heard}.`);
  for (const what of missing) io.warn(`not measured: ${what}`);
  if (requests === 0)
    io.warn('no request was seen: rate and objectives are guesses. Run init again under load.');
}

export interface NextStep {
  why: string;
  command: string;
}

interface Situation {
  file: string;
  dir: string;
  chosen: Chosen;
  redis: Measured['redis'];
  packages: readonly string[];
}

function nextSteps({ file, dir, chosen, redis, packages }: Situation): NextStep[] {
  const driver = { postgres: 'pg', mysql: 'mysql2' }[chosen.database?.kind ?? 'postgres'];
  const wanted = ['flyball', ...(chosen.database === null ? [] : [driver])];
  const install = wanted.filter((name) => !packages.includes(name));
  const at = shellWord(file) ?? '<file>';
  // Of a guess that does not answer `run` would wait in vain; it brings a Redis of its own.
  const where =
    redis?.set && (redis.answers || !isGuess(redis)) ? `FLYBALL_REDIS_URL="${redis.set}" ` : '';
  return [
    {
      why: 'Put the code above into the service.',
      command:
        install.length > 0 ? `npm install ${install.join(' ')}` : `npm ls ${wanted.join(' ')}`,
    },
    { why: 'Ask each signal of the policy once.', command: `flyball check ${at} --live` },
    {
      why:
        `Start the autopilot: it recommends, and flyball status ${chosen.name} shows what it would do. ` +
        `When you agree: flyball promote ${chosen.name} --to auto.`,
      command: `${where}flyball run ${shellWord(dir) ?? '<folder>'}`,
    },
  ];
}
