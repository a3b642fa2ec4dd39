/** A Redis that answers, but with an error: full, loading, busy, demoted, without its master, evicting. */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { watchEvictions } from '../../src/daemon/evictions.js';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type TakeDecision,
} from '../../src/index.js';
import type { Logger } from '../../src/log.js';
import { awaitRedis, connect } from '../../src/redis/connect.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli } from '../support/cli-run.js';
import { decisionTimes } from '../support/decision-times.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';
import { startProxy } from '../support/tcp-proxy.js';
import { tempFolder } from '../support/temp-folder.js';

const DEADLINE_MS = 300;
/** At a millisecond each they load for longer than a test takes, which ends that delay. */
const LOADED_KEYS = 20_000;

let server: TestRedis;
let admin: Redis;
const open: Limiter[] = [];

beforeEach(async () => {
  server = await startRedis([
    '--key-load-delay',
    '1000',
    '--loading-process-events-interval-bytes',
    '1024',
    '--repl-diskless-sync-delay',
    '0',
  ]);
  admin = server.client({ maxRetriesPerRequest: null, enableReadyCheck: false });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((limiter) => limiter.close()));
  await server.stop();
});

function limiter(name: string, options: Partial<LimiterOptions> = {}): Limiter {
  const made = createLimiter({
    name,
    url: server.url,
    deadlineMs: DEADLINE_MS,
    denyCache: false,
    onWarning: () => {},
    ...options,
  });
  open.push(made);
  return made;
}

/** Takes, and that none of them went on beyond its deadline. */
async function takes(api: Limiter, n: number): Promise<TakeDecision[]> {
  const decisions: TakeDecision[] = [];
  const times = decisionTimes();
  for (let i = 0; i < n; i++) decisions.push(await times.of(() => api.take()));
  times.expectWithin(DEADLINE_MS);
  return decisions;
}

/** `redis true`, `local false` … without repeats. */
const answersOf = (decisions: TakeDecision[]) =>
  [...new Set(decisions.map(({ source, allowed }) => `${source} ${allowed}`))].sort();

async function decides(api: Limiter): Promise<number> {
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  return (await api.peek()).remaining;
}

describe('memory full', () => {
  test('C43: OOM: what would write is decided by onRedisError, a denial by Redis; nothing is half charged', async () => {
    const full = limiter('full');
    const closed = limiter('full', { onRedisError: 'closed' });
    const drained = limiter('drained');
    const perSubject = limiter('subjects');
    await setParams(admin, full, { rate: 0.001, capacity: 100 });
    await setParams(admin, drained, { rate: 0.001, capacity: 2 });
    await setParams(admin, perSubject, {
      rate: 0.001,
      capacity: 100,
      subjectRate: 0.001,
      subjectCapacity: 5,
    });
    for (const api of [full, closed, drained, perSubject]) await decides(api);
    await until('it is drained', async () => {
      const { source, allowed } = await drained.take();
      return source === 'redis' && !allowed;
    });
    await until('it is charged', async () => (await perSubject.take('user:1')).source === 'redis');
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    await admin.config('SET', 'maxmemory', '1');

    expect(answersOf(await takes(full, 5))).toEqual(['local true']);
    expect(answersOf(await takes(closed, 5))).toEqual(['closed false']);
    expect(
      answersOf(await Promise.all([1, 2, 3].map((i) => perSubject.take(`user:${i}`)))),
    ).toEqual(['local true']);
    // A denial writes nothing, so a full Redis still knows it.
    await until('the denied path', async () => (await drained.take()).source === 'redis');
    expect((await drained.take()).reason).toBe('rate');

    await admin.config('SET', 'maxmemory', '0');
    expect(await decides(full)).toBe(100);
    expect((await perSubject.peek('user:1')).remaining).toBe(4);
    expect(await decides(perSubject)).toBe(99);
    await until('it takes from Redis again', async () => (await full.take()).source === 'redis');
  });

  test('C41: a policy that evicts is told by the daemon and by doctor, and so is each eviction', async () => {
    await admin.config('SET', 'maxmemory-policy', 'volatile-lru');
    const lines: { event: string }[] = [];
    const log = { warn: (line: { event: string }) => lines.push(line) } as unknown as Logger;
    const watch = await watchEvictions(admin, log, () => {}, 20);
    try {
      expect(lines).toMatchObject([{ event: 'redis_eviction', policy: 'volatile-lru' }]);
      const api = limiter('api');
      await setParams(admin, api, { rate: 0.001, capacity: 5 });
      await takes(api, 5);
      await admin.config('SET', 'maxmemory', '3mb');
      const filler = 'x'.repeat(1000);
      for (let i = 0; i < 3; i++) {
        const pipeline = admin.pipeline();
        for (let k = 0; k < 1000; k++) pipeline.set(`other:${i}:${k}`, filler, 'EX', 1000);
        await pipeline.exec();
      }
      await until('told', () => lines.some(({ event }) => event === 'redis_evicted'));
      // Params have no TTL: what was evicted is at most the bucket, which then counts as full.
      expect(await admin.exists(limiterKeys({ name: 'api' }).params)).toBe(1);
      expect((await api.take()).source).toBe('redis');
      const { stdout } = await cli(['doctor', tempFolder('none')], {
        env: { FLYBALL_REDIS_URL: server.url },
      });
      expect(stdout).toMatch(/warn +eviction +maxmemory-policy volatile-lru can evict buckets/);
      expect(stdout).toMatch(/warn +evicted +\d+ keys were evicted/);
    } finally {
      watch.close();
    }
  });
});

