/** The take script on a real server: the named cases of a token bucket whose numbers move. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TakeCall, TakeRequest } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { take } from '../../src/redis/scripts.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const T0 = 1_700_000_000_000_000;
const S = 1_000_000;
const FALLBACK = { rate: 10, capacity: 10, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };

let server: TestRedis;
let redis: Redis;
let names = 0;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());

function limiter() {
  names += 1;
  const keys = limiterKeys({ name: `l${names}` });
  const call = (takes: Partial<TakeRequest>[], nowUs: number, more: Partial<TakeCall> = {}) =>
    take(redis, {
      keys,
      takes: takes.map((each) => ({ subject: null, cost: 1, priority: 'default', ...each })),
      chargeByUs: 'any',
      fallback: FALLBACK,
      shadow: false,
      nowUs,
      ...more,
    });
  const one = async (nowUs: number, cost = 1, subject: string | null = null) =>
    (await call([{ cost, subject }], nowUs)).answers[0]!;
  return { keys, call, one };
}

test('a fresh bucket is full, and is charged', async () => {
  const { keys, call } = limiter();
  const params = await seedParams(redis, keys, { rate: 10, capacity: 20 }, { nowUs: T0 });
  expect(params.revision).toBe(1);
  const reply = await call([{}, {}, { cost: 18 }, {}], T0);
  expect(reply.status).toBe('ok');
  expect(reply.inForce).toMatchObject({
    managed: true,
    revision: 1,
    rate: 10,
    capacity: 20,
    state: 'closed',
    mode: 'auto',
  });
  expect(reply.answers.map((a) => [a.reason, a.remaining, a.retryAfterMs])).toEqual([
    ['ok', 19, 0],
    ['ok', 18, 0],
    ['ok', 0, 0],
    ['rate', 0, 100],
  ]);
});

test('C08: a rate below one per second keeps its fractions', async () => {
  const { keys, one } = limiter();
  await seedParams(
    redis,
    keys,
    { rate: 0.1, capacity: 1, minCapacity: 1, probeRate: 0.1 },
    { nowUs: T0 },
  );
  expect(await one(T0)).toMatchObject({ allowed: true });
  expect(await one(T0 + 9.9 * S)).toMatchObject({ allowed: false, retryAfterMs: 100 });
  expect(await one(T0 + 10 * S)).toMatchObject({ allowed: true });
});

test('C07: a trip denies all, with a finite TTL, and leaves no saved-up burst', async () => {
  const { keys, one } = limiter();
  await seedParams(redis, keys, { rate: 5, capacity: 10 }, { nowUs: T0 });
  expect((await one(T0)).allowed).toBe(true);
  expect(
    await changeParams(redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 }),
  ).toMatchObject({ status: 'ok' });
  for (let i = 0; i < 3; i++)
    expect(await one(T0 + 1 * S)).toMatchObject({ allowed: false, reason: 'breaker_open' });
  expect(await redis.pttl(keys.bucket)).toBeGreaterThan(0);
  expect(await changeParams(redis, keys, { state: 'closed' }, { nowUs: T0 + 3 * S })).toMatchObject(
    { status: 'ok' },
  );
  expect(await one(T0 + 3 * S)).toMatchObject({
    allowed: false,
    reason: 'rate',
    retryAfterMs: 200,
  });
  expect(await one(T0 + 3.2 * S)).toMatchObject({ allowed: true });
});
