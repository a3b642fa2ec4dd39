/** The take script on a real server: the named cases of a token bucket whose numbers move. */
import { expect, test } from 'vitest';
import { changeParams, seedParams, storedParams } from '../support/seed-params.js';
import { reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const { limiter } = fixture;

test('a fresh bucket is full, is charged, and says what is in force', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 10, capacity: 20 }, { nowUs: T0 });
  const reply = await call([{}, {}, { cost: 18 }, {}], T0);
  expect(reply).toMatchObject({ status: 'ok', nowUs: T0 });
  expect(reply.inForce).toEqual({
    managed: true,
    epoch: 1_000_000,
    revision: 1,
    generation: 0,
    mode: 'auto',
    state: 'closed',
    gliding: false,
    rate: 10,
    capacity: 20,
    inFlightMax: 0,
    subjectRate: -1,
    subjectCapacity: 0,
  });
  expect(reply.answers).toEqual([
    { allowed: true, reason: 'ok', remaining: 19, retryAfterMs: 0 },
    { allowed: true, reason: 'ok', remaining: 18, retryAfterMs: 0 },
    { allowed: true, reason: 'ok', remaining: 0, retryAfterMs: 0 },
    { allowed: false, reason: 'rate', remaining: 0, retryAfterMs: 100 },
  ]);
});

test('C02: a clock that steps back 23 h grants no more than was left, and refills from the new time', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  await one(T0, { cost: 8 });
  const back = T0 - 82_800 * S;
  let granted = 0;
  for (let i = 0; i < 5; i++) if ((await one(back)).allowed) granted += 1;
  expect(granted).toBeLessThanOrEqual(2);
  const denied = await one(back);
  expect(denied.allowed).toBe(false);
  expect(denied.retryAfterMs).toBeLessThanOrEqual(1000);
  expect((await one(back + S)).allowed).toBe(true);
  // No refill to full either, hours after the step.
  for (let i = 0; i < 10; i++) await one(back + 4000 * S);
  expect((await one(back + 4000 * S)).allowed).toBe(false);
});

test('C02: the next write brings clock, floor and open time to the new clock', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 10, capacity: 10 }, { nowUs: T0 });
  await changeParams(fixture.redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
  const back = T0 - 3600 * S;
  // The floor lies ahead and is ignored, once: at most the small bucket of half-open.
  expect((await one(back)).reason).toBe('ok');
  expect((await one(back)).reason).toBe('probe_budget');
  expect(
    await changeParams(fixture.redis, keys, {}, { nowUs: back, cause: 'settle' }),
  ).toMatchObject({
    status: 'ok',
  });
  const params = (await storedParams(fixture.redis, keys))!;
  expect(params.changedAt).toBe(back);
  expect(params.floor).toBeLessThanOrEqual(params.accrued);
  expect(params.state).toBe('half-open');
  expect((await one(back + 2 * S)).allowed).toBe(true);
});

test('C05: the life of a bucket is longer than its refill', async () => {
  const { keys, one } = limiter();
  const slow = { rate: 1 / 15, capacity: 3, minRate: 1 / 15, maxCapacity: 3 };
  await seedParams(fixture.redis, keys, slow, { nowUs: T0 });
  for (let i = 0; i < 3; i++) expect((await one(T0)).allowed).toBe(true);
  expect(await fixture.redis.pttl(keys.bucket)).toBeGreaterThanOrEqual(45_000);
  expect((await one(T0 + 7 * S)).allowed).toBe(false);
});

