/** A Cluster of one node: the SDK on it, and what a client of a Cluster that is away still sends. */
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { createCluster } from '../../src/redis/cluster.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';

let server: TestRedis;

beforeAll(async () => {
  server = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
  const admin = server.client({ enableReadyCheck: false });
  await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until('the cluster is up', async () =>
    String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
});
afterAll(() => server.stop());

test('C31: through a Cluster client takes, shares and telemetry stay on one slot', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: server.port }]);
  const admin = server.client();
  const warned: string[] = [];
  try {
    for (const group of [undefined, 'payments']) {
      const name = group ? 'grouped' : 'single';
      const address = { name, group };
      await setParams(admin, address, { subjectRate: 5, subjectCapacity: 5, inFlightMax: 500 });
      const api = createLimiter({
        name,
        ...(group ? { group } : {}),
        redis: cluster,
        deadlineMs: 5_000,
        completions: true,
        onWarning: ({ code }) => warned.push(code),
      });
      const decisions = await Promise.all(
        Array.from({ length: 100 }, (_, i) => api.take(`user:${i}`)),
      );
      expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
      for (const decision of decisions) decision.done();
      expect(api.stats()).toMatchObject({ redisErrors: 0, share: 500 });
      await api.close();
      expect(api.stats().telemetryDropped).toBe(0);
    }
    // Its default sends again within these five seconds what may have been charged.
    expect(warned).toContain('FLYBALL_W_CLIENT_RESENDS');
  } finally {
    cluster.disconnect();
  }
});

test('what waited for a Cluster that is away is failed in time, and not sent when it is back', async () => {
  const cluster = createCluster({
    nodes: [{ host: '127.0.0.1', port: server.port }],
    node: {},
    retryMs: () => 50,
    commandTimeoutMs: 400,
  });
  cluster.on('error', () => {});
  try {
    await until('it is ready', () => cluster.status === 'ready');
    expect(await cluster.set('before', '1')).toBe('OK');
    server.pause();
    const underWay = cluster.incr('late').catch((error: Error) => error.message);
    expect(await underWay).toMatch(/timed out/);
    await server.kill();
    await until('it is away', () => cluster.status !== 'ready');
    const waiting = cluster.incr('late').catch((error: Error) => error.message);
    expect(await waiting).toMatch(/timed out|closed|isn't ready/i);
    await server.restart();
    await until(
      'it is back',
      async () => (await cluster.set('after', '1').catch(() => '')) === 'OK',
    );
    expect(await cluster.get('late')).toBeNull();
  } finally {
    cluster.disconnect();
  }
});
