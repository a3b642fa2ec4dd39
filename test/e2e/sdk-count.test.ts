/** `count`: a take is charged at once and given back when the request ended so that it does not count. */
import { beforeEach, expect, test } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions, type Outcome } from '../../src/index.js';
import { serviceTermsText } from '../../src/redis/service-terms.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const name = 'login';
/** Five a subject, and none comes back by itself while a test runs. */
const NUMBERS = { rate: 1_000, capacity: 1_000, subjectRate: 0.001, subjectCapacity: 5 };
const bench = sdkBench(name);
beforeEach(() => bench.admin.flushall());

const limiter = (options: Partial<LimiterOptions> = {}): Limiter =>
  bench.limiter({ name, ...options });
const left = async (api: Limiter, subject = 'user:1') => (await api.peek(subject)).remaining;
let users = 0;
const ENDS: Outcome[] = ['ok', 'failed', 'timed_out', 'cancelled'];

async function leftAfter(api: Limiter, outcome: Outcome): Promise<number> {
  users += 1;
  const subject = `user-${users}`;
  const before = api.stats().refunded;
  (await api.take(subject)).done(outcome);
  // What is given back goes in the turn after; a call that comes later sees it done.
  const marker = await api.take(`${subject}:marker`);
  marker.done('cancelled');
  await marker.refund();
  await until('the marker is back', () => api.stats().refunded > before);
  return left(api, subject);
}

test('failures: only what went well is given back; what nobody knows of stays charged', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  const kept: number[] = [];
  for (const outcome of ENDS) kept.push(await leftAfter(api, outcome));
  expect(kept).toEqual([5, 4, 4, 4]);
});

test('successes: only what surely failed is given back', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'successes' });
  const kept: number[] = [];
  for (const outcome of ENDS) kept.push(await leftAfter(api, outcome));
  expect(kept).toEqual([4, 5, 4, 4]);
});

test('all, the default: nothing is given back', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter();
  (await api.take('user:1')).done('ok');
  expect(await left(api)).toBe(4);
  expect(api.stats().refunded).toBe(0);
});

test('C52: a burst of parallel sign-ins never passes the limit, and a thousand that go well are all let in', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  const burst = await Promise.all(Array.from({ length: 100 }, () => api.take('user:1')));
  const admitted = burst.filter((each) => each.allowed);
  expect(admitted.length).toBe(5);
  for (const each of admitted) each.done('failed');
  expect((await api.take('user:1')).reason).toBe('subject');

  let inside = 0;
  for (let i = 0; i < 200; i += 1) {
    const five = await Promise.all(Array.from({ length: 5 }, () => api.take('user:2')));
    inside += five.filter((each) => each.allowed).length;
    for (const each of five) each.done('ok');
    await until('all five are back', () => api.stats().refunded === inside);
  }
  expect(inside).toBe(1_000);
});

test('C52: done twice, done and refund, refund by id and done: once', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  const [one, two, three, held] = await Promise.all([1, 2, 3, 4].map(() => api.take('user:1')));
  one!.done('ok');
  one!.done('ok');
  two!.done('ok');
  expect(await two!.refund()).toEqual({ refunded: false, why: 'already' });
  const { id } = three!;
  three!.done('ok');
  expect(await limiter().refund(id!)).toMatchObject({ refunded: expect.any(Boolean) });
  await until('three are back', async () => (await left(api)) === 4);
  expect(await api.refund(id!)).toEqual({ refunded: false, why: 'already' });
  held!.done('failed');
  expect(await left(api)).toBe(4);
});

test('what ends within one turn goes back in one call', async () => {
  await setParams(bench.admin, { name }, { ...NUMBERS, subjectCapacity: 100 });
  const api = limiter({ count: 'failures' });
  const taken = await Promise.all(Array.from({ length: 100 }, () => api.take('user:1')));
  const before = await calls();
  for (const each of taken) each.done('ok');
  await until('all are back', () => api.stats().refunded === 100);
  expect((await calls()) - before).toBe(1);
  expect(await left(api)).toBe(100);
});

/** Script calls that the server has run. */
async function calls(): Promise<number> {
  const text = await bench.admin.info('commandstats');
  const of = (command: string) =>
    Number(new RegExp(`_${command}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
  return of('eval') + of('evalsha') - (await failed(text));
}
/** NOSCRIPT is asked for again with the text. */
async function failed(text: string): Promise<number> {
  return Number(/_evalsha:.*failed_calls=(\d+)/.exec(text)?.[1] ?? 0);
}

test('the adopted policy leads over the code, from a new revision on', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  await setParams(bench.admin, { name }, { terms: serviceTermsText({ count: 'all' }) });
  const all = 5 - 1;
  await until('the policy is read', async () => (await leftAfter(api, 'ok')) === all);
  await setParams(bench.admin, { name }, { terms: serviceTermsText({ count: 'failures' }) });
  await until('and so is the next', async () => (await leftAfter(api, 'ok')) === 5);
});

test('a window counts failures as well', async () => {
  const api = limiter({
    rate: 5 / 3600,
    algorithm: 'sliding-log',
    windowMs: 3_600_000,
    count: 'failures',
  });
  for (let i = 0; i < 20; i += 1) {
    const decision = await api.take();
    expect(decision.allowed).toBe(true);
    decision.done('ok');
    await until('it is back', () => api.stats().refunded === i + 1);
  }
  for (let i = 0; i < 5; i += 1) (await api.take()).done('failed');
  expect((await api.take()).reason).toBe('rate');
});

test('I8: with Redis away nothing piles up: dropped, counted, and the charge stands', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const warnings: string[] = [];
  const api = limiter({
    count: 'failures',
    deadlineMs: 250,
    onRedisError: 'open',
    onWarning: ({ code }) => warnings.push(code),
  });
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  const taken = await Promise.all([1, 2, 3].map(() => api.take('user:1')));
  expect(taken.every((each) => each.source === 'redis')).toBe(true);
  bench.server.pause();
  await until('Redis is seen to be away', async () => {
    await api.take('user:2');
    return !api.stats().redisUp;
  });
  for (const each of taken) each.done('ok');
  await until('they are dropped', () => api.stats().refundsDropped === 3);
  expect(warnings).toContain('FLYBALL_W_REFUND');
  bench.server.resume();
  await until('Redis is back', async () => (await api.peek('user:1')).source === 'redis');
  expect(await left(limiter())).toBe(2);
});

test('a closing process sends what is still to be given back', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  const decision = await api.take('user:1');
  decision.done('ok');
  await api.close();
  expect(await left(limiter())).toBe(5);
});

test('whose end nobody told stays charged: a process that died, or forgot', async () => {
  await setParams(bench.admin, { name }, NUMBERS);
  const api = limiter({ count: 'failures' });
  await Promise.all([api.take('user:1'), api.take('user:1')]);
  await api.close();
  expect(await left(limiter())).toBe(3);
});

test('what cannot be counted is refused by name', () => {
  const make = (options: object) => () =>
    createLimiter({ name, url: bench.server.url, ...options } as LimiterOptions);
  expect(make({ count: 'errors' })).toThrow(/count is "errors"\. Use 'all', 'failures'/);
  expect(make({ count: 'failures', algorithm: 'leaky-bucket', rate: 1 })).toThrow(/leaky bucket/);
});
