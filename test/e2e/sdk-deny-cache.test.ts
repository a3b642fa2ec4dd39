/** The deny cache against a real server: a flood costs Redis nothing, a raise is followed. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../src/index.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';

let server: TestRedis;
let admin: Redis;
const open: Limiter[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
});
afterAll(async () => {
  await Promise.all(open.map((limiter) => limiter.close()));
  await server.stop();
});

function limiter(name: string, options: Partial<LimiterOptions> = {}): Limiter {
  const made = createLimiter({ name, url: server.url, deadlineMs: 5_000, ...options });
  open.push(made);
  return made;
}

test('who asks again at once is denied here: Redis is not called, and each denial is counted', async () => {
  const api = limiter('flood');
  const { revision } = await setParams(admin, { name: 'flood' }, { rate: 0.01, capacity: 1 });
  expect((await api.take()).allowed).toBe(true);
  expect(await api.take()).toMatchObject({ allowed: false, source: 'redis', reason: 'rate' });
  const before = api.stats();
  const flood = [];
  for (let i = 0; i < 500; i++) flood.push(await api.take());
  const after = api.stats();
  expect(flood.every(({ allowed }) => !allowed)).toBe(true);
  const cached = flood.filter(({ source }) => source === 'cached');
  expect(cached.length).toBeGreaterThan(450);
  expect(cached[0]).toMatchObject({ reason: 'rate', limit: 'rate', remaining: 0, revision });
  expect(cached[0]!.retryAfterMs).toBeGreaterThan(90_000);
  expect(after.denied.rate! - before.denied.rate!).toBe(500);
  expect(after.decisions.cached).toBe(cached.length);
});

test('a raise is followed at the first reply that shows it, and within 1 s without one', async () => {
  const api = limiter('raised');
  const low = { rate: 0.01, capacity: 1, subjectRate: 0.01, subjectCapacity: 1 };
  await setParams(admin, { name: 'raised' }, { ...low, capacity: 100 });
  await api.take('ada');
  expect((await api.take('ada')).source).toBe('redis');
  expect((await api.take('ada')).source).toBe('cached');
  const high = { subjectRate: 1e6, subjectCapacity: 50 };
  const { revision } = await setParams(admin, { name: 'raised' }, high);
  // Another subject's take brings the news.
  expect(await api.take('bob')).toMatchObject({ allowed: true, revision });
  await until('ada has tokens', async () => (await api.peek('ada')).remaining > 0);
  expect(await api.take('ada')).toMatchObject({ allowed: true, source: 'redis', revision });

  await setParams(admin, { name: 'raised' }, { ...low, capacity: 100 });
  await until('denied again', async () => !(await api.take('ada')).allowed);
  await setParams(admin, { name: 'raised' }, { ...high, rate: 1e6 });
  await until('followed', async () => (await api.take('ada')).allowed);
});

test('off: every denial is Redis’s', async () => {
  const api = limiter('plain', { denyCache: false });
  await setParams(admin, { name: 'plain' }, { rate: 0.01, capacity: 1 });
  await api.take();
  for (let i = 0; i < 20; i++) expect((await api.take()).source).toBe('redis');
});

test('shadow is never answered from it: all are admitted', async () => {
  const api = limiter('shade');
  await setParams(admin, { name: 'shade' }, { mode: 'shadow', rate: 0.01, capacity: 1 });
  await api.take();
  for (let i = 0; i < 20; i++) {
    expect(await api.take()).toMatchObject({ allowed: true, source: 'redis' });
  }
});
