/** Takes of several limiters at once: whom a person has blocked at one of them is denied by all, and nothing is charged. */
import { expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { together } from '../../src/redis/together.js';
import { seedParams, storedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();

test('a block denies the set; other words change nothing there, and a bucket of its own is read as it was left', async () => {
  const { redis } = fixture;
  const all = limiterKeys({ name: 'all', group: 'g' });
  const user = limiterKeys({ name: 'user', group: 'g' });
  const numbers = {
    rate: 10,
    capacity: 10,
    subjectRate: 1,
    subjectCapacity: 3,
    subjectRules: 1,
  } as const;
  await seedParams(redis, all, { rate: 10, capacity: 10 }, { nowUs: T0 });
  await seedParams(redis, user, numbers, { nowUs: T0 });
  const ends = T0 / 1000 + 5_000;
  await redis.hset(user.overrides, 'bad', `block ${ends} - - 1`, 'vip', 'exempt -1 - - 1');
  await redis.set(user.subjectBucket('big'), `o:2:${T0}:0:20:500:-1`);
  const ask = async (subject: string, nowUs = T0) => {
    const take = { subject, cost: 1, priority: 'default' } as const;
    const { status, sets } = await together(redis, {
      limiters: [all, user].map((keys) => ({ keys, fallback: FALLBACK, shadow: false })),
      ...{ sets: [[take, take]], chargeByUs: 'any', nowUs },
    });
    expect(status).toBe('ok');
    return sets[0]!;
  };
  expect(await ask('bad')).toMatchObject([
    { allowed: true },
    { allowed: false, reason: 'blocked', retryAfterMs: 5_000 },
  ]);
  expect(await redis.exists(all.bucket, user.bucket)).toBe(0);
  expect((await ask('bad', T0 + 5 * S))[1]).toMatchObject({ allowed: true });
  const reasons = async (subject: string, n: number) => {
    const out: string[] = [];
    for (let i = 0; i < n; i++) out.push((await ask(subject, T0 + 5 * S))[1]!.reason);
    return out;
  };
  expect(await reasons('vip', 4)).toEqual(['ok', 'ok', 'ok', 'subject']);
  expect(await reasons('big', 3)).toEqual(['ok', 'ok', 'subject']);
  // An open breaker is told as such: what is known of subjects hides no state.
  expect((await storedParams(redis, user))!.subjectRules).toBe(1);
  await redis.hset(user.params, 'state', 'open', 'openUntil', '-1', 'hot', '');
  expect((await ask('other', T0 + 5 * S))[1]).toMatchObject({ reason: 'breaker_open' });
});
