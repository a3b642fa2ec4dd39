/** What daemons share beside limiters: who lives, and what all of them may change together. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { announce } from '../../src/redis/announce.js';
import { type FleetBudget, spendBudget } from '../../src/redis/budget.js';
import { fleetKeys } from '../../src/redis/keys.js';
import { slotOf } from '../../src/redis/slot.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const START_US = 1_700_000_000_000_000;
const keys = fleetKeys();
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await redis.flushall();
});

const says = async (owner: string, atMs: number, record: object | null = { name: owner }) =>
  (await announce(redis, { owner, record, livesMs: 3000, nowUs: START_US + atMs * 1000 })).sort();

test('who spoke lately lives; who is silent does not, and is forgotten after a minute', async () => {
  expect(await says('a:1:x', 0)).toEqual(['a:1:x']);
  expect(await says('b:2:y', 1000)).toEqual(['a:1:x', 'b:2:y']);
  expect(await says('b:2:y', 3000)).toEqual(['a:1:x', 'b:2:y']);
  expect(await says('b:2:y', 3001)).toEqual(['b:2:y']);
  expect(await redis.hkeys(keys.daemons)).toContain('a:1:x');
  await says('b:2:y', 60_001);
  expect(await redis.hkeys(keys.daemons)).toEqual(['b:2:y']);
  expect(await redis.pttl(keys.daemons)).toBeGreaterThan(0);
});

test('who leaves is gone at once', async () => {
  await says('a:1:x', 0);
  expect(await says('b:2:y', 0)).toHaveLength(2);
  expect(await says('a:1:x', 10, null)).toEqual(['b:2:y']);
});

test('C02: after a clock that was set back nobody is dead at once, and nobody lives for ever', async () => {
  const back = -3_600_000;
  await says('a:1:x', 0);
  expect(await says('b:2:y', back)).toEqual(['a:1:x', 'b:2:y']);
  expect(await says('b:2:y', back + 3001)).toEqual(['b:2:y']);
  // Forward: those that live speak again within a lease.
  await says('a:1:x', back + 3001);
  expect(await says('b:2:y', 3_600_000)).toEqual(['b:2:y']);
});

test('what nothing of ours wrote is removed, and a malformed call is refused', async () => {
  await redis.hset(keys.daemons, 'old', '{"name":"old","atMs":1}', 'bad', '', 'nan', 'nan {}');
  expect(await says('a:1:x', 0)).toEqual(['a:1:x']);
  expect(await redis.hkeys(keys.daemons)).toEqual(['a:1:x']);
  const wrong = announce(redis, { owner: '', record: {}, livesMs: 3000 });
  await expect(wrong).rejects.toThrow('FLYBALL_E_CALL_INVALID');
});

test('a registry of another type gives way: daemons hear of each other again', async () => {
  await redis.set(keys.daemons, 'a string');
  expect(await says('a:1:x', 0)).toEqual(['a:1:x']);
  expect(await says('b:2:y', 100)).toEqual(['a:1:x', 'b:2:y']);
  await redis.del(keys.daemons);
  await redis.lpush(keys.daemons, 'a list');
  expect(await says('a:1:x', 200, null)).toEqual([]);
});

test('daemons that do not exist, fifty of them, are forgotten within the time that one may be silent', async () => {
  const ghosts = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [`ghost${i}:${i}:z`, `${9_999_999_999_999 - i} {}`]),
  );
  await redis.hset(keys.daemons, ghosts);
  expect(await says('a:1:x', 0)).toHaveLength(51);
  expect(await says('a:1:x', 3001)).toEqual(['a:1:x']);
  await says('a:1:x', 61_000);
  expect(await redis.hlen(keys.daemons)).toBe(1);
});

const asks = (budget: FleetBudget, factor: number, atMs: number) =>
  spendBudget(redis, { ...budget, factor, nowUs: START_US + atMs * 1000 });

test('raises: in no minute more than the budget; cuts are counted and never wait', async () => {
  const budget = { changesPerMinute: 10 };
  const granted: number[] = [];
  for (let ms = 0; ms < 300_000; ms += 500) if (await asks(budget, 1.1, ms)) granted.push(ms);
  for (const from of granted) {
    expect(granted.filter((ms) => ms >= from && ms < from + 60_000).length).toBeLessThanOrEqual(10);
  }
  expect(granted.length).toBeGreaterThanOrEqual(25);
  await asks(budget, 1.1, 300_000);
  expect(await asks(budget, 1.1, 300_000)).toBe(false);
  for (let i = 0; i < 20; i++) expect(await asks(budget, 0.5, 300_000)).toBe(true);
  // What the cuts took is not owed: half a budget is back after a minute, no later.
  expect(await asks(budget, 1.1, 360_000)).toBe(true);
});

test('doublings: in no hour more than the budget, however the raises are cut', async () => {
  const budget = { doublingsPerHour: 4 };
  let sum = 0;
  for (let minute = 0; minute < 60; minute++) {
    if (await asks(budget, 1.5, minute * 60_000)) sum += Math.log2(1.5);
  }
  expect(sum).toBeLessThanOrEqual(4);
  expect(sum).toBeGreaterThan(2.5);
  // One raise above half of the hour's is let through where nothing was spent.
  await redis.flushall();
  expect(await asks(budget, 16, 0)).toBe(true);
  expect(await asks(budget, 1.1, 0)).toBe(false);
});

test('both bind; without either nothing does; the key ends by itself', async () => {
  const both = { changesPerMinute: 1000, doublingsPerHour: 2 };
  expect([await asks(both, 2, 0), await asks(both, 2, 1)]).toEqual([true, false]);
  expect(await redis.pttl(keys.budget)).toBeGreaterThan(3_600_000);
  await redis.set(keys.budget, 'garbage');
  expect(await asks(both, 2, 2)).toBe(true);
  await redis.flushall();
  await redis.rpush(keys.budget, 'a list');
  expect(await asks(both, 2, 3)).toBe(true);
  await redis.flushall();
  for (let i = 0; i < 50; i++) expect(await asks({}, 3, i)).toBe(true);
});

test('the slot of a key is the one that Redis computes', async () => {
  const cluster = await startRedis(['--cluster-enabled', 'yes']);
  const node = cluster.client();
  try {
    for (const key of [
      'flyball:{checkout}:params',
      'flyball:refund{payments}:params',
      '123456789',
      '',
      '{}x',
      'a{b',
      'é{ü}',
    ]) {
      expect([key, slotOf(key)]).toEqual([key, Number(await node.call('CLUSTER', 'KEYSLOT', key))]);
    }
  } finally {
    await cluster.stop();
  }
});
