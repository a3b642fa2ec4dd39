/** Real daemon processes for tests: started from `dist`, told by environment, ended by their own pid. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ranked } from '../../src/daemon/rendezvous.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface LogLine {
  event?: string;
  level: string;
  msg?: string;
  [field: string]: unknown;
}

export interface TestDaemon {
  readonly pid: number;
  readonly lines: LogLine[];
  readonly stderr: () => string;
  /** Address of its HTTP server; waits until it listens. */
  http(): Promise<string>;
  /** Waits for a log line; the error shows what was logged instead. */
  line(event: string, matches?: (line: LogLine) => boolean): Promise<LogLine>;
  signal(signal: NodeJS.Signals): void;
  /** Exit code, or 128 + signal. */
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  stop(): Promise<void>;
}

export interface DaemonSetup {
  dir: string;
  policies: string;
  write(file: string, text: string): void;
  start(env?: NodeJS.ProcessEnv, args?: string[]): TestDaemon;
  close(): Promise<void>;
}

/** A folder with policies and the daemons started on it; short ticks (100 ms) and leases (1 s). */
export function daemonSetup(redisUrl: string | null): DaemonSetup {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-daemon-'));
  const policies = join(dir, 'policies');
  mkdirSync(policies);
  const daemons: TestDaemon[] = [];
  return {
    dir,
    policies,
    write: (file, text) => writeFileSync(join(policies, file), text),
    start(env = {}, args = []) {
      const daemon = startDaemon(dir, policies, redisUrl, env, args);
      daemons.push(daemon);
      return daemon;
    },
    async close() {
      await Promise.all(daemons.map((daemon) => daemon.stop()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function startDaemon(
  dir: string,
  policies: string,
  redisUrl: string | null,
  env: NodeJS.ProcessEnv,
  args: string[],
): TestDaemon {
  const { PATH, HOME } = process.env;
  const child: ChildProcess = spawn(process.execPath, [MAIN, 'run', ...args], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH,
      HOME,
      FLYBALL_POLICIES: policies,
      FLYBALL_TICK_MS: '100',
      FLYBALL_LEASE_MS: '1000',
      FLYBALL_POLICY_DEADLINE_MS: '30000',
      FLYBALL_RELOAD_MS: '100',
      FLYBALL_HTTP_PORT: '0',
      FLYBALL_REDIS_WAIT_MS: '5000',
      ...(redisUrl === null ? {} : { FLYBALL_REDIS_URL: redisUrl }),
      ...env,
    },
  });
  const lines: LogLine[] = [];
  let rest = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop()!;
    for (const part of parts) lines.push(JSON.parse(part) as LogLine);
  });
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((ok) => {
    child.once('close', (code, signal) => ok({ code, signal }));
  });
  const daemon: TestDaemon = {
    pid: child.pid!,
    lines,
    stderr: () => stderr,
    exited,
    async line(event, matches = () => true) {
      return until(`log line ${event}`, () =>
        lines.find((line) => line.event === event && matches(line)),
      ).catch((error: Error) => {
        const seen = lines.map((line) => JSON.stringify(line)).join('\n');
        throw new Error(`${error.message}\n${seen}\n${stderr}`);
      });
    },
    async http() {
      return (await daemon.line('http')).address as string;
    },
    signal: (signal) => void child.kill(signal),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await exited;
    },
  };
  return daemon;
}

/** Names for as many daemons as limiters, by which each leads its own: the fleet spreads them by name. */
export function namesThatLead(limiters: readonly string[]): string[] {
  for (let attempt = 0; ; attempt++) {
    const names = limiters.map((_, i) => `d${attempt}-${i}`);
    if (limiters.every((limiter, i) => ranked(limiter, names)[0] === names[i])) return names;
  }
}

/** Polls until `look` gives something; fails after `deadlineMs` with what was waited for. A busy machine may take long to start a daemon. */
export async function until<T>(
  what: string,
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  deadlineMs = 60_000,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found as T;
    if (performance.now() > giveUpAt) throw new Error(`waited ${deadlineMs} ms for ${what}`);
    await new Promise((ok) => setTimeout(ok, 20));
  }
}

/** A policy file: a law that moves nothing by itself unless `more` says otherwise. */
export function policyText(
  more = '',
  limiter = "name: 'checkout', rate: 100, capacity: 50, inFlightMax: 20",
) {
  return `import { definePolicy } from 'flyball';
export default definePolicy({
  limiter: { ${limiter} },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
  ${more}
});
`;
}
