import { expect, test } from 'vitest';
import { type Limiter, takeAll } from '../../src/index.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';
import { startProxy } from '../support/tcp-proxy.js';

const bench = sdkBench('once');
const { limiter } = bench;

async function ready(api: Limiter, change: object = {}, group?: string): Promise<Limiter> {
  const address = { name: api.name, group };
  await setParams(bench.admin, address, { rate: 0.001, capacity: 100, ...change });
  await until('Redis decides', async () => (await api.peek()).source !== 'unmanaged');
  return api;
}

const bucketOf = (name: string) => bench.admin.get(`flyball:{${name}}:b`);

test('I5: an id that is read after the request was given back by its end gives nothing back', async () => {
  const api = await ready(limiter({ count: 'failures' }));
  await api.takeMany(Array.from({ length: 10 }, () => ({})));
  const [late, early] = [await api.take(), await api.take()];
  const id = early.id!;
  for (const decision of [late, early]) decision.done('ok');
  await until('both are back', async () => (await api.peek()).remaining === 90);
  expect(late.id).toBeNull();
  expect(await late.refund()).toEqual({ refunded: false, why: 'already' });
  expect(await api.refund(id)).toEqual({ refunded: false, why: 'already' });
  expect((await api.peek()).remaining).toBe(90);
});

test('I5, I12: a take that no rollout reached while Redis was away took nothing, and gives nothing back', async () => {
  const proxy = await startProxy(bench.server.port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const options = { url, deadlineMs: 500, count: 'failures' as const };
  try {
    for (const together of [false, true]) {
      const api = limiter({ ...options, group: 'g' });
      await ready(api, { rollout: '{"percent":0,"subjects":["in"]}' }, 'g');
      await until('the rollout is known', async () => (await api.peek('out')).source === 'shadow');
      const set = takeAll([api]);
      const take = () =>
        together ? set.take({ [api.name]: { subject: 'out' } }) : api.take('out');
      for (let i = 0; i < 20; i++) await api.take('in');
      const before = await bench.admin.get(`flyball:${api.name}{g}:b`);
      proxy.mode = 'hang';
      const away = [await take(), await take()];
      expect(away[0]).toMatchObject({ allowed: true, source: 'shadow' });
      proxy.mode = 'pass';
      proxy.cut();
      await until('Redis is back', async () => (await api.peek('in')).source === 'redis');
      away[0]!.done('ok');
      expect(await away[1]!.refund()).toEqual({ refunded: false, why: 'nothing_taken' });
      expect(away[1]!.id).toBeNull();
      // A refund that is made goes after what was asked for before.
      const taken = await api.take('in');
      expect(await taken.refund()).toEqual({ refunded: true });
      expect(await bench.admin.get(`flyball:${api.name}{g}:b`)).toBe(before);
      expect(api.stats().refunded).toBe(1);
    }
  } finally {
    await proxy.close();
  }
});

test('I5: an id with a cost that no take can have is refused alone, and spoils no others', async () => {
  const api = await ready(limiter());
  const [a, b] = [await api.take(), await api.take()];
  const parts = JSON.parse(Buffer.from(a.id!, 'base64url').toString()) as unknown[];
  const forged = (cost: number) =>
    Buffer.from(JSON.stringify(parts.map((part, i) => (i === 6 ? cost : part)))).toString(
      'base64url',
    );
  const before = await bucketOf(api.name);
  const asked = [
    b.refund(),
    ...[1e-7, 0.1234567, 1e10, -1].map((cost) => api.refund(forged(cost))),
  ];
  const [fine, ...bad] = await Promise.allSettled(asked);
  expect(fine).toMatchObject({ value: { refunded: true } });
  for (const each of bad)
    expect(each).toMatchObject({ reason: { code: 'FLYBALL_E_ENFORCE_REFUND' } });
  expect(await bucketOf(api.name)).not.toBe(before);
  expect((await api.peek()).remaining).toBe(99);
});
