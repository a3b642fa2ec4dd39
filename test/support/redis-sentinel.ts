/** A master, its replica and three Sentinels as real processes, quick to fail over, ended by their pids. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort, startRedis, type TestRedis } from './redis-server.js';
import { until } from './sdk-params.js';

export const MASTER_NAME = 'limits';
const SENTINELS = 3;

export interface TestSentinel {
  /** The two servers; which is the master changes. */
  readonly servers: readonly [TestRedis, TestRedis];
  readonly url: string;
  /** The server that the first Sentinel names now. */
  master(): Promise<TestRedis>;
  /** Writes to the master no longer reach the replica, which stays fit to take over. */
  cutReplication(): Promise<void>;
  /** Waits until all Sentinels name another master than this, and it takes writes. */
  failedOver(from: TestRedis): Promise<TestRedis>;
  stop(): Promise<void>;
  /** Ends the Sentinels at once, without waiting: for who ends himself. */
  endNow(): void;
}

export async function startSentinel(
  options: { downAfterMs?: number; password?: string } = {},
): Promise<TestSentinel> {
  // Below a second Sentinel asks no more often than it gives up: on a busy machine it calls servers down that are up.
  const { downAfterMs = 1000, password } = options;
  const quick = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];
  const first = await startRedis(quick);
  const second = await startRedis([...quick, '--replicaof', '127.0.0.1', String(first.port)]);
  const admin = first.client();
  await until('the replica follows', async () =>
    /connected_slaves:1[\s\S]*state=online/.test(await admin.info('replication')),
  );
  const dir = mkdtempSync(join(tmpdir(), 'flyball-sentinel-'));
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, async () => ({
      port: await freePort(),
      id: randomBytes(20).toString('hex'),
    })),
  );
  const children = sentinels.map(({ port, id }, i): ChildProcess => {
    const others = sentinels.filter((other) => other.port !== port);
    const file = join(dir, `sentinel-${i}.conf`);
    writeFileSync(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${dir}`,
        ...(password ? [`requirepass "${password}"`, `sentinel sentinel-pass "${password}"`] : []),
        `sentinel myid ${id}`,
        `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${first.port} 2`,
        `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfterMs}`,
        `sentinel failover-timeout ${MASTER_NAME} 3000`,
        `sentinel known-replica ${MASTER_NAME} 127.0.0.1 ${second.port}`,
        // Told beforehand: to find each other takes seconds.
        ...others.map((o) => `sentinel known-sentinel ${MASTER_NAME} 127.0.0.1 ${o.port} ${o.id}`),
      ].join('\n'),
    );
    return spawn(process.env.FLYBALL_REDIS_SERVER ?? 'redis-server', [file, '--sentinel'], {
      stdio: 'ignore',
    });
  });
  const askers = sentinels.map(({ port }) => {
    const asker = new Redis({
      port,
      password: password ?? '',
      maxRetriesPerRequest: null,
      retryStrategy: () => 50,
    });
    return asker.on('error', () => {});
  });
  const servers = [first, second] as const;
  await until('the Sentinels agree', async () => {
    const ready = askers.map(async (asker) => {
      const answer = await asker.call('SENTINEL', 'CKQUORUM', MASTER_NAME).catch(() => '');
      const replicas = (await asker.call('SENTINEL', 'REPLICAS', MASTER_NAME)) as unknown[];
      return String(answer).startsWith('OK 3') && replicas.length === 1;
    });
    return (await Promise.all(ready)).every(Boolean);
  });
  async function named(asker: Redis): Promise<TestRedis> {
    const address = await asker.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME);
    return servers.find((server) => server.port === Number((address as string[])[1]))!;
  }
  const master = () => named(askers[0]!);
  return {
    servers,
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`,
    master,
    async cutReplication() {
      const client = (await master()).client();
      await client.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
      await client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    },
    async failedOver(from) {
      await until('all Sentinels name another master', async () => {
        const all = await Promise.all(askers.map(named));
        return all.every((server) => server !== from);
      });
      const now = await master();
      const client = now.client();
      await until('it takes writes', async () =>
        (await client.info('replication')).includes('role:master'),
      );
      return now;
    },
    endNow() {
      for (const child of children) child.kill('SIGKILL');
    },
    async stop() {
      for (const asker of askers) asker.disconnect();
      await Promise.all(
        children.map((child) => {
          const gone = new Promise((ok) => child.once('exit', ok));
          child.kill('SIGKILL');
          return child.exitCode === null && child.signalCode === null ? gone : undefined;
        }),
      );
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
