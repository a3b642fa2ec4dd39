import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createInFlight } from '../../src/enforce/in-flight.js';
import { createInForceView } from '../../src/enforce/in-force.js';
import { resolveOptions } from '../../src/enforce/options.js';
import { createRedisTime } from '../../src/enforce/redis-time.js';
import { createShares } from '../../src/enforce/shares.js';
import type { Slots } from '../../src/enforce/slots.js';
import type { Limiter, LimiterOptions, TakeDecision } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { type SdkChild, startSdkChild } from '../support/sdk-child.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const NO_SLOTS: Slots = {
  reserve: async () => 'full',
  release() {},
  renew: async () => {},
  close: async () => {},
};
const bench = sdkBench('cap');
const children: SdkChild[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
});

/** The params come first, so that the first share is asked of them. */
async function limiter(
  params: ParamChange,
  options: Partial<LimiterOptions> = {},
): Promise<Limiter> {
  const name = bench.name();
  await setParams(bench.admin, { name }, params);
  return bench.limiter({ name, completions: true, ...options });
}

test('the cap holds from admission to done, and denying it costs no tokens', async () => {
  const api = await limiter({ rate: 0.01, capacity: 100, inFlightMax: 3 });
  const first: TakeDecision[] = [];
  for (let i = 0; i < 5; i++) first.push(await api.take());
  expect(first.map(({ reason }) => reason)).toEqual(['ok', 'ok', 'ok', 'in_flight', 'in_flight']);
  expect(first[3]).toMatchObject({ allowed: false, limit: 'in_flight' });
  expect(first[3]!.retryAfterMs).toBeGreaterThan(0);
  expect((await api.peek()).remaining).toBe(97);

  first[0]!.done();
  first[0]!.done();
  expect((await api.take()).allowed).toBe(true);
  expect((await api.take()).reason).toBe('in_flight');
  expect((await api.peek()).remaining).toBe(96);
});

test('of takes in one turn no more than the cap are admitted', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 7 });
  const decisions = await Promise.all(Array.from({ length: 50 }, () => api.take()));
  expect(decisions.filter(({ allowed }) => allowed).length).toBe(7);
  expect(api.stats().inFlight).toBe(7);
});

test('a take denied by the bucket gives its place back', async () => {
  const api = await limiter({ rate: 0.01, capacity: 2, inFlightMax: 10 });
  const decisions = await Promise.all([1, 2, 3, 4].map(() => api.take()));
  expect(decisions.filter(({ allowed }) => allowed).length).toBe(2);
  expect(api.stats().inFlight).toBe(2);
});

test('a process that reports no completions is bound by the rate only, until its first done', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 2 }, { completions: false });
  const before: TakeDecision[] = [];
  for (let i = 0; i < 5; i++) before.push(await api.take());
  expect(before.every(({ allowed }) => allowed)).toBe(true);
  before[0]!.done();
  const after: TakeDecision[] = [];
  for (let i = 0; i < 4; i++) after.push(await api.take());
  expect(after.map(({ allowed }) => allowed)).toEqual([true, true, false, false]);
});

test('a new revision brings a new share', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 2 });
  await Promise.all([api.take(), api.take()]);
  await setParams(bench.admin, api, { inFlightMax: 40 });
  await api.peek();
  expect(api.numbers()?.inFlightMax).toBe(40);
  await until('the share grew', () => api.stats().share === 40);
});

test('a process that was stopped for longer than a share lives asks before it admits', async () => {
  const clock = {
    skewMs: 0,
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + clock.skewMs,
  };
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 5 }, { clock });
  (await api.take()).done();
  // Meanwhile another process holds nearly all of the cap.
  const keys = limiterKeys(api);
  const far = String((Date.now() + 60_000) * 1000);
  await bench.admin.hset(keys.inFlight, 'other', `4 4 1 ${far}`);
  clock.skewMs += 2_500;
  const taken: TakeDecision[] = [];
  for (let i = 0; i < 3; i++) taken.push(await api.take());
  expect(taken.map(({ reason }) => reason)).toEqual(['ok', 'in_flight', 'in_flight']);
});

