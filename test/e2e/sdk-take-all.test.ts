import { Cluster } from 'ioredis';
import { beforeEach, expect, test } from 'vitest';
import {
  createLimiter,
  FlyballDeniedError,
  type Limiter,
  type LimiterOptions,
  type LimiterWarning,
  takeAll,
} from '../../src/index.js';
import { fleetKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { startRedis } from '../support/redis-server.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('single');
const { open } = bench;
let groups = 0;
const warnings: LimiterWarning[] = [];
beforeEach(() => {
  warnings.length = 0;
});

/** Limiters of a group of their own, with these params; the names are those of the fields. */
async function limiters(
  params: Record<string, ParamChange>,
  options: Partial<LimiterOptions> = {},
): Promise<Limiter[]> {
  const group = options.group ?? `group-${++groups}`;
  const made: Limiter[] = [];
  for (const [name, change] of Object.entries(params)) {
    await setParams(bench.admin, { name, group }, change);
    const onWarning = (warning: LimiterWarning) => warnings.push(warning);
    made.push(bench.limiter({ name, group, denyCache: false, onWarning, ...options }));
  }
  return made;
}

const SLOW = { rate: 0.001 };
const left = async (limiter: Limiter, subject?: string) => (await limiter.peek(subject)).remaining;

test('all admit and all are charged; one denies and none is', async () => {
  const [global, tenant, user] = await limiters({
    global: { ...SLOW, capacity: 10 },
    tenant: { ...SLOW, capacity: 100, subjectRate: 0.001, subjectCapacity: 4 },
    user: { ...SLOW, capacity: 100, subjectRate: 0.5, subjectCapacity: 3 },
  });
  const checkout = takeAll([global!, tenant!, user!]);
  expect(checkout.names).toEqual(['global', 'tenant', 'user']);
  await checkout.ready();
  const wishes = { tenant: { subject: 't1', cost: 2 }, user: { subject: 'u1' } };
  const first = await checkout.take(wishes);
  expect(first).toMatchObject({ allowed: true, limiter: null, limit: null, source: 'redis' });
  expect(first).toMatchObject({ remaining: 2, retryAfterMs: 0, reason: 'ok' });
  expect(first.decisions.global).toMatchObject({ remaining: 9 });
  await checkout.take(wishes);

  const denied = await checkout.take(wishes);
  expect(denied).toMatchObject({ allowed: false, limiter: 'tenant', limit: 'subject' });
  expect(denied.retryAfterMs).toBeGreaterThan(1_000_000);
  expect(denied.decisions).toMatchObject({
    global: { allowed: true, remaining: 8 },
    tenant: { allowed: false, reason: 'subject' },
    user: { allowed: true, remaining: 1 },
  });
  denied.done('failed');
  expect([await left(global!), await left(tenant!, 't1'), await left(user!, 'u1')]).toEqual([
    8, 0, 1,
  ]);
  // Of two that deny, the longest wait leads.
  const both = await checkout.take({ ...wishes, user: { subject: 'u1', cost: 2 } });
  expect(both).toMatchObject({ limiter: 'tenant', limit: 'subject' });
  expect(both.decisions.user).toMatchObject({ allowed: false, reason: 'subject' });
});

test('a refund gives back what each of them took', async () => {
  const [a, b] = await limiters({ a: { ...SLOW, capacity: 9 }, b: { ...SLOW, capacity: 9 } });
  const set = takeAll([a!, b!]);
  const decision = await set.take({ b: { cost: 4 } });
  expect([await left(a!), await left(b!)]).toEqual([8, 5]);
  expect(await decision.refund()).toMatchObject({ refunded: true });
  expect([await left(a!), await left(b!)]).toEqual([9, 9]);
  expect(await decision.refund()).toMatchObject({ refunded: false });
  await set.take({ b: { cost: 9 } });
  const denied = await set.take();
  expect(await denied.refund()).toMatchObject({ refunded: false });
  expect([await left(a!), await left(b!)]).toEqual([8, 0]);
});

test('takes of one turn go in one call, and equal takes one after another', async () => {
  const [a, b] = await limiters({ a: { ...SLOW, capacity: 50 }, b: { ...SLOW, capacity: 7 } });
  const set = takeAll([a!, b!]);
  await set.take();
  const calls = a!.stats().calls;
  const many = await Promise.all(Array.from({ length: 20 }, () => set.take()));
  expect(a!.stats().calls - calls).toBe(1);
  expect(many.map(({ allowed }) => allowed)).toEqual(many.map((_, i) => i < 6));
  expect(await left(a!)).toBe(43);
  expect(a!.stats()).toMatchObject({ admitted: 7, denied: {} });
  expect(b!.stats()).toMatchObject({ admitted: 7, denied: { rate: 14 } });
});

test('shadow denies nobody and is told apart; off is never charged; an open breaker denies all', async () => {
  const [live, watched, off] = await limiters({
    live: { ...SLOW, capacity: 5 },
    watched: { ...SLOW, capacity: 1, mode: 'shadow' },
    off: { ...SLOW, capacity: 1, mode: 'off' },
  });
  const set = takeAll([live!, watched!, off!]);
  expect(await set.take()).toMatchObject({ allowed: true, wouldAllow: true });
  const second = await set.take();
  expect(second).toMatchObject({ allowed: true, wouldAllow: false, limiter: 'watched' });
  expect(second.decisions).toMatchObject({
    live: { wouldAllow: true, remaining: 3 },
    watched: { allowed: true, wouldAllow: false, limit: 'rate' },
    off: { reason: 'off' },
  });
  expect(watched!.stats().wouldDeny).toEqual({ rate: 1 });
  const address = { name: 'live', group: `group-${groups}` };
  await setParams(bench.admin, address, { state: 'open', openUntil: -1 });
  const denied = await set.take();
  expect(denied).toMatchObject({
    allowed: false,
    limiter: 'live',
    limit: 'breaker',
    retryAfterMs: null,
  });
});

test('places in flight are held for all, given back when one denies, and at done', async () => {
  const [a, b] = await limiters(
    {
      a: { ...SLOW, capacity: 2, inFlightMax: 5 },
      b: { rate: 1000, capacity: 1000, inFlightMax: 1 },
    },
    { completions: true },
  );
  const set = takeAll([a!, b!]);
  const first = await set.take();
  expect([a!.stats().inFlight, b!.stats().inFlight]).toEqual([1, 1]);
  const full = await set.take();
  expect(full).toMatchObject({ allowed: false, limiter: 'b', limit: 'in_flight' });
  expect([a!.stats().inFlight, b!.stats().inFlight]).toEqual([1, 1]);
  first.done();
  first.done();
  expect(await set.run({}, () => 7)).toBe(7);
  expect([a!.stats().inFlight, b!.stats().inFlight]).toEqual([0, 0]);
  const denied = await set.run({}, () => 8).catch((error: unknown) => error);
  expect(denied).toBeInstanceOf(FlyballDeniedError);
  expect((denied as Error).message).toContain('limiter a denied: rate');
  expect([a!.stats().inFlight, b!.stats().inFlight]).toEqual([0, 0]);
});

test('what Redis denied is repeated here, without a call', async () => {
  const [a, b] = await limiters(
    { a: { ...SLOW, capacity: 9 }, b: { ...SLOW, capacity: 1 } },
    { denyCache: true },
  );
  const set = takeAll([a!, b!]);
  await set.take();
  await set.take();
  const calls = a!.stats().calls;
  expect(await set.take()).toMatchObject({ allowed: false, limiter: 'b', source: 'cached' });
  expect(a!.stats().calls).toBe(calls);
  expect(await left(a!)).toBe(8);
});

test('I8: Redis is silent: each limiter has its choice, one that denies denies all, nothing is charged late', async () => {
  const own = await startRedis();
  const far = own.client();
  const group = 'away';
  const make = (name: string, onRedisError: 'closed' | 'local' | 'open', deadlineMs = 100) =>
    createLimiter({ name, group, url: own.url, deadlineMs, onRedisError, onWarning: () => {} });
  // The third only looks: it waits for as long as a busy machine takes.
  const [a, b, looker] = [make('a', 'local'), make('b', 'closed'), make('a', 'closed', 20_000)];
  open.push(a, b, looker);
  for (const name of ['a', 'b']) await setParams(far, { name, group }, { ...SLOW, capacity: 5 });
  const set = takeAll([a, b]);
  await until('Redis decides', async () => (await set.take()).source === 'redis');
  const before = await left(looker);
  own.pause();
  for (let i = 0; i < 6; i++) {
    expect(await set.take()).toMatchObject({ allowed: false, limiter: 'b', limit: 'redis' });
  }
  // What the local bucket gave to no avail came back: a by itself still admits.
  expect(await a.take()).toMatchObject({ allowed: true, source: 'local' });
  expect(await set.take({}, { onRedisError: 'open' })).toMatchObject({
    allowed: true,
    source: 'open',
  });
  own.resume();
  await until('Redis is back', () => a.stats().redisUp && b.stats().redisUp);
  await until('Redis decides again', async () => (await a.peek()).source === 'redis');
  expect(await left(looker)).toBe(before);
  await Promise.all(open.splice(0).map((limiter) => limiter.close()));
  await own.stop();
});

test('an aborted take rejects with its reason and holds nothing', async () => {
  const [a, b] = await limiters(
    { a: { ...SLOW, capacity: 5 }, b: { inFlightMax: 3 } },
    { completions: true },
  );
  const set = takeAll([a!, b!]);
  await set.take().then((decision) => decision.done());
  const stop = new AbortController();
  const taking = set.take({}, { signal: stop.signal });
  stop.abort(new Error('gone'));
  await expect(taking).rejects.toThrow('gone');
  await expect(set.take({}, { signal: stop.signal })).rejects.toThrow('gone');
  expect(b!.stats().inFlight).toBe(0);
  expect(await left(a!)).toBe(4);
});

test('C31: what one call cannot decide is a typed error at creation', async () => {
  const [a, b] = await limiters({ a: {}, b: {} });
  const [c] = await limiters({ c: {} });
  const single = bench.limiter({ name: 'single' });
  const group = `group-${groups - 1}`;
  const window = { algorithm: 'sliding-log', windowMs: 1000, rate: 5 } as const;
  const log = bench.limiter({ name: 'log', group, ...window });
  const other = createLimiter({ name: 'other', group, redis: bench.admin });
  open.push(other);
  const wrong: [Limiter[], RegExp][] = [
    [[], /0 limiters.*1 to 16/],
    [[a!, c!], /"c" has group "group-\d+", but only keys of one group lie on one cluster slot/],
    [[a!, single], /"single" has no group/],
    [[a!, a!], /"a" stands twice/],
    [[a!, log], /"log" has algorithm "sliding-log"/],
    [[a!, other], /"other" has another Redis client or prefix/],
    [[a!, {} as Limiter], /limiter 2 is an object. Give what createLimiter\(\) returned/],
  ];
  for (const [list, message] of wrong) {
    expect(() => takeAll(list)).toThrow(message);
    expect(() => takeAll(list)).toThrow(TypeError);
  }
  const set = takeAll([a!, b!]);
  await expect(set.take({ nobody: {} })).rejects.toThrow(/does not hold a limiter "nobody".*a, b/);
  await expect(set.take({ a: { cost: 0 } })).rejects.toThrow('cost is 0');
  expect(await takeAll([single]).take()).toMatchObject({ allowed: true });
});

test('C31: what only Redis knows fails the self-test loudly, and no call crosses slots', async () => {
  const [a, b] = await limiters({ a: { capacity: 5 }, 'b-moved': { capacity: 5 } });
  await bench.admin.hset(fleetKeys().limiters, 'b-moved', 'elsewhere');
  const set = takeAll([a!, b!]);
  await expect(set.ready()).rejects.toThrow(
    /a lies on \{group-\d+\}, b-moved lies on \{elsewhere\}/,
  );
  const decision = await set.take();
  expect(decision.decisions.a).toMatchObject({ source: 'local' });
  expect(warnings.map(({ code }) => code)).toContain('FLYBALL_W_TAKE_ALL');
  expect(a!.stats()).toMatchObject({ decisions: { local: 1 }, redisUp: true });
  await bench.admin.hdel(fleetKeys().limiters, 'b-moved');
});

test('C31: on a Cluster a set is one call on one slot', async () => {
  const node = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
  const control = node.client({ enableReadyCheck: false });
  await control.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until('the cluster is up', async () =>
    String(await control.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
  const cluster = new Cluster([{ host: '127.0.0.1', port: node.port }]);
  const made = ['global', 'user'].map((name) =>
    createLimiter({ name, group: 'shop', redis: cluster, deadlineMs: 5_000, onWarning: () => {} }),
  );
  for (const name of ['global', 'user']) {
    await setParams(control, { name, group: 'shop' }, { subjectRate: 5, subjectCapacity: 5 });
  }
  const set = takeAll(made);
  await set.ready();
  const decisions = await Promise.all(
    Array.from({ length: 150 }, (_, i) => set.take({ user: { subject: `id:${i * 7919}` } })),
  );
  expect(decisions.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true);
  expect(made[0]!.stats().redisErrors).toBe(0);
  await Promise.all(made.map((limiter) => limiter.close()));
  cluster.disconnect();
  await node.stop();
});
