/** A private redis-server for tests: real process, own port and folder, ended by its pid. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { reviving } from './reviving.js';

export interface TestRedis {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  readonly dir: string;
  client(options?: RedisOptions): Redis;
  /** SIGSTOP / SIGCONT: the server is there but silent. */
  pause(): void;
  resume(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** Start again on the same port and folder; `more` leads over the first arguments. */
  restart(more?: string[]): Promise<void>;
  stop(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  const { port } = server.address() as { port: number };
  await new Promise((ok) => server.close(ok));
  return port;
}

/** Somebody else may take the port before the server does. */
const TRIES = 3;

const running = new Set<ChildProcess>();
// Whoever ends this process leaves no server behind.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export async function startRedis(args: string[] = []): Promise<TestRedis> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), args);
    } catch (error) {
      if (attempt === TRIES) throw error;
    }
  }
}

async function startOn(port: number, args: string[]): Promise<TestRedis> {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-test-'));
  // By itself it would take the port 10,000 higher, which may not exist.
  const bus =
    args.includes('--cluster-enabled') && !args.includes('--cluster-port')
      ? ['--cluster-port', String(await freePort())]
      : [];
  const clients = new Set<Redis>();
  let child: ChildProcess;
  let paused = false;

  async function launch(more: string[] = []) {
    const started = spawn(
      process.env.FLYBALL_REDIS_SERVER ?? 'redis-server',
      [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        dir,
        '--save',
        '',
        '--appendonly',
        'no',
        ...bus,
        ...args,
        ...more,
      ],
      { stdio: 'ignore' },
    );
    child = started;
    paused = false;
    running.add(started);
    started.once('exit', () => running.delete(started));
    const failed = new Promise<never>((_ok, no) => {
      child.once('error', no);
      child.once('exit', (code) => no(new Error(`redis-server exited with ${code}`)));
    });
    failed.catch(() => {});
    await Promise.race([failed, ready()]);
  }

  async function ready() {
    const probe = new Redis({
      port,
      lazyConnect: true,
      retryStrategy: () => 20,
      maxRetriesPerRequest: null,
    });
    probe.on('error', () => {});
    await probe.connect().catch(() => {});
    await probe.ping();
    probe.disconnect();
  }

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;

  async function end(signal: NodeJS.Signals) {
    if (hasEnded()) return;
    const gone = new Promise((ok) => child.once('exit', ok));
    // A stopped process ends by SIGKILL as it is; woken first, it would still answer what it was asked.
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    child.kill(signal);
    await gone;
  }

  function resume() {
    paused = false;
    child.kill('SIGCONT');
  }

  async function revive() {
    if (hasEnded()) await launch();
    else if (paused) resume();
  }

  try {
    await launch();
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  reviving.add(revive);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    dir,
    get pid() {
      return child.pid!;
    },
    client(options = {}) {
      const redis = new Redis({ port, ...options } as RedisOptions);
      redis.on('error', () => {});
      clients.add(redis);
      return redis;
    },
    pause() {
      paused = true;
      child.kill('SIGSTOP');
    },
    resume,
    kill: () => end('SIGKILL'),
    restart: launch,
    async stop() {
      reviving.delete(revive);
      for (const client of clients) client.disconnect();
      await end('SIGTERM');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
