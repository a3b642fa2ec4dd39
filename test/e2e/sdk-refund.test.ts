/** Refunds through the SDK: by decision or by id from another process, once, and what is said when there is nothing. */
import { beforeEach, expect, test } from 'vitest';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const name = 'refunds';
const keys = limiterKeys({ name });
/** So slow that no token comes back by itself while a test runs. */
const NUMBERS = { rate: 0.001, capacity: 10 };
const bench = sdkBench(name);
beforeEach(() => bench.admin.flushall());

const limiter = (options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ name, ...options });
const left = async (api: Limiter, subject: string | null = null) =>
  (await api.peek(subject)).remaining;

test('C52: a decision gives back what it took, once, to the total and to its subject', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, subjectRate: 0.001, subjectCapacity: 5 });
  const api = limiter();
  const decision = await api.take('user:1', { cost: 4 });
  expect([await left(api), await left(api, 'user:1')]).toEqual([6, 1]);
  const twice = await Promise.all([decision.refund(), api.refund(decision)]);
  expect(twice).toEqual([{ refunded: true }, { refunded: false, why: 'already' }]);
  expect([await left(api), await left(api, 'user:1')]).toEqual([10, 5]);
  expect(api.stats()).toMatchObject({ refunded: 1, refundsDropped: 0 });
});

test('C52: another process refunds by the id, once for both', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, subjectRate: 0.001, subjectCapacity: 5 });
  const [one, other] = [limiter(), limiter()];
  const decision = await one.take('ключ:{1}\n', { cost: 2.5 });
  const { id } = decision;
  expect(id).toMatch(/^[A-Za-z0-9_-]{80,300}$/);
  expect(decision.id).toBe(id);
  expect(await other.refund(id!)).toEqual({ refunded: true });
  expect(await decision.refund()).toEqual({ refunded: false, why: 'already' });
  expect(await left(one)).toBe(10);
  expect(await left(one, 'ключ:{1}\n')).toBe(5);
});

test('two decisions alike have ids of their own', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter();
  const [one, two] = await Promise.all([api.take(), api.take()]);
  expect(one!.id).not.toBe(two!.id);
  expect(await api.refund(one!.id!)).toEqual({ refunded: true });
  expect(await api.refund(two!.id!)).toEqual({ refunded: true });
  expect(await left(api)).toBe(10);
});

test('without params too', async () => {
  const api = limiter(NUMBERS);
  const decision = await api.take(null, { cost: 7 });
  expect(decision.source).toBe('unmanaged');
  expect(await decision.refund()).toEqual({ refunded: true });
  expect((await api.take(null, { cost: 10 })).allowed).toBe(true);
});

test('nothing was taken: a denial, a peek, off, what Redis did not decide', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, capacity: 1 });
  const api = limiter({ denyCache: false });
  await api.take();
  const nothing = { refunded: false, why: 'nothing_taken' };
  for (const decision of [await api.take(), await api.peek()]) {
    expect(decision.id).toBeNull();
    expect(await decision.refund()).toEqual(nothing);
  }
  await setParams(bench.admin, { name }, { mode: 'off' });
  await until('off is seen', async () => (await api.take()).reason === 'off');
  const off = await api.take();
  expect([off.id, await off.refund()]).toEqual([null, nothing]);
  bench.server.pause();
  const away = await limiter({ onRedisError: 'open', deadlineMs: 50 }).take();
  expect([away.id, await away.refund()]).toEqual([null, nothing]);
  bench.server.resume();
});

test('what came from a block goes back to the bucket that the block was drawn from', async () => {
  await setParams(bench.admin, { name }, { rate: 0.001, capacity: 1_000, inFlightMax: 0 });
  const api = limiter({ draw: 'block' });
  let decision = await api.take();
  let taken = 1;
  await until('a block is in use', async () => {
    decision = await api.take();
    taken += 1;
    return decision.source === 'block';
  });
  expect(await api.refund(decision.id!)).toEqual({ refunded: true });
  expect(await decision.refund()).toEqual({ refunded: false, why: 'already' });
  await api.close();
  expect(await left(limiter())).toBe(1_000 - taken + 1);
});

