/** What Redis keeps of alerts: told once, ended once, whatever dies, is forgotten, or was written there by strangers. */
import type { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { type ManualClock, manualClock } from '../../src/clock.js';
import { createAlerts } from '../../src/daemon/alerts.js';
import type { FleetFacts } from '../../src/daemon/fleet-alerts.js';
import type { ManagedLimiter } from '../../src/daemon/managed-limiter.js';
import type { Destination } from '../../src/policy/notify-schema.js';
import { createMetrics } from '../../src/report/metrics.js';
import type { Alert } from '../../src/report/notify/alert.js';
import { createKnownAlerts } from '../../src/report/notify/known-alerts.js';
import { readAlerts } from '../../src/view/alerts.js';
import { until } from '../support/daemon.js';
import { type Receiver, startReceiver } from '../support/receiver.js';
import { redisBench } from '../support/redis-bench.js';

const KEY = 'flyball:alerts';
const MINUTE_MS = 60_000;
let redis: Redis;
let receiver: Receiver;
let clock: ManualClock;
let closing: (() => Promise<void>)[] = [];

redisBench(async (bench) => {
  ({ redis } = bench);
  receiver = await startReceiver();
  clock = manualClock();
  closing = [];
});
afterEach(async () => {
  await Promise.all(closing.map((close) => close()));
  await receiver.close();
});

const hook = (more: Partial<Destination> = {}) =>
  ({ to: 'webhook', url: `${receiver.url}/hook`, ...more }) as Destination;

/** One daemon's alerts, with these limiters and whom they tell. */
function daemon(owner: string, notify: Record<string, Destination[]>, facts?: () => FleetFacts) {
  const failed: string[] = [];
  const silent = { info() {}, warn() {}, debug() {} };
  const log = { ...silent, error: (_of: object, text: string) => failed.push(text) };
  const limiters = new Map(
    Object.entries(notify).map(([name, to]) => [name, { notify: to } as unknown as ManagedLimiter]),
  );
  const alerts = createAlerts({
    ...{ redis, owner, clock, prefix: 'flyball', env: {}, metrics: createMetrics(owner), limiters },
    log: log as unknown as Parameters<typeof createAlerts>[0]['log'],
    facts: facts ?? (() => ({ redisAway: null, faults: [] })),
  });
  closing.push(() => alerts.close());
  const { notifier, fleetAlerts } = alerts;
  return {
    ...{ notifier, fleetAlerts, failed, limiters },
    /** So many minutes; what it sees in each of them. */
    async minutes(count: number, sees: string[] = []) {
      for (let i = 0; i < count; i++) {
        clock.advance(MINUTE_MS);
        notifier.sees(sees);
        await notifier.sweep();
      }
    },
  };
}

function trip(more: Partial<Alert> = {}): Alert {
  return {
    ...{ key: 'pay/trip', kind: 'trip', severity: 'critical', state: 'firing', limiter: 'pay' },
    ...{ owner: null, what: 'tripped', why: 'errors', who: 'd1', numbers: [], undo: null },
    ...{ look: 'flyball status pay', atMs: clock.nowMs() },
    ...more,
  } as Alert;
}
const over = () => trip({ state: 'resolved', severity: 'info' });
const told = () =>
  receiver.got
    .map(({ body }) => JSON.parse(body) as Alert)
    .map(({ kind, state, limiter }) => `${limiter ?? 'all'} ${kind} ${state}`);
const hears = (...expected: string[]) =>
  until(
    `${expected.join(', ')}, not ${told().join(', ')}`,
    () => told().join() === expected.join(),
  );

/** What has arrived is written down as told a moment later. */
const confirmed = (...keys: string[]) =>
  until(`${keys.join(', ')} told`, async () =>
    (await redis.hmget(KEY, ...keys)).every((text) => text !== null && JSON.parse(text).beat > 0),
  );

test('anything may stand in the hash: it is thrown away, and what is sound is still told', async () => {
  const { notifier, failed, minutes } = daemon('d1', { pay: [hook()], all: [hook()] });
  const strange = [
    ...['', 'null', '5', '[]', '{}', '{"key":"x"', '['.repeat(100_000), `"${'y'.repeat(50_000)}"`],
    ...[{}, { numbers: [1] }, { numbers: [['a', {}]] }, { why: undefined }, { atMs: 1e300 }],
    ...[{ atMs: -1 }, { limiter: {} }, { kind: 'constructor' }, { state: 'resolved' }],
    ...[{ what: 'z'.repeat(20_000) }, { key: 'another' }, { keeper: 7 }],
  ].map((each) =>
    typeof each === 'string'
      ? each
      : JSON.stringify({
          ...trip(),
          keeper: 'x',
          beat: 1,
          remindedMs: 0,
          ...each,
          ...(Object.keys(each).length === 0 ? { keeper: undefined } : {}),
        }),
  );
  for (const [i, text] of strange.entries()) await redis.hset(KEY, `k${i}`, text);
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`__proto__${i}`, 'x']));
  await redis.hset(KEY, many);
  await minutes(2);
  expect(await redis.hlen(KEY)).toBe(0);
  notifier.raise([trip()]);
  await hears('pay trip firing');
  expect(failed).toEqual([]);
  expect(await redis.pttl(KEY)).toBeGreaterThan(0);
});

