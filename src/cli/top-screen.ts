/** A whole terminal: the other screen, raw keys, its size; given back on any way out. Stage: cli. */
import type { CliIo } from './output.js';
import { type Key, keysOf } from './top-keys.js';

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Draws these lines over what is there. */
  show(lines: readonly string[]): void;
  /** Gives the terminal to the shell until it is asked back. */
  suspend(): void;
  close(): void;
}

interface Tty {
  columns?: number;
  rows?: number;
  setRawMode?(on: boolean): void;
}

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';

export function createScreen(io: CliIo, on: { key(key: Key): void; resize(): void }): Screen {
  const stdin = io.terminal.stdin as typeof io.terminal.stdin & Tty;
  const stdout = io.terminal.stdout as typeof io.terminal.stdout & Tty;
  let entered = false;

  const typed = (chunk: Buffer | string) => {
    for (const key of keysOf(String(chunk))) on.key(key);
  };

  function enter(): void {
    if (entered) return;
    entered = true;
    stdin.setRawMode?.(true);
    stdin.on('data', typed);
    stdin.resume();
    stdout.write(ENTER);
    on.resize();
  }

  function leave(): void {
    if (!entered) return;
    entered = false;
    stdin.off('data', typed);
    stdin.setRawMode?.(false);
    stdin.pause();
    stdout.write(LEAVE);
  }

  // A crash too ends by way of `exit`, and there a terminal is written at once.
  process.on('exit', leave).on('SIGCONT', enter);
  stdout.on('resize', on.resize);
  enter();

  return {
    get columns() {
      return stdout.columns ?? 80;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    show(lines) {
      if (!entered) return;
      // The end of each line is wiped, not the screen before it: nothing flickers.
      stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
    },
    suspend() {
      leave();
      process.kill(process.pid, 'SIGTSTP');
    },
    close() {
      process.off('exit', leave).off('SIGCONT', enter);
      stdout.off('resize', on.resize);
      leave();
    },
  };
}
