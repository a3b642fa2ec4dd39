/** A private redis-server for a bench: own port and folder, nothing kept, ended with the bench. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** @param {Record<string, string>} more settings */
export async function startRedis(more = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'flyball-bench-'));
  const port = await freePort();
  const settings = { port, bind: '127.0.0.1', dir, save: '', appendonly: 'no', ...more };
  const child = spawn(
    process.env.FLYBALL_REDIS_SERVER ?? 'redis-server',
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    { stdio: 'ignore' },
  );
  const ended = new Promise((ok) => child.once('exit', ok));
  const started = new Promise((_ok, no) => child.once('error', no));
  const clients = [];
  const connect = (options = {}) => {
    const client = new Redis({
      port,
      maxRetriesPerRequest: null,
      retryStrategy: () => 20,
      autoResendUnfulfilledCommands: false,
      ...options,
    });
    client.on('error', () => {});
    clients.push(client);
    return client;
  };
  const control = connect();
  await Promise.race([control.ping(), started]);
  return {
    port,
    control,
    connect,
    /** CPU seconds that the server has used. */
    async cpuSeconds() {
      const info = await control.info('cpu');
      const field = (name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)[1]);
      return field('used_cpu_user') + field('used_cpu_sys');
    },
    async stop() {
      for (const client of clients) client.disconnect();
      child.kill('SIGTERM');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export async function freePort() {
  const server = createServer();
  await new Promise((ok) => server.listen(0, '127.0.0.1', ok));
  const { port } = server.address();
  await new Promise((ok) => server.close(ok));
  return port;
}
