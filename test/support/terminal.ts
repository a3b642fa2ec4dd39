/** A command on a real terminal (a pseudo-terminal of python3), or a stand-in for one in this process; what it shows, line by line. */
import { spawn } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runCli } from '../../src/cli/program.js';
import { MAIN } from './cli-run.js';

const PYTHON = process.env.SUITE_PYTHON ?? '/usr/bin/python3';
const ON_TERMINAL = fileURLToPath(new URL('./on-terminal.py', import.meta.url));

/** The text of the newest whole screen that was drawn. */
function newest(all: string): string {
  const screens = all.split('\x1b[H');
  const last = screens.at(-1) ?? '';
  const whole = last.includes('\x1b[J') ? last : (screens.at(-2) ?? '');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own orders are left out.
  return whole.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r+\n/g, '\n');
}

export interface Terminal {
  /** All that was written to it. */
  all(): string;
  screen(): string;
  type(keys: string): void;
}

export interface FakeTerminal extends Terminal {
  code: Promise<number>;
  resize(columns: number, rows: number): void;
  raw(): boolean;
}

/** In this process: quick. `env` as the command sees it. */
export function fakeTerminal(args: string[], env: NodeJS.ProcessEnv): FakeTerminal {
  let raw = false;
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (on: boolean) => {
      raw = on;
    },
  });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 160, rows: 20 });
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  let all = '';
  stdout.on('data', (chunk) => {
    all += chunk;
  });
  stderr.resume();
  const code = runCli(args, { stdin, stdout, stderr, env: { NO_COLOR: '1', ...env } });
  return {
    ...{ code, all: () => all, screen: () => newest(all), raw: () => raw },
    type: (keys) => void stdin.write(keys),
    resize(columns, rows) {
      Object.assign(stdout, { columns, rows });
      stdout.emit('resize');
    },
  };
}

export interface RealTerminal extends Terminal {
  /** The command's exit code, and whether the terminal's own mode was back by then. */
  ended: Promise<{ code: number; cooked: boolean }>;
  resize(columns: number, rows: number): void;
  signal(number: number): void;
}

/** The built program, as its own process on a terminal of its own; in `cwd`, or where this process stands. */
export function realTerminal(args: string[], env: NodeJS.ProcessEnv, cwd?: string): RealTerminal {
  const child = spawn(PYTHON, [ON_TERMINAL, process.execPath, MAIN, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let all = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    all += chunk;
  });
  // It may have ended meanwhile.
  child.stdin.on('error', () => {});
  const order = (value: object) => void child.stdin.write(`${JSON.stringify(value)}\n`);
  return {
    ...{ all: () => all, screen: () => newest(all) },
    type: (keys) => order({ keys }),
    resize: (columns, rows) => order({ size: [columns, rows] }),
    signal: (number) => order({ signal: number }),
    ended: new Promise((ok, no) => {
      child.once('error', no);
      child.once('close', () => {
        const [, code, cooked] = /\nEXIT (-?\d+) ([01])\n/.exec(all) ?? [];
        ok({ code: Number(code), cooked: cooked === '1' });
      });
    }),
  };
}
