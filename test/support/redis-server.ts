/** A private redis-server for tests: real process, own port and folder, ended by its pid. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';

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

export async function startRedis(args: string[] = []): Promise<TestRedis> {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-test-'));
  const port = await freePort();
  // By itself it would take the port 10,000 higher, which may not exist.
  const bus =
    args.includes('--cluster-enabled') && !args.includes('--cluster-port')
      ? ['--cluster-port', String(await freePort())]
      : [];
  const clients = new Set<Redis>();
  let child: ChildProcess;

  async function launch(more: string[] = []) {
    child = spawn(
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

  async function end(signal: NodeJS.Signals) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((ok) => child.once('exit', ok));
    // A stopped process ends by SIGKILL as it is; woken first, it would still answer what it was asked.
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    child.kill(signal);
    await gone;
  }

  await launch();
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
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill: () => end('SIGKILL'),
    restart: launch,
    async stop() {
      for (const client of clients) client.disconnect();
      await end('SIGTERM');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