test('C43: LOADING: decided here until all is loaded, then Redis again with what it had', async () => {
  const api = limiter('api');
  await setParams(admin, api, { rate: 0.001, capacity: 50 });
  await decides(api);
  await takes(api, 7);
  const pipeline = admin.pipeline();
  for (let i = 0; i < LOADED_KEYS; i++) pipeline.set(`other:${i}`, 'x');
  await pipeline.exec();
  await admin.save();
  await server.kill();
  const loaded = server.restart();
  await until('it is loading', async () => {
    const said = await admin.get('other:1').catch((error: Error) => error.message);
    return String(said).startsWith('LOADING');
  });
  const during = await takes(api, 5);
  await admin.config('SET', 'key-load-delay', '0');
  await loaded;
  expect(answersOf(during)).toEqual(['local true']);
  expect(await decides(api)).toBe(43);
});

test('C43: BUSY with another client’s script: decided here, nothing charged, Redis again once it is killed', async () => {
  await admin.config('SET', 'busy-reply-threshold', '20');
  const api = limiter('api');
  const closed = limiter('api', { onRedisError: 'closed' });
  await setParams(admin, api, { rate: 0.001, capacity: 50 });
  for (const each of [api, closed]) await decides(each);
  const running = admin.eval('while true do end', 0).catch((error: Error) => error.message);
  const other = server.client({ enableReadyCheck: false });
  await until('it is busy', async () => {
    const said = await other.get('x').catch((error: Error) => error.message);
    return String(said).startsWith('BUSY');
  });
  const [here, denied] = await Promise.all([takes(api, 5), takes(closed, 5)]);
  expect([answersOf(here), answersOf(denied)]).toEqual([['local true'], ['closed false']]);
  await other.call('SCRIPT', 'KILL');
  expect(await running).toMatch(/killed/);
  expect(await decides(api)).toBe(50);
  await until('it takes from Redis', async () => (await api.take()).source === 'redis');
});

test('C38: pinned to a demoted master: READONLY, a new connection, its successor decides', async () => {
  const heir = await startRedis(['--repl-diskless-sync-delay', '0']);
  const proxy = await startProxy(server.port);
  try {
    const api = limiter('api', { url: `redis://127.0.0.1:${proxy.port}` });
    const successor = heir.client();
    await setParams(admin, api, { rate: 0.001, capacity: 50 });
    await setParams(successor, api, { rate: 0.001, capacity: 30 });
    await decides(api);
    // Demoted without a word to its clients, as by hand or behind a virtual address.
    await admin.replicaof('127.0.0.1', heir.port);
    await until('it is a replica', async () =>
      (await admin.info('replication')).includes('role:slave'),
    );
    const first = await api.take();
    expect(first).toMatchObject({ source: 'local', allowed: true });
    proxy.targetPort = heir.port;
    await until('its successor decides', async () => (await api.take()).source === 'redis', 10_000);
    expect((await api.peek()).remaining).toBeLessThan(30);
    // What the successor has written reaches who follows it a moment later.
    const { bucket } = limiterKeys({ name: 'api' });
    await until('both hold the same bucket', async () => {
      const [here, there] = [await admin.get(bucket), await successor.get(bucket)];
      return there !== null && here === there;
    });
  } finally {
    await Promise.all(open.splice(0).map((each) => each.close()));
    await proxy.close();
    await heir.stop();
  }
});

test('C38: a proxy that says ERR READONLY: the connection is made anew', async () => {
  const redis = connect({ url: server.url, name: 'sdk', hotPath: true });
  redis.on('error', () => {});
  await awaitRedis(redis, { url: server.url, deadlineMs: 20_000 });
  const before = await redis.client('ID');
  await expect(redis.eval(`return redis.error_reply('ERR READONLY demoted')`, 0)).rejects.toThrow(
    'READONLY',
  );
  await until(
    'another connection',
    async () => (await redis.client('ID').catch(() => before)) !== before,
    10_000,
  );
  redis.disconnect();
});

test('C43: MASTERDOWN: a replica without its master decides nothing, and heals once it is master', async () => {
  const replica = await startRedis(['--repl-diskless-sync-delay', '0']);
  try {
    const own = replica.client({ enableReadyCheck: false });
    await own.config('SET', 'replica-serve-stale-data', 'no');
    await own.replicaof('127.0.0.1', server.port);
    const api = limiter('api', { url: replica.url, rate: 0.001, capacity: 20 });
    await setParams(admin, api, { rate: 0.001, capacity: 50 });
    expect(await admin.call('WAIT', 1, 20_000)).toBe(1);
    await server.kill();
    await until(
      'its master is down',
      async () => (await own.get('x').catch(() => 'MASTERDOWN')) === 'MASTERDOWN',
    );
    const during = await takes(api, 5);
    expect(during.every(({ source }) => source === 'local')).toBe(true);
    await own.replicaof('NO', 'ONE');
    expect(await decides(api)).toBe(50);
    await until('it takes', async () => (await api.take()).source === 'redis');
  } finally {
    await Promise.all(open.splice(0).map((each) => each.close()));
    await replica.stop();
  }
});