test('C07: rate zero is legal: breaker_open, a finite TTL, no saved-up burst afterwards', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 5, capacity: 10 }, { nowUs: T0 });
  expect((await one(T0)).allowed).toBe(true);
  await changeParams(fixture.redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
  for (let i = 0; i < 3; i++) {
    expect(await one(T0 + S)).toMatchObject({ allowed: false, reason: 'breaker_open' });
  }
  expect(await fixture.redis.pttl(keys.bucket)).toBeGreaterThan(0);
  await changeParams(fixture.redis, keys, { state: 'closed' }, { nowUs: T0 + 3 * S });
  expect(await one(T0 + 3 * S)).toMatchObject({
    allowed: false,
    reason: 'rate',
    retryAfterMs: 200,
  });
  expect(await one(T0 + 3.2 * S)).toMatchObject({ allowed: true });
});

test('C07: a rate pinned to 0 denies without a retry time, and leaves no burst for a bucket that is gone', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 5, capacity: 10 }, { nowUs: T0 });
  await one(T0);
  await changeParams(fixture.redis, keys, { rate: 0, pinnedUntil: -1 }, { nowUs: T0 });
  expect(await one(T0 + S)).toMatchObject({ allowed: false, reason: 'rate', retryAfterMs: null });
  expect(await fixture.redis.pttl(keys.bucket)).toBeGreaterThan(0);
  await fixture.redis.del(keys.bucket);
  await changeParams(fixture.redis, keys, { rate: 5, pinnedUntil: 0 }, { nowUs: T0 + 60 * S });
  expect((await one(T0 + 60 * S)).allowed).toBe(false);
});

test('C08: a rate below one per second keeps its fractions', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 0.1, capacity: 1 }, { nowUs: T0 });
  expect((await one(T0)).allowed).toBe(true);
  expect(await one(T0 + 9.9 * S)).toMatchObject({ allowed: false, retryAfterMs: 100 });
  expect((await one(T0 + 10 * S)).allowed).toBe(true);
});

test('C16: a denied take changes nothing: the bucket keeps the same bytes', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 0.001, capacity: 10 }, { nowUs: T0 });
  expect((await one(T0, { cost: 8 })).allowed).toBe(true);
  const before = await fixture.redis.get(keys.bucket);
  const life = await fixture.redis.pexpiretime(keys.bucket);
  expect((await one(T0, { cost: 5 })).allowed).toBe(false);
  expect((await one(T0, { cost: 1e6 })).allowed).toBe(false);
  expect(await fixture.redis.get(keys.bucket)).toBe(before);
  expect(await fixture.redis.pexpiretime(keys.bucket)).toBe(life);
  expect((await one(T0)).allowed).toBe(true);
});

test('C16: what one bucket denies the other does not pay', async () => {
  const { keys, call } = limiter();
  const numbers = { rate: 0.001, capacity: 100, subjectRate: 0.001, subjectCapacity: 1 };
  await seedParams(fixture.redis, keys, numbers, { nowUs: T0 });
  const reply = await call([{ subject: 'a' }, { subject: 'a' }, { subject: 'b' }, {}], T0);
  expect(reasons(reply)).toEqual(['ok', 'subject', 'ok', 'ok']);
  expect((await call([{ cost: 0 }], T0)).answers[0]?.remaining).toBe(97);
});

test('C17: a cost above the capacity can never pass: no retry time, also after the capacity was lowered', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 10, capacity: 5 }, { nowUs: T0 });
  const never = { allowed: false, reason: 'cost_exceeds_capacity', retryAfterMs: null };
  expect(await one(T0, { cost: 6 })).toMatchObject(never);
  await changeParams(fixture.redis, keys, { capacity: 10 }, { nowUs: T0 });
  expect(await one(T0 + S, { cost: 6 })).toMatchObject({ allowed: true });
  await changeParams(fixture.redis, keys, { capacity: 5 }, { nowUs: T0 + S });
  expect(await one(T0 + 9 * S, { cost: 6 })).toMatchObject(never);
});

