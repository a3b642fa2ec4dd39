/** Starts the demo's processes, knows each by its pid, and ends them all in reverse order. Stage: demo. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { FlyballError } from '../errors.js';

export interface StartOptions {
  name: string;
  /** Compiled module, relative to `dist`: `demo/checkout-service.js`. */
  module: string;
  args?: readonly string[];
  env?: Record<string, string>;
  /** Messages over an IPC channel, for the pieces that belong to the demo. */
  channel?: boolean;
  /** One call for each line of stdout; else stdout goes to the log file. */
  onLine?: (line: string) => void;
  /** It ends by itself: no error when it does. */
  ends?: boolean;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  send(message: Record<string, unknown>): void;
  /** The first message for which `pick` is true. */
  next(pick: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  onMessage(listener: (message: Record<string, unknown>) => void): void;
  readonly exited: Promise<number | NodeJS.Signals>;
  /** Exited, and all it printed has been read. */
  readonly closed: Promise<void>;
  stop(): Promise<void>;
  kill(): void;
}

export interface Processes {
  start(options: StartOptions): RunningProcess;
  /** Rejects when a process that should live has died. */
  readonly broken: Promise<never>;
  close(): Promise<void>;
}

const DIST = fileURLToPath(new URL('..', import.meta.url));
/** A daemon stops in order within 10 s; what has not ended by then is killed. */
const STOP_MS = 11_000;

/** Logs go to `<logDir>/<name>.log`. */
export function createProcesses(logDir: string, baseEnv: NodeJS.ProcessEnv): Processes {
  const running: RunningProcess[] = [];
  let report: (error: Error) => void = () => {};
  const killAll = () => {
    for (const handle of running) handle.kill();
  };
  process.once('exit', killAll);
  const broken = new Promise<never>((_ok, no) => {
    report = no;
  });
  broken.catch(() => {});

  function start(options: StartOptions): RunningProcess {
    const log = openSync(join(logDir, `${options.name}.log`), 'a');
    const stdio: StdioOptions = ['ignore', options.onLine ? 'pipe' : log, log];
    if (options.channel) stdio.push('ipc');
    const child = spawn(
      process.execPath,
      [...execArguments, join(DIST, options.module), ...(options.args ?? [])],
      {
        env: { ...baseEnv, ...options.env },
        stdio,
        // Ctrl-C reaches the demo alone, which then ends its processes in order.
        detached: true,
      },
    );
    if (options.onLine) createInterface({ input: child.stdout! }).on('line', options.onLine);
    let stopping = false;
    const exited = new Promise<number | NodeJS.Signals>((ok) => {
      child.once('error', () => ok(1));
      child.once('exit', (code, signal) => {
        ok(code ?? signal ?? 1);
        const well = stopping || (options.ends && code === 0);
        if (!well) report(died(options.name, code ?? signal, logDir));
      });
    });
    const handle: RunningProcess = {
      name: options.name,
      pid: child.pid ?? -1,
      exited,
      closed: new Promise((ok) => void child.once('close', () => ok())),
      send: (message) => void (child.connected && child.send(message)),
      onMessage: (listener) => void child.on('message', (m) => listener(m as never)),
      next: (pick) => nextMessage(child, pick),
      kill: () => void child.kill('SIGKILL'),
      async stop() {
        stopping = true;
        await endProcess(child, exited);
      },
    };
    running.push(handle);
    return handle;
  }

  return {
    start,
    broken,
    async close() {
      for (const handle of running.splice(0).reverse()) await handle.stop();
      process.off('exit', killAll);
    },
  };
}

/** Long queues are part of the play without a limiter: the heap may grow. */
const execArguments = ['--max-old-space-size=3072'];

function nextMessage(child: ChildProcess, pick: (message: Record<string, unknown>) => boolean) {
  return new Promise<Record<string, unknown>>((ok) => {
    const listen = (message: unknown) => {
      if (!pick(message as Record<string, unknown>)) return;
      child.off('message', listen);
      ok(message as Record<string, unknown>);
    };
    child.on('message', listen);
  });
}

async function endProcess(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill('SIGTERM');
  const harder = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(harder);
}

function died(name: string, code: number | string | null, logDir: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_DEMO_PROCESS',
    `the demo's ${name} ended with ${code} before its time. Read ${join(logDir, `${name}.log`)}.`,
  );
}
