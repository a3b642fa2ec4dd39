import { expect, test } from 'vitest';
import { FlyballDeniedError, type Limiter } from '../../src/index.js';
import { startRedis } from '../support/redis-server.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('wait');
const { open, limiter } = bench;

const SLOW = { rate: 0.001 };

test('C57: waits until tokens come, in order, and takes no more than the limit gives', async () => {
  const api = limiter();
  await setParams(bench.admin, api, { rate: 50, capacity: 1 });
  const order: number[] = [];
  const startedMs = performance.now();
  await Promise.all([1, 2, 3, 4, 5, 6].map((i) => api.wait().then(() => order.push(i))));
  expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  // Five tokens at 50 a second beside the first.
  expect(performance.now() - startedMs).toBeGreaterThan(95);
});

test('two processes that wait for one limit both get on', async () => {
  const [a, b] = [limiter({ name: 'both' }), limiter({ name: 'both' })];
  await setParams(bench.admin, a!, { rate: 60, capacity: 1 });
  const got = { a: 0, b: 0 };
  const all = [
    ...Array.from({ length: 20 }, () => a!.wait().then(() => ++got.a)),
    ...Array.from({ length: 4 }, () => b!.wait().then(() => ++got.b)),
  ];
  await until('the one with fewer is not starved', () => got.b === 4 && got.a >= 4);
  await Promise.all(all);
  expect(got).toEqual({ a: 20, b: 4 });
});

test('C57: a raise wakes who would have waited for long; a trip holds, its end lets through', async () => {
  const api = limiter();
  await setParams(bench.admin, api, { ...SLOW, capacity: 1 });
  await api.take();
  const waiting = api.wait(null, { timeoutMs: 30_000 });
  await setParams(bench.admin, api, { rate: 500 });
  expect(await waiting).toMatchObject({ allowed: true, source: 'redis' });
  await setParams(bench.admin, api, { state: 'open', openUntil: -1 });
  const held = api.wait(null, { timeoutMs: 30_000 });
  await until('it was denied', () => (api.stats().denied.breaker_open ?? 0) > 0);
  await setParams(bench.admin, api, { state: 'closed' });
  expect(await held).toMatchObject({ allowed: true });
});

test('waits for a place in flight, and gets it when one ends', async () => {
  const api = limiter({ completions: true });
  await setParams(bench.admin, api, { rate: 1000, capacity: 1000, inFlightMax: 1 });
  await until('the cap is known here', () => api.stats().share === 1);
  const first = await api.wait();
  const second = api.wait();
  await until('the second was denied', () => (api.stats().denied.in_flight ?? 0) > 0);
  first.done();
  (await second).done();
  expect(api.stats().inFlight).toBe(0);
});

test('C57: time over, cost above the capacity, too many, closed: each says so', async () => {
  const api = limiter({ maxWaiting: 2 });
  await setParams(bench.admin, api, { ...SLOW, capacity: 2 });
  await api.take(null, { cost: 2 });
  const late = await api.wait(null, { timeoutMs: 20 }).catch((error: unknown) => error);
  expect(late).toBeInstanceOf(FlyballDeniedError);
  expect((late as FlyballDeniedError).decision).toMatchObject({ allowed: false, reason: 'rate' });
  const never = api.wait(null, { cost: 3, timeoutMs: 60_000 });
  await expect(never).rejects.toThrow('denied: cost_exceeds_capacity');
  const two = [api.wait(), api.wait()];
  for (const each of two) each.catch(() => {});
  await expect(api.wait()).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_WAIT_FULL' });
  await expect(api.wait(null, { timeoutMs: 0 })).rejects.toThrow('timeoutMs is 0');
  await expect(api.wait(null, { cost: 0 })).rejects.toThrow('cost is 0');
  await api.close();
  for (const each of two)
    await expect(each).rejects.toMatchObject({ code: 'FLYBALL_E_ENFORCE_CLOSED' });
});

test('C57: a token that comes for one who is gone is given back', async () => {
  const api = limiter({ completions: true });
  await setParams(bench.admin, api, { ...SLOW, capacity: 5, inFlightMax: 4 });
  await api.wait().then((decision) => decision.done());
  const stop = new AbortController();
  const waiting = api.wait(null, { signal: stop.signal });
  stop.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  await until('the token is back', async () => (await api.peek()).remaining === 4);
  await until('the place is back', () => api.stats().inFlight === 0);
});

test('without Redis it waits for this process’s part', async () => {
  const own = await startRedis();
  const api = limiter({ url: own.url, rate: 20, capacity: 1, deadlineMs: 50 });
  await until('Redis decides', async () => (await api.take()).source !== 'local');
  await own.kill();
  const decisions = [];
  for (let i = 0; i < 3; i++) decisions.push(await api.wait(null, { timeoutMs: 20_000 }));
  expect(decisions.every(({ allowed }) => allowed)).toBe(true);
  expect(decisions.at(-1)!.source).toBe('local');
  await Promise.all(open.splice(0).map((each) => each.close()));
  await own.stop();
});

test('a leaky bucket: waits until it may proceed, or gives up at once if that is too late', async () => {
  const api = limiter({ algorithm: 'leaky-bucket', rate: 10, capacity: 20 });
  await setParams(bench.admin, api, { rate: 10, capacity: 20, algorithm: 'leaky-bucket' });
  const startedMs = performance.now();
  await Promise.all([api.wait(), api.wait(), api.wait()]);
  expect(performance.now() - startedMs).toBeGreaterThan(190);
  await setParams(bench.admin, api, { rate: 1 });
  await Promise.all(Array.from({ length: 15 }, () => api.take()));
  await expect(api.wait(null, { timeoutMs: 100 })).rejects.toBeInstanceOf(FlyballDeniedError);
});

test('takeMany answers as takes one after another, in one call where that is possible', async () => {
  const [many, single] = [limiter({ denyCache: false }), limiter({ denyCache: false })];
  const params = { ...SLOW, capacity: 40, subjectRate: 0.001, subjectCapacity: 5 };
  for (const each of [many, single]) await setParams(bench.admin, each, params);
  const wishes = Array.from({ length: 60 }, (_, i) => ({
    subject: i % 3 === 0 ? null : `u${i % 7}`,
    cost: 1 + (i % 4) / 2,
    priority: i % 2 === 0 ? ('critical' as const) : ('default' as const),
  }));
  const told = ({ allowed, reason, remaining }: Awaited<ReturnType<Limiter['take']>>) => ({
    allowed,
    reason,
    remaining,
  });
  await many.peek();
  const calls = many.stats().calls;
  const together = await many.takeMany(wishes);
  expect(many.stats().calls - calls).toBeLessThanOrEqual(2);
  const apart = [];
  for (const { subject, ...options } of wishes) apart.push(await single.take(subject, options));
  expect(together.map(told)).toEqual(apart.map(told));
  expect(new Set(together.map(({ reason }) => reason)).size).toBeGreaterThan(2);
  expect(await many.takeMany([])).toEqual([]);
  const thousand = await many.takeMany(Array.from({ length: 1000 }, () => ({})));
  expect(thousand).toHaveLength(1000);
});

test('takeMany checks all before it takes the first', async () => {
  const api = limiter();
  await setParams(bench.admin, api, { ...SLOW, capacity: 9 });
  await expect(api.takeMany([{}, { cost: -1 }])).rejects.toThrow('cost is -1');
  await expect(api.takeMany([{}, null as never])).rejects.toThrow('wish 1 of takeMany is null');
  await expect(api.takeMany('ten' as never)).rejects.toThrow('takeMany was given "ten"');
  expect((await api.peek()).remaining).toBe(9);
});
