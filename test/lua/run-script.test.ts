/** A server that has forgotten the scripts: every call is decided once, with one load, also in pipelines and MULTI. */
import { expect, test } from 'vitest';
import type { TakeCall } from '../../src/redis/calls.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { readTakeReply, take, takeInMulti, takePipelined } from '../../src/redis/scripts.js';
import { seedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();

function callOf(keys: LimiterKeys): TakeCall {
  return {
    keys,
    takes: [{ subject: null, cost: 1, priority: 'default' }],
    chargeByUs: 'any',
    fallback: FALLBACK,
    shadow: false,
    nowUs: T0,
  };
}

async function full() {
  const { keys, one } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 1000 }, { nowUs: T0 });
  const left = async () => (await one(T0, { cost: 0 })).remaining;
  return { keys, left };
}

async function counts() {
  const stats = await fixture.redis.info('commandstats');
  const of = (name: string, what: 'calls' | 'failed_calls') =>
    Number(new RegExp(`cmdstat_${name}:.*?${what}=(\\d+)`).exec(stats)?.[1] ?? 0);
  return {
    evals: of('eval', 'calls'),
    sent: of('evalsha', 'calls'),
    failed: of('evalsha', 'failed_calls'),
  };
}

test('C28: 200 in flight, SCRIPT FLUSH, 200 more: 400 decisions, each charged once, one load', async () => {
  const { keys, left } = await full();
  const redis = fixture.redis;
  await take(redis, callOf(keys));
  await redis.config('RESETSTAT');
  const first = Array.from({ length: 200 }, () => take(redis, callOf(keys)));
  const flushed = redis.script('FLUSH', 'SYNC');
  const second = Array.from({ length: 200 }, () => take(redis, callOf(keys)));
  const replies = await Promise.all([...first, ...second]);
  await flushed;
  const { evals, sent, failed } = await counts();
  expect(replies.every((reply) => reply.answers[0]?.allowed)).toBe(true);
  expect(failed).toBe(200);
  expect(evals).toBe(1);
  expect(sent).toBe(400 + 199);
  expect(await left()).toBe(1000 - 401);
});

test('C28: the same when the server was restarted under the client', async () => {
  const { keys, left } = await full();
  await fixture.redis.script('FLUSH');
  await Promise.all(Array.from({ length: 50 }, () => take(fixture.redis, callOf(keys))));
  await fixture.redis.script('FLUSH');
  await Promise.all(Array.from({ length: 50 }, () => take(fixture.redis, callOf(keys))));
  expect(await left()).toBe(900);
});

test('C28: a pipeline heals: those that met NOSCRIPT are sent once more, the first with the text', async () => {
  const { keys, left } = await full();
  await fixture.redis.script('FLUSH');
  await fixture.redis.config('RESETSTAT');
  const replies = await takePipelined(
    fixture.redis,
    Array.from({ length: 200 }, () => callOf(keys)),
  );
  expect(replies.map((reply) => reply.answers[0]?.remaining)).toEqual(
    Array.from({ length: 200 }, (_, i) => 999 - i),
  );
  expect(await counts()).toEqual({ evals: 1, sent: 200 + 199, failed: 200 });
  expect(await left()).toBe(800);
});

test('C28: inside MULTI the command carries the text, so the transaction never fails for want of it', async () => {
  const { keys, left } = await full();
  await fixture.redis.script('FLUSH');
  const multi = fixture.redis.multi();
  for (let i = 0; i < 3; i++) multi.call(...takeInMulti(callOf(keys)));
  multi.set('side', '1');
  const replies = (await multi.exec()) ?? [];
  expect(replies.map(([error]) => error)).toEqual([null, null, null, null]);
  expect(readTakeReply(replies[2]?.[1]).answers[0]).toMatchObject({
    allowed: true,
    remaining: 997,
  });
  expect(await left()).toBe(997);
});

test('other errors are not retried', async () => {
  const { keys } = await full();
  const bad = callOf({ ...keys, params: keys.audit });
  await expect(take(fixture.redis, bad)).rejects.toThrow('WRONGTYPE');
});

test('C13: 16 workers of 10,000 takes, one cut off mid-way: no bucket is left without a TTL', async () => {
  const { keys } = fixture.limiter();
  const each = { subjectRate: 0.01, subjectCapacity: 5 };
  await seedParams(fixture.redis, keys, { rate: 50, capacity: 1000, ...each }, { nowUs: T0 });
  const workers = Array.from({ length: 16 }, () =>
    fixture.server.client({ retryStrategy: () => null }),
  );
  await Promise.all(
    workers.map(async (redis, index) => {
      for (let i = 0; i < 200; i++) {
        const takes = Array.from({ length: 50 }, (_, n) => ({
          subject: `s${(index * 31 + i * 7 + n) % 500}`,
          cost: 1,
          priority: 'default' as const,
        }));
        const pending = take(redis, { ...callOf(keys), takes, nowUs: T0 + i * S });
        if (index === 3 && i === 100) redis.disconnect();
        if (
          await pending.then(
            () => false,
            () => true,
          )
        )
          return;
      }
    }),
  );
  const buckets = new Set<string>();
  for await (const found of fixture.redis.scanStream({ match: `${keys.bucket}*`, count: 500 })) {
    for (const key of found as string[]) buckets.add(key);
  }
  expect(buckets.size).toBe(501);
  const lives = [...buckets].map(async (key) => [key, await fixture.redis.pttl(key)] as const);
  expect((await Promise.all(lives)).filter(([, life]) => life === -1)).toEqual([]);
});