test('a key of another type gives way', async () => {
  const { notifier } = daemon('d1', { pay: [hook()] });
  await redis.set(KEY, 'a string');
  notifier.raise([trip()]);
  await hears('pay trip firing');
  await confirmed('pay/trip');
  await redis.del(KEY);
  await redis.lpush(KEY, 'a list');
  expect(await notifier.firing(['pay/trip'])).toEqual([]);
});

test('two daemons: one tells it, whoever tells its end ends it once', async () => {
  const [a, b] = [daemon('d1', { pay: [hook()] }), daemon('d2', { pay: [hook()] })];
  a.notifier.raise([trip()]);
  await hears('pay trip firing');
  b.notifier.raise([trip()]);
  expect(await b.notifier.firing(['pay/trip', 'pay/at_floor'])).toEqual(['pay/trip']);
  b.notifier.raise([over()]);
  await hears('pay trip firing', 'pay trip resolved');
  expect(await b.notifier.firing(['pay/trip'])).toEqual([]);
  await Promise.all([a.minutes(3), b.minutes(3)]);
  expect(told()).toHaveLength(2);
});

test('who looks back sees what fires before what is over, with its words; after a day that is forgotten', async () => {
  const session = { redis, url: '', prefix: undefined };
  const seen = async () =>
    (await readAlerts(session)).alerts.map(({ id, state }) => `${id} ${state}`);
  const { notifier, minutes } = daemon('d1', { pay: [hook()] });
  expect(await readAlerts(session)).toMatchObject({ alerts: [], more: false });
  const beganMs = clock.nowMs();
  notifier.raise([trip()]);
  await hears('pay trip firing');
  clock.advance(MINUTE_MS);
  notifier.raise([over()]);
  await hears('pay trip firing', 'pay trip resolved');
  const ended = 'flyball/ended/pay/trip resolved';
  await until('its end to be kept', async () => (await seen()).join() === ended);
  expect((await readAlerts(session)).alerts).toMatchObject([
    { sinceMs: beganMs, endedMs: beganMs + MINUTE_MS, undo: null, keeper: 'd1', limiter: 'pay' },
  ]);
  clock.advance(MINUTE_MS);
  const why = '\u202eerrors\u001b[31m';
  notifier.raise([trip({ undo: 'flyball reset pay', why })]);
  notifier.raise([trip({ key: 'pay/x', kind: 'failover', state: 'event', severity: 'warning' })]);
  const all = ['pay/trip firing', 'pay/x event', ended];
  await until('all three', async () => (await seen()).join() === all.join());
  expect((await readAlerts(session)).alerts[0]).toMatchObject({
    ...{ undo: 'flyball reset pay', endedMs: null, sinceMs: clock.nowMs() },
    why: 'errors [31m',
  });
  await confirmed('pay/trip', 'pay/x');
  clock.advance(86_400_000);
  await minutes(1, ['pay/trip']);
  expect(await seen()).toEqual(['pay/trip firing']);
  await redis.del(KEY);
  await redis.set(KEY, 'a string');
  expect(await seen()).toEqual([]);
});

