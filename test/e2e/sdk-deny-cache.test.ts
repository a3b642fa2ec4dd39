/** The deny cache against a real server: a flood costs Redis nothing, a raise is followed. */
import { expect, test } from 'vitest';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('denied');
const { limiter } = bench;

test('who asks again at once is denied here: Redis is not called, and each denial is counted', async () => {
  const api = limiter();
  const { revision } = await setParams(bench.admin, api, { rate: 0.01, capacity: 1 });
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
  const api = limiter();
  const low = { rate: 0.01, capacity: 1, subjectRate: 0.01, subjectCapacity: 1 };
  await setParams(bench.admin, api, { ...low, capacity: 100 });
  await api.take('ada');
  expect((await api.take('ada')).source).toBe('redis');
  expect((await api.take('ada')).source).toBe('cached');
  const high = { subjectRate: 1e6, subjectCapacity: 50 };
  const { revision } = await setParams(bench.admin, api, high);
  // Another subject's take brings the news.
  expect(await api.take('bob')).toMatchObject({ allowed: true, revision });
  await until('ada has tokens', async () => (await api.peek('ada')).remaining > 0);
  expect(await api.take('ada')).toMatchObject({ allowed: true, source: 'redis', revision });

  await setParams(bench.admin, api, { ...low, capacity: 100 });
  await until('denied again', async () => !(await api.take('ada')).allowed);
  await setParams(bench.admin, api, { ...high, rate: 1e6 });
  await until('followed', async () => (await api.take('ada')).allowed);
});

test('off: every denial is Redis’s', async () => {
  const api = limiter({ denyCache: false });
  await setParams(bench.admin, api, { rate: 0.01, capacity: 1 });
  await api.take();
  for (let i = 0; i < 20; i++) expect((await api.take()).source).toBe('redis');
});

test('shadow is never answered from it: all are admitted', async () => {
  const api = limiter();
  await setParams(bench.admin, api, { mode: 'shadow', rate: 0.01, capacity: 1 });
  await api.take();
  for (let i = 0; i < 20; i++) {
    expect(await api.take()).toMatchObject({ allowed: true, source: 'redis' });
  }
});