test('C25: a change of capacity clamps at once and hands out nothing; time before it is paid at the old rate', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 10, capacity: 100 }, { nowUs: T0 });
  await one(T0, { cost: 60 });
  const peek = async (nowUs: number) => (await one(nowUs, { cost: 0 })).remaining;
  expect(await peek(T0)).toBe(40);
  await changeParams(fixture.redis, keys, { capacity: 20 }, { nowUs: T0 });
  expect(await peek(T0)).toBe(20);
  await changeParams(fixture.redis, keys, { capacity: 200 }, { nowUs: T0 });
  expect(await peek(T0)).toBe(20);
  expect(await peek(T0 + 3 * S)).toBe(50);
  await changeParams(fixture.redis, keys, { rate: 100 }, { nowUs: T0 + 3 * S });
  expect(await peek(T0 + 3 * S)).toBe(50);
  expect(await peek(T0 + 4 * S)).toBe(150);
});

test('C25: a bucket that was never touched, or is gone, is no richer than one that is there', async () => {
  const { keys, one } = limiter();
  const numbers = { rate: 10, capacity: 100, subjectRate: 1, subjectCapacity: 4 };
  await seedParams(fixture.redis, keys, numbers, { nowUs: T0 });
  await changeParams(fixture.redis, keys, { capacity: 200, subjectCapacity: 8 }, { nowUs: T0 });
  expect((await one(T0, { cost: 0 })).remaining).toBe(100);
  expect((await one(T0, { cost: 0, subject: 'new' })).remaining).toBe(4);
});

test('leaving open by time alone gives no burst, and the probe rate is a small bucket', async () => {
  const { keys, one, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 50, capacity: 100, probeRate: 2 }, { nowUs: T0 });
  await changeParams(fixture.redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
  expect(await one(T0 + 1 * S)).toMatchObject({ reason: 'breaker_open', retryAfterMs: 4500 });
  const reply = await call([{}, {}], T0 + 5 * S);
  expect(reply.inForce).toMatchObject({ state: 'half-open', rate: 2, capacity: 2, generation: 1 });
  expect(reasons(reply)).toEqual(['probe_budget', 'probe_budget']);
  expect(reply.answers[0]?.retryAfterMs).toBe(500);
  expect(reasons(await call([{}, {}, {}], T0 + 60 * S))).toEqual(['ok', 'ok', 'probe_budget']);
  await changeParams(fixture.redis, keys, { state: 'closed' }, { nowUs: T0 + 61 * S });
  expect((await one(T0 + 61 * S, { cost: 0 })).remaining).toBe(2);
});

test('priorities: what must remain after a take is kept for those above', async () => {
  const { keys, call } = limiter();
  const reserves = { reserveDefault: 0.2, reserveSheddable: 0.5 };
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10, ...reserves }, { nowUs: T0 });
  const takes = (priority: 'critical' | 'default' | 'sheddable', n: number) =>
    Array.from({ length: n }, () => ({ priority }));
  expect(reasons(await call(takes('sheddable', 6), T0))).toEqual([
    ...Array(5).fill('ok'),
    'reserve',
  ]);
  expect(reasons(await call(takes('default', 4), T0))).toEqual([...Array(3).fill('ok'), 'reserve']);
  const last = await call([...takes('default', 1), ...takes('critical', 3)], T0);
  expect(reasons(last)).toEqual(['reserve', 'ok', 'ok', 'rate']);
  expect(last.answers[0]?.retryAfterMs).toBe(1000);
  expect(
    (await call([{ priority: 'sheddable', cost: 6 }], T0)).answers[0]?.retryAfterMs,
  ).toBeNull();
});

test('C48: waiting exactly the retry time is always enough', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 7.3, capacity: 3 }, { nowUs: T0 });
  let now = T0;
  for (let i = 0; i < 300; i++) {
    const answer = await one(now);
    if (!answer.allowed) {
      expect(answer.retryAfterMs).toBeGreaterThanOrEqual(1);
      now += answer.retryAfterMs! * 1000;
      expect((await one(now)).allowed).toBe(true);
    }
    now += 1 + ((i * 7919) % 50_000);
  }
});
