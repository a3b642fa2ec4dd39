/** How every command talks: stdout is the result, stderr is talk; colour, JSON, tables, quiet, errors and exit codes. Stage: cli. */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import Table from 'cli-table3';
import pc from 'picocolors';
import { type ErrorCode, EXIT, FlyballError, PolicyError } from '../errors.js';
import { describeFault } from '../faults.js';
import { byFlags } from './flag-names.js';
import { guardTerminal, safeJson } from './text.js';

export type Colours = ReturnType<typeof pc.createColors>;

/** A mistake in how a command was called: exit 64, with what to type instead. */
export class UsageError extends FlyballError {
  constructor(
    message: string,
    readonly hint?: string,
    code: ErrorCode = 'FLYBALL_E_CLI_USAGE',
  ) {
    super(code, hint ? `${message} ${hint}` : message);
  }
}

/** Flags that every command has; `main` sets them before an action runs. */
export interface GlobalFlags {
  json: boolean;
  quiet: boolean;
  /** false: never prompt, as if there were no terminal. */
  input: boolean;
  /** undefined: decide per stream. */
  colour?: boolean;
}

export interface CliIo {
  readonly env: NodeJS.ProcessEnv;
  readonly flags: GlobalFlags;
  /** `--redis` and `--prefix` as given. A command must not declare global flags again: the program takes them. */
  readonly globals: { redis?: string; prefix?: string };
  /** Colours for stdout and for stderr, decided apart. */
  readonly c: Colours;
  readonly ce: Colours;
  /** May we ask? stdin and stderr are terminals and neither `--no-input` nor `--json` is given. */
  readonly interactive: boolean;
  /** Columns of the terminal on stdout; 100 without one. */
  readonly columns: number;
  /** Result line(s) to stdout. */
  out(text: string): void;
  /** A file for programs to stdout, byte by byte: the caller has made it harmless, and ends its lines. */
  raw(text: string): void;
  /** The result for programs: `{ "schema": 1, … }` on stdout, once a command. */
  json(value: Record<string, unknown>): void;
  /** Talk on stderr; silent with `--quiet`. */
  say(text: string): void;
  /** stderr as it is (help of a wrong call). */
  err(text: string): void;
  /** Warnings on stderr; not silenced. */
  warn(text: string): void;
  /** Prints an error (and in JSON mode an `{ schema, error }` object on stdout); gives the exit code. */
  fail(error: unknown): number;
  table(head: readonly string[], rows: readonly (readonly string[])[]): string;
  /** Asks yes or no at the terminal. End of input is no; Ctrl-C leaves at once with 130. */
  confirm(question: string): Promise<boolean>;
  /** Asks for a word at the terminal; an empty answer, and the end of input, is `byDefault`. */
  ask(question: string, byDefault: string): Promise<string>;
  /** A line that says how far something is, written over the one before; empty: takes it away. Nothing without a terminal. */
  progress(text: string): void;
  /** For a command that draws a whole screen. All else goes through the functions above. */
  readonly terminal: {
    stdin: Readable & { isTTY?: boolean };
    stdout: Writable & { isTTY?: boolean };
  };
  /** Exit code of the command unless it throws. */
  exitCode: number;
}

export interface IoStreams {
  stdin?: Readable & { isTTY?: boolean };
  stdout?: Writable & { isTTY?: boolean; columns?: number };
  stderr?: Writable & { isTTY?: boolean };
  env?: NodeJS.ProcessEnv;
}

/** `--no-color`, NO_COLOR, FORCE_COLOR, TERM=dumb, then whether the stream is a terminal; CI alone turns nothing on. */
export function wantsColour(
  stream: { isTTY?: boolean },
  env: NodeJS.ProcessEnv,
  flag?: boolean,
): boolean {
  if (flag !== undefined) return flag;
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '') {
    return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  }
  return env.TERM !== 'dumb' && stream.isTTY === true;
}

/** The io of one command run. Tests pass their own streams and env. */
export function createIo(streams: IoStreams = {}): CliIo {
  const stdin = streams.stdin ?? process.stdin;
  const stdout = streams.stdout ?? process.stdout;
  const stderr = streams.stderr ?? process.stderr;
  const env = streams.env ?? process.env;
  const flags: GlobalFlags = { json: false, quiet: false, input: true };
  const write = (stream: Writable, text: string) =>
    void stream.write(`${guardTerminal(text.replace(/\n$/, ''))}\n`);

  /** What is typed, without the spaces round it; nothing at the end of input. */
  function typed(prompt: string): Promise<string> {
    return new Promise((resolve) => {
      const rl = createInterface({ input: stdin, output: stderr });
      rl.on('SIGINT', () => {
        stderr.write('\n');
        process.exit(EXIT.interrupted);
      });
      let answer = '';
      rl.on('close', () => resolve(answer.trim()));
      rl.question(guardTerminal(prompt), (text) => {
        answer = text;
        rl.close();
      });
    });
  }

  const io: CliIo = {
    env,
    flags,
    globals: {},
    get c() {
      return pc.createColors(!flags.json && wantsColour(stdout, env, flags.colour));
    },
    get ce() {
      return pc.createColors(wantsColour(stderr, env, flags.colour));
    },
    get interactive() {
      return flags.input && !flags.json && stdin.isTTY === true && stderr.isTTY === true;
    },
    get columns() {
      return stdout.columns && stdout.columns > 20 ? stdout.columns : 100;
    },
    out: (text) => write(stdout, text),
    raw: (text) => void stdout.write(text),
    json: (value) => write(stdout, safeJson({ schema: 1, ...value })),
    say: (text) => {
      if (!flags.quiet) write(stderr, text);
    },
    err: (text) => write(stderr, text),
    warn: (text) => write(stderr, `${io.ce.yellow('warning:')} ${text}`),
    fail(error) {
      const known = describeFault(byFlags(error));
      if (flags.json) {
        const faults = error instanceof PolicyError ? { faults: error.faults } : {};
        io.json({ error: { code: known.code, message: known.message, ...faults } });
      }
      const lead = known.message.startsWith(known.code) ? '' : `${io.ce.bold(known.code)}: `;
      write(stderr, `${io.ce.red('error:')} ${lead}${known.message}`);
      if (env.FLYBALL_DEBUG && error instanceof Error && error.stack) write(stderr, error.stack);
      return known.exit;
    },
    table(head, rows) {
      const table = new Table({
        head: head.map((h) => io.c.dim(h)),
        style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
        chars: BLANK,
      });
      for (const row of rows) table.push([...row]);
      return table
        .toString()
        .split('\n')
        .map((line) => line.trimEnd())
        .join('\n');
    },
    confirm: async (question) => /^y(es)?$/i.test(await typed(`${question} [y/N] `)),
    async ask(question, byDefault) {
      const answer = await typed(`${question}${byDefault === '' ? '' : ` [${byDefault}]`}: `);
      return answer === '' ? byDefault : answer;
    },
    progress(text) {
      if (stderr.isTTY !== true || flags.quiet || env.TERM === 'dumb') return;
      stderr.write(`\r\x1b[2K${guardTerminal(text)}`);
    },
    terminal: { stdin, stdout },
    exitCode: EXIT.ok,
  };
  return io;
}

// biome-ignore format: one line a side reads better.
const BLANK = {
  top: '', 'top-mid': '', 'top-left': '', 'top-right': '',
  bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '',
  left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '',
};