test('what no daemon sees any more is over: its limiter is gone, or its daemon, or its signal', async () => {
  const [a, b] = [daemon('d1', { pay: [hook()] }), daemon('d2', {})];
  a.notifier.raise([trip()]);
  await hears('pay trip firing');
  a.limiters.clear();
  await a.minutes(4, ['pay/trip']);
  await a.minutes(8);
  await hears('pay trip firing', 'pay trip resolved');
  expect(JSON.parse(receiver.got[1]!.body).why).toContain('no daemon sees it any more');
  await b.minutes(8);
  expect(told()).toHaveLength(2);
});

test('what is seen stays, whatever Redis and clocks do; it is told again every four hours, by one of them', async () => {
  const [a, b] = [daemon('d1', { pay: [hook()] }), daemon('d2', { pay: [hook()] })];
  a.notifier.raise([trip()]);
  await hears('pay trip firing');
  const both = async (minutes: number) => {
    for (let i = 0; i < minutes; i++) {
      clock.advance(MINUTE_MS);
      for (const { notifier } of [a, b]) {
        notifier.sees(['pay/trip']);
        await notifier.sweep();
      }
    }
  };
  await both(239);
  expect(told()).toHaveLength(1);
  await both(2);
  await hears('pay trip firing', 'pay trip firing');
  // Emptied: it is known again, and its end is told.
  await redis.flushall();
  await both(3);
  expect(await redis.hexists(KEY, 'pay/trip')).toBe(1);
  clock.step(-1_800_000);
  await both(20);
  expect(told()).toHaveLength(2);
  await redis.flushall();
  a.notifier.raise([over()]);
  await hears('pay trip firing', 'pay trip firing', 'pay trip resolved');
});

test('its teller dies before it has sent anything: who leads next tells it', async () => {
  await redis.hset(
    KEY,
    'pay/trip',
    JSON.stringify({ ...trip(), keeper: 'dead', beat: 0, remindedMs: clock.nowMs() }),
  );
  const heir = daemon('d2', { pay: [hook()] });
  await heir.minutes(2, ['pay/trip']);
  expect(told()).toEqual([]);
  await heir.minutes(2, ['pay/trip']);
  await hears('pay trip firing');
  await heir.minutes(5, ['pay/trip']);
  expect(told()).toHaveLength(1);
});

test('an event of a teller that died before it had sent it: one of those who live tells it, once', async () => {
  const dead = { keeper: 'dead', beat: 0, remindedMs: clock.nowMs() };
  const event = (key: string, more: Partial<Alert> = {}) => ({
    ...trip({ key, kind: 'auto_rollback', state: 'event', limiter: 'pay' }),
    ...more,
  });
  const old = event('pay/auto_rollback/1/6', { atMs: clock.nowMs() - 2 * 3_600_000 });
  const sent = event('pay/auto_rollback/1/7');
  for (const [alert, beat] of [
    [event('pay/auto_rollback/1/8'), 0],
    [old, 0],
    [sent, 1],
  ] as const) {
    await redis.hset(KEY, alert.key, JSON.stringify({ ...alert, ...dead, beat }));
  }
  const [b, c] = ['d2', 'd3'].map((owner) => daemon(owner, { pay: [hook()] }));
  await Promise.all([b!.minutes(2), c!.minutes(2)]);
  expect(told()).toEqual([]);
  for (let i = 0; i < 6; i++) await Promise.all([b!.minutes(1), c!.minutes(1)]);
  await hears('pay auto_rollback event');
  const known = async () => JSON.parse((await redis.hget(KEY, 'pay/auto_rollback/1/8'))!);
  await until('that it was told is known', async () => (await known()).beat === 1);
  expect(told()).toHaveLength(1);
});

