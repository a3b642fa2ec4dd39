/** A Redis that is stopped, killed, flushed or slow: each take is decided within its deadline, and none charged late. */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimiterWarning,
  type TakeDecision,
} from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { decisionTimes } from '../support/decision-times.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';
import { startProxy } from '../support/tcp-proxy.js';

const DEADLINE_MS = 300;

let server: TestRedis;
let admin: Redis;
const open: Limiter[] = [];
const warnings: LimiterWarning[] = [];

beforeEach(async () => {
  server = await startRedis();
  admin = server.client({ maxRetriesPerRequest: null });
  warnings.length = 0;
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((limiter) => limiter.close()));
  await server.stop();
});

function limiter(options: Partial<LimiterOptions> = {}): Limiter {
  const made = createLimiter({
    name: 'api',
    url: server.url,
    deadlineMs: DEADLINE_MS,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  open.push(made);
  return made;
}

async function ready(api: Limiter): Promise<void> {
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
}

/** Tokens taken from the total's bucket, by what Redis itself says. */
async function charged(capacity: number): Promise<number> {
  const looker = limiter({ deadlineMs: 5_000 });
  const { remaining } = await looker.peek();
  return capacity - remaining;
}

test('C35: Redis is stopped, 1000 requests: each is decided, nothing is charged later', async () => {
  const api = limiter();
  await setParams(admin, api, { rate: 0.001, capacity: 10_000 });
  await ready(api);
  await api.take();
  const times = decisionTimes();
  const take = () => times.of(() => api.take());
  server.pause();
  const decisions = await Promise.all(Array.from({ length: 1000 }, take));
  expect(decisions.every(({ source }) => source === 'local')).toBe(true);
  const calls = api.stats().calls;
  // In an outage that is known, calls do not go to Redis at all.
  await until('the outage is known', async () => {
    await take();
    return !api.stats().redisUp;
  });
  const known = api.stats().calls;
  expect(known - calls).toBeLessThan(50);
  const more = await Promise.all(Array.from({ length: 1000 }, take));
  times.expectWithin(DEADLINE_MS);
  expect(more.every(({ source }) => source === 'local')).toBe(true);
  server.resume();
  await until('Redis decides again', async () => (await api.peek()).source === 'redis');
  // What lay in the sockets was answered as late.
  expect(await charged(10_000)).toBe(1);
  expect(api.stats()).toMatchObject({ outages: 1, overtaken: 0 });
  expect(warnings.map(({ code }) => code)).toContain('FLYBALL_W_REDIS_AWAY');
});

test('SIGSTOP: an answer that was asked for in time is not charged late', async () => {
  const api = limiter();
  await setParams(admin, api, { rate: 0.001, capacity: 100 });
  await ready(api);
  const times = decisionTimes();
  server.pause();
  const decision = await times.of(() => api.take());
  server.resume();
  times.expectWithin(DEADLINE_MS);
  expect(decision.source).toBe('local');
  expect(await charged(100)).toBe(0);
});

test('a killed Redis: local at once, and Redis again by itself after its return', async () => {
  const api = limiter();
  await setParams(admin, api, { rate: 0.001, capacity: 50 });
  await ready(api);
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  const calls = api.stats().calls;
  const times = decisionTimes();
  const away = await Promise.all(Array.from({ length: 100 }, () => times.of(() => api.take())));
  times.expectWithin(DEADLINE_MS);
  expect(away.every(({ source }) => source === 'local')).toBe(true);
  expect(away.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(51);
  expect(api.stats().calls).toBe(calls);

  await server.restart();
  await until('Redis answers again', () => api.stats().redisUp);
  // The new server is empty: the numbers last seen are passed along, and it says so.
  const back = await api.take();
  expect(back.source).toBe('unmanaged');
  expect(api.numbers()).toMatchObject({ rate: 0.001, capacity: 50 });
  await setParams(admin, api, { rate: 0.001, capacity: 30 });
  expect((await api.take()).source).toBe('redis');
});

test('killed and restarted with its append-only file: what was taken stays taken', async () => {
  await admin.config('SET', 'appendonly', 'yes', 'appendfsync', 'always');
  await until('the file is written', async () =>
    (await admin.info('persistence')).includes('aof_rewrite_in_progress:0'),
  );
  const api = limiter();
  await setParams(admin, api, { rate: 0.001, capacity: 50 });
  await ready(api);
  for (let i = 0; i < 20; i++) expect((await api.take()).source).toBe('redis');
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  for (let i = 0; i < 5; i++) expect((await api.take()).source).toBe('local');
  await server.restart(['--appendonly', 'yes']);
  await ready(api);
  // Neither the takes of before are lost, nor those of the outage charged afterwards.
  expect((await api.peek()).remaining).toBe(30);
  expect(api.numbers()).toMatchObject({ rate: 0.001, capacity: 50 });
});

test('hysteresis: one silence is no outage; an outage ends only after two good answers', async () => {
  const proxy = await startProxy(server.port);
  try {
    const api = limiter({ url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 100 });
    await setParams(admin, api, { rate: 0.001, capacity: 1000 });
    await ready(api);
    proxy.delayMs = 150;
    expect((await api.take()).source).toBe('local');
    proxy.delayMs = 0;
    expect(api.stats()).toMatchObject({ outages: 0, redisUp: true });
    await until('Redis decides', async () => (await api.take()).source === 'redis');

    proxy.delayMs = 150;
    await until('the outage is known', async () => {
      await api.take();
      return !api.stats().redisUp;
    });
    const before = api.stats().calls;
    proxy.delayMs = 0;
    await until('it is over', () => api.stats().redisUp);
    // Looks alone, of which one may have been under way: no request was a trial.
    expect(api.stats().calls - before).toBeGreaterThanOrEqual(1);
    expect(api.stats().outages).toBe(1);
    expect((await api.take()).source).toBe('redis');
  } finally {
    await Promise.all(open.splice(0).map((each) => each.close()));
    await proxy.close();
  }
});

test('a service that starts before its Redis decides by its own numbers, then heals', async () => {
  const { port } = server;
  await server.kill();
  const api = limiter({
    rate: 0.001,
    capacity: 5,
    url: `redis://127.0.0.1:${port}`,
    deadlineMs: 50,
  });
  const decisions: TakeDecision[] = [];
  for (let i = 0; i < 8; i++) decisions.push(await api.take());
  expect(decisions.map(({ allowed }) => allowed)).toEqual([
    ...Array.from({ length: 5 }, () => true),
    false,
    false,
    false,
  ]);
  expect(decisions.every(({ source }) => source === 'local')).toBe(true);
  await server.restart();
  await until('Redis decides', async () => (await api.take()).source === 'unmanaged');
});

test('onRedisError open admits, closed denies with redis_away; a take may choose', async () => {
  const api = limiter({ onRedisError: 'closed' });
  await setParams(admin, api, { rate: 0.001, capacity: 1 });
  await ready(api);
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  expect(await api.take()).toMatchObject({
    allowed: false,
    reason: 'redis_away',
    limit: 'redis',
    source: 'closed',
  });
  for (let i = 0; i < 3; i++) {
    const decision = await api.take(null, { onRedisError: 'open' });
    expect(decision).toMatchObject({ allowed: true, source: 'open' });
  }
});

test('C28: SCRIPT FLUSH with 200 takes in flight: 400 decisions, each charged once', async () => {
  const deadlineMs = 5_000;
  const api = limiter({ deadlineMs });
  await setParams(admin, api, { rate: 0.001, capacity: 1000 });
  await ready(api);
  const times = decisionTimes();
  const first = Array.from({ length: 200 }, () => times.of(() => api.take()));
  const flushed = admin.script('FLUSH');
  const second = Array.from({ length: 200 }, async () => {
    await new Promise((ok) => setImmediate(ok));
    return times.of(() => api.take());
  });
  const decisions = await Promise.all([...first, ...second]);
  times.expectWithin(deadlineMs);
  await flushed;
  expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
  expect((await api.peek()).remaining).toBe(600);
});

test('FLUSHALL: the numbers last seen hold until the params are back', async () => {
  const deadlineMs = 5_000;
  const api = limiter({ rate: 1000, capacity: 1000, deadlineMs });
  await setParams(admin, api, { rate: 0.001, capacity: 3 });
  await ready(api);
  await admin.flushall();
  const times = decisionTimes();
  const decisions = await Promise.all(Array.from({ length: 5 }, () => times.of(() => api.take())));
  times.expectWithin(deadlineMs);
  expect(decisions.filter(({ allowed }) => allowed).length).toBe(3);
  expect(decisions.every(({ source }) => source === 'unmanaged')).toBe(true);
  await setParams(admin, api, { rate: 0.001, capacity: 3 });
  const after = await api.take();
  expect(after).toMatchObject({ source: 'redis', revision: 1 });
});

test('FLUSHALL: a limiter of a group stays in it, though the registry was lost too', async () => {
  const place = { name: 'api', group: 'payments' };
  await admin.hset('flyball:limiters', 'api', 'payments');
  await setParams(admin, place, { rate: 0.001, capacity: 3 });
  const api = limiter({ deadlineMs: 5_000 });
  await ready(api);
  await admin.flushall();
  const flushes = () => admin.keys('flyball:api{payments}:t:*');
  await api.take();
  // Two beats later the registry has been asked again, and knows nothing.
  await until('a beat after the flush', async () => (await flushes()).length >= 2);
  await setParams(admin, place, { rate: 0.001, capacity: 3 });
  expect((await api.take()).source).toBe('redis');
  expect(await admin.keys('flyball:{api}*')).toEqual([]);
});

/** A clock that a test sets off against Redis's: as if Redis's own had been set the other way. */
function skewedClock() {
  const clock = {
    skewMs: 0,
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + clock.skewMs,
  };
  return clock;
}

test('C02: Redis’s clock set an hour forth or back: late once, learned, decided by Redis', async () => {
  const clock = skewedClock();
  const api = limiter({ clock, deadlineMs: 5_000 });
  await setParams(admin, api, { rate: 0.001, capacity: 100 });
  await ready(api);
  clock.skewMs -= 3_600_000;
  expect((await api.take()).source).toBe('redis');
  expect(api.stats().late).toBe(1);
  clock.skewMs += 7_200_000;
  expect((await api.take()).source).toBe('redis');
  expect((await api.take()).source).toBe('redis');
  expect(api.stats().late).toBe(1);
  expect((await api.peek()).remaining).toBe(97);
});

test('the in-flight cap is kept without Redis: the last share with local, no cap with open', async () => {
  const clock = skewedClock();
  const api = limiter({ clock, completions: true });
  await setParams(admin, api, { rate: 1000, capacity: 1000, inFlightMax: 3 });
  await ready(api);
  await until('a share is known', () => api.stats().share === 3);
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  const taken: TakeDecision[] = [];
  for (let i = 0; i < 5; i++) taken.push(await api.take());
  expect(taken.map(({ reason }) => reason)).toEqual(['ok', 'ok', 'ok', 'in_flight', 'in_flight']);
  // A share past its life: `local` keeps it, `open` does not.
  clock.skewMs += 2_500;
  expect((await api.take()).reason).toBe('in_flight');
  expect((await api.take(null, { onRedisError: 'open' })).allowed).toBe(true);
  taken[0]!.done();
  taken[1]!.done();
  expect((await api.take()).allowed).toBe(true);
});

test('telemetry of an outage is dropped and counted, not sent as a burst', async () => {
  const api = limiter();
  await setParams(admin, api, { rate: 1000, capacity: 1000 });
  await ready(api);
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  for (let i = 0; i < 10; i++) (await api.take()).done();
  await until('an interval was dropped', () => api.stats().telemetryDropped >= 1);
  await server.restart();
  await until('Redis answers again', () => api.stats().redisUp);
  await api.close();
  const sums = await Promise.all(
    (await admin.keys('flyball:{api}:t:*')).map((key) => admin.hget(key, 'off')),
  );
  expect(sums.reduce((sum, offered) => sum + Number(offered ?? 0), 0)).toBeLessThan(10);
});

test('a limiter that closes right after missed deadlines still gives back what it holds', async () => {
  const api = limiter({ completions: true });
  await setParams(admin, api, { inFlightMax: 20 });
  const shares = async () =>
    Object.entries(await admin.hgetall(limiterKeys({ name: 'api' }).inFlight))
      .filter(([process]) => !process.startsWith(':'))
      .map(([, share]) => share.split(' ')[1]);
  await ready(api);
  await until('it has the cap', async () => (await shares())[0] === '20');
  server.pause();
  await until('Redis counts as away', async () => {
    const decision = await api.take();
    decision.done();
    return warnings.some(({ code }) => code === 'FLYBALL_W_REDIS_AWAY');
  });
  server.resume();
  await api.close();
  expect(await shares()).toEqual(['-1']);
});
