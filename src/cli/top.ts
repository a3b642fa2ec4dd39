/** `flyball top`: all limiters as a live table, or who takes most of one of them. Stage: cli. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { EXIT } from '../errors.js';
import { TOP_MINUTES } from '../view/top.js';
import { createInterrupt } from './interrupt.js';
import { parseCount } from './options.js';
import { type CliIo, UsageError } from './output.js';
import { type Session, withRedis } from './session.js';
import { liveTop } from './top-live.js';
import { oneTop, streamTop } from './top-once.js';
import { showSubjects } from './top-subjects.js';

interface TopFlags {
  over?: number;
  denied?: boolean;
  limit?: number;
  once?: boolean;
}

const WINDOWS: Readonly<Record<string, number>> = { ...TOP_MINUTES, '1h': 60 };
const DEFAULT_MINUTES = 5;
const DEFAULT_LIMIT = 20;

export function register(program: Command, io: CliIo): void {
  program.addCommand(
    new Command('top')
      .description('All limiters, live, with keys to change them; of one: who takes most.')
      .argument('[limiter]', 'its subjects, in place of the table of all')
      .option('--once', 'one table, then leave (so it does without a terminal)')
      .addOption(
        new Option('--over <window>', 'of subjects: 1m, 5m or 60m (default: 5m)').argParser(
          parseWindow,
        ),
      )
      .option('--denied', 'of subjects: by how often they were denied, not by tokens')
      .option('--limit <n>', 'of subjects: most to show (default: 20)', parseCount)
      .addHelpText(
        'before',
        `Examples:
  flyball top                            all limiters, live; ? shows the keys
  flyball top --once                     the table, once
  flyball top --json                     a line of JSON each second, until Ctrl-C
  flyball top checkout                   who took most tokens in the last 5 minutes
  flyball top checkout --denied --over 1m
`,
      )
      .action(async (limiter: string | undefined, flags: TopFlags) => {
        checkFlags(limiter, flags);
        await withRedis(io, (session) =>
          limiter === undefined
            ? showLimiters(io, session, flags)
            : showSubjects(io, session, limiter, {
                ...{ over: flags.over ?? DEFAULT_MINUTES, limit: flags.limit ?? DEFAULT_LIMIT },
                ...(flags.denied === undefined ? {} : { denied: flags.denied }),
              }),
        );
      }),
  );
}

function parseWindow(text: string): number {
  const minutes = WINDOWS[text];
  if (minutes !== undefined) return minutes;
  throw new InvalidArgumentError(`${JSON.stringify(text)} is no window. Write 1m, 5m or 60m.`);
}

function checkFlags(limiter: string | undefined, { over, denied, limit, once }: TopFlags): void {
  const [given] = [
    ...(over === undefined ? [] : ['--over']),
    ...(denied === undefined ? [] : ['--denied']),
    ...(limit === undefined ? [] : ['--limit']),
  ];
  if (limiter === undefined && given !== undefined) {
    throw new UsageError(
      `${given} is about the subjects of one limiter.`,
      'Name it: flyball top checkout.',
    );
  }
  if (limiter !== undefined && once) {
    throw new UsageError(
      '--once is about the table of all limiters.',
      'Leave it out: subjects are shown once.',
    );
  }
}

async function showLimiters(io: CliIo, session: Session, { once }: TopFlags): Promise<void> {
  const { stdin, stdout } = io.terminal;
  // A dumb terminal cannot be drawn on.
  const draws = stdin.isTTY === true && stdout.isTTY === true && io.env.TERM !== 'dumb';
  const live = draws && io.flags.input;
  if (io.flags.json && !once) {
    const interrupt = createInterrupt();
    try {
      await streamTop(io, session, interrupt.signal);
    } finally {
      interrupt.release();
    }
    io.exitCode = EXIT.interrupted;
  } else if (once || io.flags.json || !live) {
    if (!(await oneTop(io, session))) io.exitCode = EXIT.fault;
  } else if (await liveTop(io, session)) io.exitCode = EXIT.interrupted;
}