test('of two daemons that find such an event at once, the slower one leaves it to the other', async () => {
  const known = createKnownAlerts(redis, 'flyball');
  const alert = trip({ kind: 'auto_rollback', state: 'event' });
  const record = { alert, beat: 0, remindedMs: clock.nowMs() };
  const found = { ...record, keeper: 'dead' };
  await known.put(found);
  expect(await known.takeUntold(found)).toBe(true);
  expect(await known.takeUntold(found)).toBe(false);
  expect(await known.claim({ ...record, keeper: 'd2' })).toBe('new');
  expect(await known.takeUntold(found)).toBe(false);
  expect(JSON.parse((await redis.hget(KEY, alert.key))!)).toMatchObject({ keeper: 'd2', beat: 0 });
});

test('an event that nobody wants is told to nobody later', async () => {
  const { notifier } = daemon('d1', { pay: [] });
  notifier.raise([trip({ key: 'pay/auto_rollback/1/8', kind: 'auto_rollback', state: 'event' })]);
  const beat = async () => {
    const text = await redis.hget(KEY, 'pay/auto_rollback/1/8');
    return text === null ? null : JSON.parse(text).beat;
  };
  await until('it is known', async () => (await beat()) === 1);
});

test('a daemon without its lease says what is known of it, and no more', async () => {
  const { fleetAlerts } = daemon('d1', { pay: [hook()], 'pay.canary': [] });
  fleetAlerts.leaseLost('pay.canary', 7, 'another daemon holds it, or it lapsed');
  await hears('pay lease_lost event');
  const { what, why } = JSON.parse(receiver.got[0]!.body);
  expect(what).toBe('its canary: this daemon lost the lease (token 7)');
  expect(why).toBe(
    'Redis refused its write: another daemon holds it, or it lapsed. It may have been paused, cut off, or slower than the lease; who holds the lease now leads',
  );
});

test('the end goes to whom the beginning was told, also when the policy names others by then', async () => {
  const before = hook({ url: `${receiver.url}/before` } as Partial<Destination>);
  const { notifier, limiters } = daemon('d1', { pay: [before] });
  notifier.raise([trip()]);
  await hears('pay trip firing');
  limiters.set('pay', { notify: [hook({ on: ['trip'] })] } as unknown as ManagedLimiter);
  notifier.raise([over()]);
  await until('both are told', () => receiver.got.length === 3);
  expect(receiver.got.map(({ path }) => path)).toEqual(['/before', '/before', '/hook']);
});

test('who wants retrips alone is told their end, and not that of a trip', async () => {
  const { notifier } = daemon('d1', { pay: [hook({ on: ['retrip'] })] });
  notifier.raise([trip()]);
  notifier.raise([over()]);
  notifier.raise([trip()]);
  notifier.raise([trip({ kind: 'retrip' })]);
  notifier.raise([over()]);
  await hears('pay retrip firing', 'pay trip resolved');
});

test('what concerns all goes to each address once, whichever limiter saw it, and however often it is named', async () => {
  const { notifier } = daemon('d1', {
    silent: [],
    pay: [hook({ on: ['failover'] }), hook({ perMinute: 5 })],
    also: [hook()],
  });
  notifier.raise([
    trip({ key: 'flyball/failover/r1', kind: 'failover', state: 'event', limiter: null }),
  ]);
  await hears('all failover event');
});

test('a broken policy file: its end is told also when its daemon is gone', async () => {
  let faults = [
    { file: 'pay.ts', field: '', message: 'is no policy.' },
  ] as unknown as FleetFacts['faults'];
  const facts = () => ({ redisAway: null, faults });
  const a = daemon('d1', { pay: [hook()] }, facts);
  await hears('all policy_failed firing');
  await closing.pop()!();
  faults = [];
  const b = daemon('d2', { pay: [hook()] });
  await b.minutes(8);
  await hears('all policy_failed firing', 'all policy_failed resolved');
  expect(a.failed).toEqual([]);
});
