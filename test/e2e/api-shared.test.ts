/** However many ask: what reads all limiters, or a long log, costs Redis one read a tick; and nobody gets what was before their own change. */
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { createSharedAnswers } from '../../src/api/shared.js';
import { type ManualClock, manualClock } from '../../src/clock.js';
import { jsonOf, startApi, type TestApi } from '../support/api.js';
import { seedLimiter } from '../support/cli-run.js';
import { loadedPolicy } from '../support/policies.js';
import { redisBench } from '../support/redis-bench.js';

const TICK_MS = 100;
const LIMITERS = 30;
let redis: Redis;
let clock: ManualClock;
let api: TestApi;

redisBench(async (bench) => {
  ({ redis } = bench);
  for (let i = 0; i < LIMITERS; i++) await seedLimiter(redis, { name: `l${i}` });
  clock = manualClock(Date.now());
  const policies = () => ({ loaded: [loadedPolicy()], faults: [] });
  api = await startApi(redis, { clock, policies });
});
afterEach(() => api.close());

/** Commands that Redis served meanwhile; scripts count with what they call. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  await redis.config('RESETSTAT');
  await work();
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

const get = async (path: string) => {
  const reply = await api.ask(null, 'GET', path);
  expect([path, reply.status]).toEqual([path, 200]);
  return jsonOf(reply);
};

test.each([
  '/limiters',
  '/episodes?limit=5',
  '/report',
  '/policies',
  '/fleet',
  '/alerts',
  '/limiters/l1/episodes',
  '/limiters/l1/report',
])(
  '%s: twenty who ask at once, and twenty after them, cost one read; a tick later one more',
  async (path) => {
    const twenty = () => Promise.all(Array.from({ length: 20 }, () => get(path)));
    await get(path);
    clock.advance(TICK_MS);
    const none = await cost(async () => {});
    const one = await cost(() => get(path));
    expect(one).toBeGreaterThan(none);
    clock.advance(TICK_MS);
    const answers: unknown[] = [];
    expect(await cost(async () => answers.push(...(await twenty())))).toBe(one);
    expect(await cost(async () => answers.push(...(await twenty())))).toBe(none);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    clock.advance(TICK_MS);
    expect(await cost(twenty)).toBe(one);
  },
);

test('who changes something sees it in what they ask next, in the same tick', async () => {
  const rate = async () => (await get('/limiters')).limiters[0].inForce.rate;
  expect(await rate()).toBe(100);
  const pin = { body: { rate: 42, revision: 1 } };
  expect((await api.ask('operator', 'POST', '/limiters/l0/pin', pin)).status).toBe(200);
  expect(await rate()).toBe(42);
  expect((await get('/episodes')).episodes[0]).toMatchObject({ limiter: 'l0' });
});

test('questions that mean the same are one; different ones are answered each by itself', async () => {
  const one = await cost(() => get('/episodes?limit=5&since=0'));
  clock.advance(TICK_MS);
  const both = () => [get('/episodes?limit=5&since=0'), get('/episodes?since=0&limit=05')];
  expect(await cost(() => Promise.all(both()))).toBe(one);
  const [few, many] = await Promise.all([get('/episodes?limit=1'), get('/episodes?limit=7')]);
  expect([few.episodes.length, many.episodes.length]).toEqual([1, 7]);
});

test('who asks ever other questions uses up their own, not what others may ask', async () => {
  const status = async (role: 'reader' | 'operator', limit: number) =>
    (await api.ask(role, 'GET', `/episodes?limit=${limit}`)).status;
  const asked = await Promise.all(Array.from({ length: 30 }, (_, i) => status('reader', i + 1)));
  expect(asked).toContain(429);
  expect(await status('operator', 50)).toBe(200);
});

test('a fault is shared as well, and is over with its tick', async () => {
  await redis.rename('flyball:limiters', 'away');
  await redis.set('flyball:limiters', 'no hash');
  const ask = async () => (await api.ask(null, 'GET', '/limiters')).status;
  expect(await Promise.all([ask(), ask()])).toEqual([503, 503]);
  await redis.rename('away', 'flyball:limiters');
  expect(await ask()).toBe(503);
  clock.advance(TICK_MS);
  expect(await ask()).toBe(200);
});

describe('the answers themselves', () => {
  const shared = () => createSharedAnswers({ clock, freshMs: TICK_MS });

  const of = (lane: string, question: string, client = 'ada') => ({ client, lane, question });

  /** A read that ends when the test says so. */
  function reading(text: string) {
    let end = () => {};
    const ended = new Promise<void>((ok) => {
      end = ok;
    });
    const seen = { begun: 0, end: () => end() };
    const read = async () => {
      seen.begun += 1;
      await ended;
      return text;
    };
    return { seen, read };
  }
  const settled = () => new Promise((ok) => setImmediate(ok));

  test('of one lane one read at a time, of two lanes two', async () => {
    const answers = shared();
    const [a, b, c] = [reading('a'), reading('b'), reading('c')];
    const first = answers.answer(of('x', '1'), a.read);
    const second = answers.answer(of('x', '2'), b.read);
    const other = answers.answer(of('y', '2'), c.read);
    await settled();
    expect([a.seen.begun, b.seen.begun, c.seen.begun]).toEqual([1, 0, 1]);
    for (const one of [a, b, c]) one.seen.end();
    expect(await Promise.all([first, second, other])).toEqual(['a', 'b', 'c']);
  });

  test('a read that takes longer than a tick is waited for, not begun twice', async () => {
    const answers = shared();
    const slow = reading('slow');
    const first = answers.answer(of('x', '1'), slow.read);
    await settled();
    clock.advance(10 * TICK_MS);
    const second = answers.answer(of('x', '1'), slow.read);
    slow.seen.end();
    expect(await Promise.all([first, second])).toEqual(['slow', 'slow']);
    expect(slow.seen.begun).toBe(1);
  });

  test('after a change nobody joins a read that was begun before it', async () => {
    const answers = shared();
    const [old, anew] = [reading('old'), reading('new')];
    const first = answers.answer(of('x', '1'), old.read);
    await settled();
    answers.forget();
    const second = answers.answer(of('x', '1'), anew.read);
    old.seen.end();
    anew.seen.end();
    expect(await Promise.all([first, second])).toEqual(['old', 'new']);
    expect(await answers.answer(of('x', '1'), old.read)).toBe('new');
  });

  test('however often something changes meanwhile, one read runs, and one that waits tells of it all', async () => {
    const answers = shared();
    const running = { now: 0, most: 0, begun: 0 };
    const ends: (() => void)[] = [];
    const read = async () => {
      running.begun += 1;
      running.now += 1;
      running.most = Math.max(running.most, running.now);
      const text = `read ${running.begun}`;
      await new Promise<void>((ok) => ends.push(ok));
      running.now -= 1;
      return text;
    };
    const asked: Promise<string>[] = [];
    for (let i = 0; i < 15; i++) {
      asked.push(answers.answer(of('x', '1'), read));
      await settled();
      answers.forget();
      clock.advance(10);
    }
    expect(running).toEqual({ now: 1, most: 1, begun: 1 });
    ends[0]!();
    await settled();
    ends[1]!();
    expect(await Promise.all(asked)).toEqual(['read 1', ...Array(14).fill('read 2')]);
    expect(running).toEqual({ now: 0, most: 1, begun: 2 });
    answers.forget();
    const anew = answers.answer(of('x', '1'), read);
    await settled();
    ends[2]!();
    expect(await anew).toBe('read 3');
  });

  test('ever other questions are refused in the end, and a tick later one more is answered', async () => {
    const answers = shared();
    const ask = (question: number, lane = 'x', client = 'ada') =>
      answers.answer(of(lane, String(question), client), async () => 'read');
    let asked = 0;
    const refused = await (async () => {
      for (; asked < 1_000; asked++) {
        const fault = await ask(asked).catch((error: unknown) => error);
        if (fault !== 'read') return fault;
      }
      return null;
    })();
    expect(refused).toMatchObject({ status: 429, code: 'FLYBALL_E_API_RATE' });
    expect(asked).toBeLessThan(30);
    expect(await ask(0)).toBe('read');
    expect(await ask(1, 'y')).toBe('read');
    // It is hers alone: others ask what they like.
    expect(await ask(asked, 'x', 'bob')).toBe('read');
    clock.advance(TICK_MS);
    expect(await ask(asked + 1)).toBe('read');
    await expect(ask(asked + 2)).rejects.toMatchObject({ status: 429 });
  });
});
