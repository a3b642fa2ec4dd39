/** A canary in a Redis Cluster: its limiter lies on a slot of its own, or on that of the group, and all that concerns both still goes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { adopt } from '../../src/actuate/adopt.js';
import { tryFirst } from '../../src/actuate/canary.js';
import { createLease } from '../../src/actuate/lease.js';
import { manualClock } from '../../src/clock.js';
import { createCanaryWatch } from '../../src/daemon/canary-watch.js';
import { compileCanary } from '../../src/enforce/canary-reach.js';
import { createLimiter } from '../../src/index.js';
import { createLog } from '../../src/log.js';
import { parseCanary } from '../../src/redis/canary.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { createMetrics } from '../../src/report/metrics.js';
import { loadedPolicy } from '../support/policies.js';
import { startCluster, type TestCluster } from '../support/redis-cluster.js';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster({ masters: 3 });
});
afterAll(() => cluster.stop());

test.each([
  ['apart', undefined],
  ['in-group', 'payments'],
])('%s: begun, followed by services, judged and adopted', async (name, group) => {
  const redis = cluster.client();
  const address = { name, group };
  const other = { name: `${name}.canary`, group };
  const slots = await Promise.all(
    [address, other].map((one) => redis.cluster('KEYSLOT', limiterKeys(one).params)),
  );
  expect(slots[0] === slots[1]).toBe(group !== undefined);
  const limiter = { name, ...(group && { group }), capacity: 9_000 };
  const [from, to] = [100, 140].map((rate) =>
    loadedPolicy({ limiter: { ...limiter, rate }, bounds: undefined }),
  );
  const owner = 'd1:1:aa';
  const by = {
    actor: { kind: 'autopilot' as const, name: owner },
    leaseMs: 60_000,
    nowMs: Date.now(),
  };
  expect(await adopt(redis, from!, by)).toMatchObject({ status: 'created' });
  const wish = { percent: 50, forMs: 60_000 };
  expect(await tryFirst(redis, to!, wish, by)).toMatchObject({ status: 'canary' });
  const { params } = await readParams(redis, address);
  const begun = parseCanary(params!.canary)!;

  const api = createLimiter({
    name,
    ...(group && { group }),
    redis,
    deadlineMs: 5_000,
    onWarning: () => {},
  });
  await api.ready();
  const reach = compileCanary(params!.canary)!;
  const users = Array.from({ length: 200 }, (_, i) => `user:${i}`);
  const taken = await Promise.all(users.map((user) => api.take(user)));
  expect(taken.every(({ source }) => source === 'redis')).toBe(true);
  const revisions = taken.map(({ epoch }) => epoch === begun.epoch);
  expect(revisions).toEqual(users.map((user) => reach.reaches(user)));
  await api.close();

  const second = Math.ceil(begun.since / 1000) + 5;
  for (const one of [address, other]) {
    await redis.hset(limiterKeys(one).telemetry(second), { off: 90, adm: 90, ok: 90, n: 1 });
  }
  const lease = createLease({ redis, address, owner, leaseMs: 60_000 });
  await lease.acquire();
  const log = createLog({ level: 'silent' });
  const clock = manualClock();
  const deps = { redis, address, owner, lease, leaseMs: 60_000, clock, log };
  const fileState = () => ({ file: 'pending' as const, faults: [] });
  const watch = createCanaryWatch({ ...deps, fileState, metrics: createMetrics('d1') });
  expect(await watch.act(params!, (begun.since + 61_000) * 1000)).toBe(true);
  const after = await readParams(redis, address);
  expect(after.params).toMatchObject({ policyHash: to!.hash, rate: 140, canary: '' });
  expect(await redis.hexists(fleetKeys().limiters, other.name)).toBe(0);
});
