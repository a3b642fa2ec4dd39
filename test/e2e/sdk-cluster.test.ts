import { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
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
        onWarning: () => {},
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
  } finally {
    cluster.disconnect();
  }
});
