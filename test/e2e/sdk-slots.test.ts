/** `exact: true`: one cap for a fleet larger than it, held place by place, given back by whatever way a request ends. */
import { beforeEach, expect, test } from 'vitest';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const name = 'slots';
const keys = limiterKeys({ name });
const bench = sdkBench(name);
beforeEach(() => bench.admin.flushall());

const limiter = (options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ name, rate: 1000, capacity: 1000, inFlightMax: 2, exact: true, ...options });

test('five processes share a cap of two exactly, and places return', async () => {
  const fleet = Array.from({ length: 5 }, () => limiter());
  const first = await Promise.all(fleet.map((each) => each.take()));
  expect(first.filter((each) => each.allowed).length).toBe(2);
  expect(first.find((each) => !each.allowed)).toMatchObject({
    reason: 'in_flight',
    limit: 'in_flight',
  });
  for (const each of first) {
    each.done();
    each.done();
  }
  await until('both places are back', async () => (await bench.admin.zcard(keys.slots)) === 0);
  expect((await fleet[4]!.take()).allowed).toBe(true);
});

test('what the bucket denies gives its place back', async () => {
  const api = limiter({ rate: 0.001, capacity: 1 });
  const [one, two] = await Promise.all([api.take(), api.take()]);
  expect([one!.reason, two!.reason]).toEqual(['ok', 'rate']);
  await until('one place is held', async () => (await bench.admin.zcard(keys.slots)) === 1);
});

test('a place is renewed for as long as the request lasts; closing gives it back', async () => {
  const api = limiter();
  await api.take();
  const [, first] = await bench.admin.zrange(keys.slots, 0, '-1', 'WITHSCORES');
  await until('it is renewed', async () => {
    const [, now] = await bench.admin.zrange(keys.slots, 0, '-1', 'WITHSCORES');
    return Number(now) > Number(first);
  });
  await api.close();
  expect(await bench.admin.zcard(keys.slots)).toBe(0);
});

test('a cap raised by the autopilot holds at once; shadow and off take no places', async () => {
  const api = limiter();
  await setParams(bench.admin, { name }, { rate: 1000, capacity: 1000, inFlightMax: 3 });
  const taken = await Promise.all([1, 2, 3, 4].map(() => api.take()));
  expect(taken.filter((each) => each.allowed).length).toBe(3);
  for (const each of taken) each.done();
  await setParams(bench.admin, { name }, { mode: 'off' });
  await until('off is seen', async () => (await api.take()).reason === 'off');
  const many = await Promise.all(Array.from({ length: 10 }, () => api.take()));
  expect(many.every((each) => each.allowed)).toBe(true);
});

test('without Redis: a part of the cap, none, or all, as onRedisError says', async () => {
  const fleet = (['local', 'closed', 'open'] as const).map((onRedisError) =>
    limiter({ onRedisError, deadlineMs: 100 }),
  );
  for (const each of fleet) {
    const decision = await each.take();
    decision.done();
  }
  bench.server.pause();
  const counts: number[] = [];
  for (const each of fleet) {
    const taken = await Promise.all([1, 2, 3, 4].map(() => each.take()));
    counts.push(taken.filter((decision) => decision.allowed).length);
  }
  bench.server.resume();
  expect(counts[0]).toBeGreaterThanOrEqual(1);
  expect(counts[0]).toBeLessThanOrEqual(2);
  expect(counts.slice(1)).toEqual([0, 4]);
});