test('shadow: a full cap admits, and counts what it would have denied', async () => {
  const api = await limiter({ mode: 'shadow', rate: 1000, capacity: 1000, inFlightMax: 1 });
  await api.take();
  const second = await api.take();
  expect(second).toMatchObject({ allowed: true, wouldAllow: false, reason: 'in_flight' });
  expect(api.stats().inFlight).toBe(2);
  second.done();
  expect(api.stats()).toMatchObject({ inFlight: 1, denied: {}, wouldDeny: { in_flight: 1 } });
});

test('two processes share one cap by need; a killed one’s share returns', async () => {
  const name = bench.name();
  await setParams(bench.admin, { name }, { rate: 1e5, capacity: 1e5, inFlightMax: 20 });
  const modest = startSdkChild(bench.server.url, name, 4);
  children.push(modest);
  await until('the modest one has its need', () => modest.last.held === 4);
  const greedy = startSdkChild(bench.server.url, name, 100);
  children.push(greedy);
  // The modest one held all room to spare; it falls to the greedy one when both have asked again.
  await until('the greedy one has the rest', () => greedy.last.share === 16);
  await until('and uses it', () => greedy.last.held === 16);
  const shares = Object.entries(await bench.admin.hgetall(`flyball:{${name}}:f`));
  const sum = shares
    .filter(([process]) => !process.startsWith(':'))
    .reduce((total, [, entry]) => total + Number(entry.split(' ')[1]), 0);
  expect(sum).toBe(20);
  expect(greedy.last.processes).toBe(2);
  expect(modest.last.held).toBe(4);

  await modest.kill();
  await until('its part came back', () => greedy.last.held === 20);
  expect(greedy.last.processes).toBe(1);
});

test('a process that joins, and a cap that is cut, settle at equal parts that never pass the cap', async () => {
  const first = await limiter({ rate: 1e5, capacity: 1e5, inFlightMax: 20 });
  await until('it has all', () => first.stats().share === 20);
  const second = bench.limiter({ name: first.name, completions: true });
  const shares = () => [first.stats().share, second.stats().share];
  await until('both have half', () => shares().every((share) => share === 10));
  await setParams(bench.admin, first, { inFlightMax: 6 });
  await until('the cut is shared', () => shares().every((share) => share === 3));
});

test('while others hold what is its due, a process asks again soon by itself', async () => {
  const name = bench.name();
  await setParams(bench.admin, { name }, { rate: 1e5, capacity: 1e5, inFlightMax: 20 });
  const keys = limiterKeys({ name });
  const soon = String((Date.now() + 60_000) * 1000);
  await bench.admin.hset(keys.inFlight, 'other', `4 20 1 ${soon}`);
  const inFlight = createInFlight(true);
  let asked = 0;
  // Nothing else asks: no beat of a second, no take.
  const link = { up: true, within: <T>(_atMs: number, call: () => Promise<T>) => call() };
  const shares = createShares({
    redis: bench.admin,
    link: () => ({ ...link, ask() {}, answers: async () => true, close() {} }),
    finder: { keys, find: async () => keys },
    time: createRedisTime(),
    view: createInForceView(resolveOptions({ name })),
    inFlight,
    slots: NO_SLOTS,
    exact: () => false,
    clock: systemClock,
    processId: 'p1',
    deadlineMs: 5_000,
    onReply: () => {
      asked += 1;
    },
  });
  await shares.refresh(systemClock.monotonicMs() + 5_000);
  expect(inFlight.share).toBe(1);
  await until('it asked again', () => asked >= 3);
  expect(inFlight.share).toBe(1);
  await bench.admin.hset(keys.inFlight, 'other', `4 4 1 ${soon}`);
  await until('it has its due', () => inFlight.share === 8);
  await shares.leave(systemClock.monotonicMs() + 5_000);
});
