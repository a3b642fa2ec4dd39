/** A private PostgreSQL on loopback from the npm binaries, started and wiped by its starter. Stage: demo, tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FlyballError } from '../errors.js';
import { type Account, canReach, serverAccount, serverBinaries } from './postgres-binaries.js';

export interface PostgresOptions {
  /** Where its folder is made, when its system user can reach it; else the temporary folder. */
  dir?: string;
  /** Settings over the defaults, as in postgresql.conf: `{ max_connections: 60 }`. */
  settings?: Record<string, string | number>;
}

export interface RunningPostgres {
  /** `postgres://postgres:<random>@127.0.0.1:<port>/postgres` */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Its folder: data and, where they had to be copied, binaries. Gone after `stop`. */
  readonly dir: string;
  /** Ends sessions, waits for the server, removes its folder. Safe to call twice. */
  stop(): Promise<void>;
  /** As a crash: sessions are cut, nothing is flushed. The folder stays until `stop`. */
  kill(): Promise<void>;
}

const DEFAULTS: Record<string, string | number> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 100,
  shared_buffers: '32MB',
  // Throw-away data: a crash of the machine may lose it.
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  jit: 'off',
  log_min_messages: 'warning',
};

/**
 * Starts a PostgreSQL of its own on a free loopback port, with a random password. It refuses root, so under
 * root it runs as a system user, with binaries and data where that user can reach them.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<RunningPostgres> {
  const account = serverAccount();
  const parent =
    [options.dir, tmpdir(), '/tmp', '/var/tmp', '/dev/shm'].find(
      (place) => place !== undefined && existsSync(place) && canReach(account, place),
    ) ?? tmpdir();
  const dir = mkdtempSync(join(parent, 'flyball-postgres-'));
  if (account) chownSync(dir, account.uid, account.gid);
  const data = join(dir, 'data');
  const password = randomBytes(12).toString('hex');
  try {
    const bin = serverBinaries(account, dir);
    await initialise(bin, dir, data, password, account);
    const server = await launch(bin, dir, data, { ...DEFAULTS, ...options.settings }, account);
    return handle(server, dir, password);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

async function initialise(
  bin: string,
  dir: string,
  data: string,
  password: string,
  account: Account,
) {
  const passwordFile = join(dir, 'password');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account) chownSync(passwordFile, account.uid, account.gid);
  const child = spawn(
    join(bin, 'initdb'),
    [
      '--pgdata',
      data,
      '--username=postgres',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--encoding=UTF8',
      '--no-locale',
      '--no-sync',
    ],
    { ...account, cwd: dir, env: environment(), stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const said = collect(child);
  const code = await exitOf(child);
  rmSync(passwordFile, { force: true });
  if (code !== 0) throw fault(`initdb ended with ${code}`, said());
}

interface Server {
  child: ChildProcess;
  port: number;
}

async function launch(
  bin: string,
  dir: string,
  data: string,
  settings: Record<string, string | number>,
  account: Account,
): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const flags = Object.entries({ ...settings, port }).flatMap(([k, v]) => ['-c', `${k}=${v}`]);
    const child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], {
      ...account,
      cwd: dir,
      env: environment(),
      stdio: ['ignore', 'ignore', 'pipe'],
      // Ctrl-C reaches the starter only; it then stops the server in order.
      detached: true,
    });
    const said = collect(child);
    const ended = exitOf(child);
    const outcome = await Promise.race([ended, ready(join(data, 'postmaster.pid'), child)]);
    if (outcome === 'ready') return { child, port };
    // Another process may take the port between our look and its bind.
    if (!/could not bind/i.test(said()) || attempt === 5) {
      await end(child, 'SIGKILL');
      throw fault(
        outcome === 'late' ? 'not ready within 30 s' : `postgres ended with ${outcome}`,
        said(),
      );
    }
  }
}

function handle({ child, port }: Server, dir: string, password: string): RunningPostgres {
  const watch = watchdog(child.pid!, dir);
  const onExit = () => void child.kill('SIGQUIT');
  process.once('exit', onExit);
  let stopped: Promise<void> | undefined;
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    port,
    pid: child.pid!,
    dir,
    // SIGQUIT, not SIGKILL: as abrupt for its clients, but it gives its shared memory back.
    kill: () => end(child, 'SIGQUIT'),
    stop() {
      stopped ??= (async () => {
        await end(child, 'SIGINT');
        process.off('exit', onExit);
        rmSync(dir, { recursive: true, force: true });
        watch.stdin?.end('stopped\n');
      })();
      return stopped;
    },
  };
}

/** Holds the read end of a pipe: when the starter dies without a word, it ends the server and wipes the folder. */
function watchdog(pid: number, dir: string): ChildProcess {
  const script = [
    'if read -r _; then exit 0; fi',
    'kill -QUIT "$1" 2>/dev/null',
    'n=0; while kill -0 "$1" 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done',
    'kill -KILL "$1" 2>/dev/null',
    'rm -rf "$2"',
  ].join('\n');
  const child = spawn('/bin/sh', ['-c', script, 'flyball-watchdog', String(pid), dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  child.on('error', () => {});
  child.stdin?.on('error', () => {});
  child.unref();
  (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return child;
}

/** Resolves when the server says so in its pid file (line 8); needs no client. */
async function ready(pidFile: string, child: ChildProcess): Promise<'ready' | 'late'> {
  const until = performance.now() + 30_000;
  while (performance.now() < until && child.exitCode === null && child.signalCode === null) {
    if (existsSync(pidFile)) {
      const lines = readFileSync(pidFile, 'utf8').split('\n');
      if (lines[7]?.trim() === 'ready' && Number(lines[0]) === child.pid) return 'ready';
    }
    await new Promise((ok) => setTimeout(ok, 20));
  }
  return 'late';
}

async function end(child: ChildProcess, first: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = exitOf(child);
  child.kill(first);
  const harder = [
    setTimeout(() => child.kill('SIGQUIT'), 8000),
    setTimeout(() => child.kill('SIGKILL'), 12_000),
  ];
  await gone;
  for (const timer of harder) clearTimeout(timer);
}

function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((ok) => {
    child.once('exit', (code, signal) => ok(code ?? signal ?? 'unknown'));
    child.once('error', (error) => ok(error.message));
  });
}

/** The end of what it said on stderr, for the error message; reading it also keeps the pipe from filling up. */
function collect(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    text = (text + part).slice(-2000);
  });
  // The pipe must not keep the starter alive: the handle is what does.
  return () => text.trim();
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((ok, no) => server.once('error', no).listen(0, '127.0.0.1', ok));
  const { port } = server.address() as { port: number };
  await new Promise((ok) => server.close(ok));
  return port;
}

function fault(what: string, said: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_DEMO_POSTGRES',
    `PostgreSQL did not start: ${what}.${said ? ` It said: ${said}` : ''}`,
  );
}
