/** A Redis that throws keys away: each limiter's audit log says so once an episode and an hour, whoever leads; with the alert. */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { adopt } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { createLease } from '../../src/actuate/lease.js';
import { systemClock } from '../../src/clock.js';
import { createEvictionNote } from '../../src/daemon/eviction-note.js';
import { type Eviction, watchEvictions } from '../../src/daemon/evictions.js';
import { createWriter } from '../../src/daemon/writer.js';
import { createLog } from '../../src/log.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { policySchema } from '../../src/policy/schema.js';
import { createMetrics } from '../../src/report/metrics.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { until } from '../support/sdk-params.js';

const address = { name: 'checkout' };
const leaseMs = 60_000;
const HOUR_MS = 3_600_000;
const log = createLog({ level: 'silent' });

let server: TestRedis;
let redis: Redis;

beforeEach(async () => {
  server = await startRedis();
  redis = server.client();
});
afterEach(() => server.stop());

/** Memory is full of keys that nobody asks for: those go, not the limiter's. */
async function evictSome(): Promise<void> {
  await redis.config('SET', 'maxmemory', '0');
  const pipeline = redis.pipeline();
  for (let k = 0; k < 1000; k++) pipeline.set(`other:${k}`, 'x'.repeat(1000), 'EX', 1000);
  await pipeline.exec();
  const used = /used_memory:(\d+)/.exec(await redis.info('memory'))![1];
  await redis.config('SET', 'maxmemory', String(Number(used) - 100_000));
  await redis.set('one', 'more', 'EX', 1000);
  await redis.config('SET', 'maxmemory', '0');
}

async function adopted(): Promise<void> {
  const policy = policySchema.parse({ limiter: { ...address, rate: 100, capacity: 50 } });
  const file = { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
  const actor = { kind: 'autopilot' as const, name: 'd' };
  await adopt(redis, file, { actor, leaseMs, nowMs: Date.now() });
}

/** A daemon's hand on the limiter, with the eviction that it is told of. */
function daemon(owner: string, seen: { eviction: Eviction | null }) {
  const lease = createLease({ redis, address, owner, leaseMs });
  const metrics = createMetrics('unit');
  const writer = createWriter({ redis, address, lease, leaseMs, clock: systemClock, log, metrics });
  const evictions = { of: () => seen.eviction };
  const note = createEvictionNote({ redis, address, evictions, writer });
  return async (nowMs: number) => note.act((await readParams(redis, address)).params!, nowMs);
}

async function notes() {
  const { entries } = await readEntries(redis, address, { reason: 'redis_evicted' });
  return entries;
}

test('C41: how many keys went and by which policy, seen as one growth, until the server is another', async () => {
  // Volatile: what a loaded machine makes it evict is never a limiter's own.
  await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
  const told: number[] = [];
  const watch = await watchEvictions(redis, log, (keys) => told.push(keys), 20);
  try {
    expect(watch.of(address)).toBeNull();
    await evictSome();
    await until('the first', () => watch.of(address) !== null);
    await evictSome();
    const evicted = Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))![1]);
    await until('the second', () => watch.of(address)?.now === evicted);
    expect(watch.of(address)).toMatchObject({ before: 0, policy: 'volatile-lru' });
    expect(watch.of(address)!.address).toContain(`:${server.port}`);
    expect(told.reduce((sum, keys) => sum + keys, 0)).toBe(evicted);
    await server.kill();
    await server.restart();
    await until('another server has thrown nothing away', () => watch.of(address) === null);
  } finally {
    watch.close();
  }
});

test('C41: the audit log says it once an episode and an hour, with numbers and the mend, whoever leads', async () => {
  await adopted();
  const base = { address: '10.0.0.1:6379', before: 10, now: 1510, policy: 'allkeys-lru' };
  const seen: { eviction: Eviction | null } = { eviction: null };
  const [first, second] = [daemon('d1', seen), daemon('d2', seen)];
  const nowMs = Date.now();
  await first(nowMs);
  expect(await notes()).toEqual([]);

  seen.eviction = { episode: 1, ...base };
  for (let turn = 0; turn < 3; turn++) await first(nowMs + turn);
  // It goes on, another daemon takes over, and it ends and begins again: all within the hour.
  seen.eviction = { episode: 1, ...base, now: 2000 };
  await first(nowMs + 10);
  await second(nowMs + 20);
  seen.eviction = { episode: 2, ...base, before: 2000, now: 2100 };
  await first(nowMs + HOUR_MS / 2);
  const [note, ...more] = await notes();
  expect(more).toEqual([]);
  expect(note).toMatchObject({ kind: 'note', body: { actor: { kind: 'autopilot', name: 'd1' } } });
  expect(note!.body.detail).toEqual({
    ...{ address: '10.0.0.1:6379', maxmemoryPolicy: 'allkeys-lru' },
    ...{ evictedBefore: 10, evictedNow: 1510 },
  });
  expect(note!.body.sentence).toContain('evicted keys 10 → 1510, maxmemory-policy allkeys-lru');
  expect(note!.body.sentence).toContain('Set maxmemory-policy to noeviction or volatile-ttl.');

  const laterMs = nowMs + HOUR_MS + 60_000;
  await first(laterMs);
  expect(await notes()).toHaveLength(1);
  seen.eviction = { episode: 3, ...base, before: 2100, now: 2101, policy: 'volatile-ttl' };
  await first(laterMs);
  const [newest] = await notes();
  expect(await notes()).toHaveLength(2);
  expect(newest!.body.sentence).toContain('Give it more memory');
  expect(newest!.body.sentence).not.toContain('Set maxmemory-policy');
});