test('shadow: what would have been taken goes back to the shadow’s buckets', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, mode: 'shadow' });
  const api = limiter();
  const decision = await api.take(null, { cost: 10 });
  expect((await api.take()).wouldAllow).toBe(false);
  expect(await decision.refund()).toEqual({ refunded: true });
  expect((await api.take(null, { cost: 10 })).wouldAllow).toBe(true);
  expect(await bench.admin.exists(keys.bucket)).toBe(0);
});

test.each([
  ['sliding-log', 10],
  ['sliding-counter', 10],
  ['fixed-window', 10],
] as const)('%s gives back to its window', async (algorithm, limit) => {
  const windowMs = 3_600_000;
  await setParams(
    bench.admin,
    { name },
    { rate: limit / 3600, minRate: 0.001, algorithm, windowMs, cells: 6 },
  );
  const api = limiter();
  await until('the window is known', async () => {
    await api.peek();
    return api.windowMs === windowMs;
  });
  const decision = await api.take(null, { cost: limit });
  expect((await api.take()).reason).toBe('rate');
  expect(await decision.refund()).toEqual({ refunded: true });
  expect((await api.take(null, { cost: limit })).allowed).toBe(true);
  expect(await api.refund(decision.id!)).toEqual({ refunded: false, why: 'already' });
});

test('a leaky bucket gives nothing back, and says so', async () => {
  const api = limiter({ rate: 1, capacity: 10, algorithm: 'leaky-bucket' });
  const decision = await api.take();
  expect([decision.id, await decision.refund()]).toEqual([null, { refunded: false, why: 'paced' }]);
});

test('a refund frees what this process had just heard denied', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, capacity: 1 });
  const api = limiter();
  const decision = await api.take();
  await api.take();
  expect((await api.take()).source).toBe('cached');
  await decision.refund();
  expect((await api.take()).allowed).toBe(true);
});

test('I8: Redis away: said within the deadline, dropped and counted; asked again it counts once', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const patient = limiter();
  const api = limiter({ deadlineMs: 400, onRedisError: 'closed' });
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  const { id } = await patient.take(null, { cost: 8 });
  bench.server.pause();
  expect(await api.refund(id!)).toEqual({ refunded: false, why: 'redis_away' });
  expect(api.stats().refundsDropped).toBe(1);
  bench.server.resume();
  await until('Redis is back', async () => (await api.peek()).source === 'redis');
  const answers = [await patient.refund(id!), await patient.refund(id!)];
  expect(answers.filter((each) => each.refunded).length).toBeLessThanOrEqual(1);
  expect(await left(patient)).toBe(10);
});

test('decided here, given back here: never more than this process’s part', async () => {
  const api = limiter({ rate: 0.001, capacity: 4, deadlineMs: 100, onRedisError: 'local' });
  await api.peek();
  bench.server.pause();
  const first = await api.take(null, { cost: 3 });
  expect(first.source).toBe('local');
  expect((await api.take(null, { cost: 3 })).allowed).toBe(false);
  expect(await first.refund()).toEqual({ refunded: true });
  expect(await first.refund()).toEqual({ refunded: false, why: 'already' });
  expect((await api.take(null, { cost: 3 })).allowed).toBe(true);
  bench.server.resume();
});

test('C18: what is no decision and no id is a TypeError that says what to give', async () => {
  const api = limiter();
  const text = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const of = (change: Record<number, unknown>) =>
    text(Object.assign([1, name, 'm'.repeat(16), 5, 1, 0, 1, null, null, 0, 0, false], change));
  const wrong: unknown[] = [
    undefined,
    null,
    5,
    {},
    '',
    'x',
    '{}',
    text([]),
    of({ 0: 2 }),
    of({ 2: 'short' }),
    of({ 2: `${'m'.repeat(15)}}` }),
    of({ 3: -1 }),
    of({ 4: 1.5 }),
    of({ 6: 0 }),
    of({ 6: -5 }),
    of({ 6: '5' }),
    of({ 7: '' }),
    of({ 8: 'token' }),
    of({ 11: 1 }),
    of({ 12: 1 }),
  ];
  for (const each of wrong) {
    await expect(api.refund(each as string), String(each)).rejects.toMatchObject({
      code: 'FLYBALL_E_ENFORCE_REFUND',
    });
  }
  await expect(api.refund(of({ 1: 'other' }))).rejects.toThrow(/of limiter "other", not of/);
  // Well-formed, but of another epoch.
  expect(await api.refund(of({}))).toMatchObject({ refunded: false });
});
