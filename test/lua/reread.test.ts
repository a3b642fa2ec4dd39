import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { readParamsAnyhow } from '../../src/actuate/actuator.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { createParamsReader } from '../../src/redis/reread-params.js';
import { heartbeat, lease as leaseOf } from '../../src/redis/scripts.js';
import { redisBench } from '../support/redis-bench.js';
import { seedParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let redis: Redis;
redisBench((bench) => {
  redis = bench.redis;
});

const stored = async () => (await readParamsAnyhow(redis, address)).params;

test('what stands is not sent again, and what a beat moves is known all the same', async () => {
  await seedParams(redis, keys);
  const read = createParamsReader(redis, address);
  const first = await read();
  expect(first.params).toEqual(await stored());
  const sent = async () =>
    Number(/total_net_output_bytes:(\d+)/.exec(await redis.info('stats'))![1]);
  const before = await sent();
  const info = (await sent()) - before;
  expect((await read()).params).toBe(first.params);
  // The answer and one more page of the counts.
  expect((await sent()) - before - 2 * info).toBeLessThan(400);

  const owner = 'host:1:aa';
  const held = await leaseOf(redis, { keys, op: 'acquire', owner, leaseMs: 60_000 });
  const token = held.status === 'held' ? held.token : 0;
  const taken = await read();
  expect(taken.params).toEqual(await stored());
  await redis.hset(keys.params, 'validUntil', Math.floor(taken.nowUs / 1000) + 30_000);
  const beat = await heartbeat(redis, { keys, owner, token, leaseMs: 60_000, checkpoint: '' });
  expect(beat.status).toBe('ok');
  const after = await read();
  expect(after.params).toEqual(await stored());
  expect(after.params!.validUntil).toBeGreaterThan(taken.params!.validUntil);
  expect(after.nowUs).toBeGreaterThan(first.nowUs);
});

test('whatever else writes to the params is seen: a number, garbage, the word itself, their end', async () => {
  await seedParams(redis, keys);
  const read = createParamsReader(redis, address);
  const { rate } = (await read()).params!;
  await redis.hset(keys.params, 'rate', rate + 1);
  expect((await read()).params!.rate).toBe(rate + 1);
  await redis.hset(keys.params, 'validUntil', 'soon');
  const unreadable = await read();
  expect(unreadable.params).toBeNull();
  expect(unreadable.unreadable?.message).toContain('validUntil is "soon"');
  await redis.hset(keys.params, 'validUntil', 5);
  expect((await read()).params).toMatchObject({ rate: rate + 1, validUntil: 5 });
  await redis.hdel(keys.params, 'capacity');
  expect((await read()).unreadable?.message).toContain('capacity is missing');
  await redis.del(keys.params);
  expect(await read()).toMatchObject({ params: null, unreadable: null });
  await redis.flushall();
  await seedParams(redis, keys);
  expect((await read()).params).toEqual(await stored());
});

test('many limiters are read in few calls, and one of another type fails alone', async () => {
  const names = Array.from({ length: 40 }, (_, i) => `l${i}`);
  for (const name of names) await seedParams(redis, limiterKeys({ name }));
  const readers = names.map((name) => createParamsReader(redis, { name }));
  await readers[0]!();
  await redis.config('RESETSTAT');
  const all = await Promise.all(readers.map((read) => read()));
  expect(all.every(({ params }) => params !== null)).toBe(true);
  const stats = await redis.info('commandstats');
  expect(Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)![1])).toBe(3);
  await redis.set(limiterKeys({ name: 'l1' }).params, 'not a hash');
  const some = await Promise.allSettled(readers.slice(0, 3).map((read) => read()));
  expect(some.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});
