/** Another Redis server takes over, behind Sentinel and in a Cluster: it is noticed, said, guarded, and what was lost is put back. */
import { afterEach, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { RedisClient } from '../../src/redis/run-script.js';
import {
  type DaemonSetup,
  daemonSetup,
  policyText,
  type TestDaemon,
  until,
} from '../support/daemon.js';
import { personWrites } from '../support/person-write.js';
import { startCluster, type TestCluster } from '../support/redis-cluster.js';
import { startSentinel, type TestSentinel } from '../support/redis-sentinel.js';

// Elections take seconds.
vi.setConfig({ testTimeout: 300_000 });
const address = { name: 'checkout' };
const keys = limiterKeys(address);
const QUICK = "onFailover: { factor: 0.4, for: '1500ms' }, reload: 'auto',";
const POLICY = policyText(
  QUICK,
  "name: 'checkout', rate: 100, capacity: 50, inFlightMax: 20, coldStart: 0.5",
);
let sentinel: TestSentinel | null = null;
let cluster: TestCluster | null = null;
let setup: DaemonSetup | null = null;

afterEach(async () => {
  await setup?.close();
  await sentinel?.stop();
  await cluster?.stop();
  sentinel = cluster = setup = null;
});

async function lead(url: string, redis: RedisClient): Promise<TestDaemon> {
  setup = daemonSetup(url);
  setup.write('checkout.ts', POLICY);
  // Long enough that a busy machine does not cost it the lease.
  const env = { FLYBALL_LEASE_MS: '3000', FLYBALL_TICK_MS: '200', FLYBALL_REDIS_WAIT_MS: '60000' };
  const daemon = setup.start(env);
  await until('it leads', async () => (await redis.exists(keys.lease)) === 1, 120_000);
  return daemon;
}

const entryOf = (redis: RedisClient, reason: string) =>
  until(
    `an entry ${reason}`,
    async () => (await readEntries(redis, address, { reason }).catch(() => null))?.entries[0],
    60_000,
  );

/** The daemon has told of this revision, so it has seen it. */
async function seenByDaemon(redis: RedisClient): Promise<void> {
  await until('the daemon sees it', async () => {
    const [text, { params }] = [await redis.get(keys.status), await readParams(redis, address)];
    return text !== null && JSON.parse(text).revision === params!.revision;
  });
}

test('Sentinel: a promoted replica that has all: a new epoch, a lower rate for its time, then back', async () => {
  sentinel = await startSentinel();
  const from = await sentinel.master();
  const daemon = await lead(sentinel.url, from.client());
  await seenByDaemon(from.client());
  const before = (await readParams(from.client(), address)).params!;
  // Replicated before it dies: nothing is lost.
  await from.client().call('WAIT', 1, 5000);
  await from.kill();
  const redis = (await sentinel.failedOver(from)).client();
  const { body } = await entryOf(redis, 'redis_failover');
  expect(body.before!.rate).toBe(100);
  expect(body.after!.rate).toBe(40);
  expect(body.epoch).toBeGreaterThan(before.epoch);
  expect(body.sentence).toContain('A new epoch begins. Rate 100/s → 40/s for 1.5 s');
  const over = await entryOf(redis, 'failover_over');
  expect(over.body.after!.rate).toBe(100);
  const metrics = await (await fetch(`${await daemon.http()}/metrics`)).text();
  expect(metrics).toContain(
    'flyball_actuate_redis_failovers_total{limiter="checkout",writes="kept"} 1',
  );
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('Sentinel: a replica that lags: the pin that it never got is in force again, and the entry says so', async () => {
  sentinel = await startSentinel();
  const from = await sentinel.master();
  const old = from.client();
  await lead(sentinel.url, old);
  await seenByDaemon(old);
  await old.call('WAIT', 1, 5000);
  await sentinel.cutReplication();
  const until_ = Date.now() + 3_600_000;
  const pinned = { rate: 7, pinnedUntil: until_, heldBy: 'kim' };
  await personWrites(old, address, pinned, 'pin');
  const lost = (await readParams(old, address)).params!;
  await seenByDaemon(old);
  await from.kill();
  const redis = (await sentinel.failedOver(from)).client();
  const { body } = await entryOf(redis, 'writes_lost');
  expect(body.detail).toMatchObject({ lostEpoch: lost.epoch, lostRevision: lost.revision });
  expect(body.sentence).toMatch(/put back: rate, pinnedUntil, heldBy/);
  const now = (await readParams(redis, address)).params!;
  expect(now).toMatchObject({ rate: 7, pinnedUntil: until_, heldBy: 'kim' });
  expect(now.epoch).toBeGreaterThan(lost.epoch);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('Cluster: a failover of the node that holds the limiter is noticed; a slot that moves is none', async () => {
  cluster = await startCluster({ masters: 3, replicas: 3 });
  const redis = cluster.client({ redisOptions: { maxRetriesPerRequest: 3 } });
  const daemon = await lead(cluster.url, redis);
  await seenByDaemon(redis);
  const owner = await cluster.ownerOf(keys.params);
  const to = cluster.masters.find((master) => master.id !== owner.id)!;
  await cluster.moveSlot(keys.params, to);
  const runId = /^run_id:(\w+)/m.exec(await to.admin.info('server'))![1];
  await until('the daemon knows the new node', async () => {
    const text = await redis.get(keys.state).catch(() => null);
    return text !== null && JSON.parse(text).failover?.runId === runId;
  });
  expect((await readEntries(redis, address, { reason: 'redis_failover' })).entries).toEqual([]);

  await to.admin.call('WAIT', 1, 5000);
  await to.server.kill();
  const { body } = await entryOf(redis, 'redis_failover');
  expect(body.after!.rate).toBe(40);
  await entryOf(redis, 'failover_over');
  expect(daemon.lines.some((line) => line.event === 'fault')).toBe(false);
});
