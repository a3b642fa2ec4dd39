/** The roll-up of a minute: what the seconds say, what the leader saw, written once by whoever leads. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createHistory, type HistoryTick } from '../../src/daemon/history.js';
import { rollUp, UNWATCHED } from '../../src/daemon/roll-up.js';
import { binOf } from '../../src/histogram.js';
import { createLog } from '../../src/log.js';
import { readHistory } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const MINUTE = 29_665_000;
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

/** One second of a fleet of two: 50 answers of 40 ms, and one of 400. */
function second(): Record<string, string> {
  return {
    [FIELD.flushes]: '2',
    [FIELD.process('a')]: '1',
    [FIELD.process('b')]: '1',
    [FIELD.reportingProcess('a')]: '1',
    [FIELD.offered]: '60',
    [FIELD.admitted]: '52',
    [FIELD.denied('rate')]: '8',
    [FIELD.ok]: '50',
    [FIELD.failed]: '1',
    [FIELD.cancelled]: '1',
    [FIELD.latency(binOf(40)!)]: '50',
    [FIELD.latency(binOf(400)!)]: '1',
    [FIELD.latencySumUs]: '2400000',
    [FIELD.inFlight]: '6',
    [FIELD.poolWaiting]: '3',
    [FIELD.poolFlushes]: '2',
    [FIELD.dbWait(binOf(4)!)]: '51',
    [FIELD.dbWaitSumUs]: '204000',
  };
}
const seconds = (n: number) => Array.from({ length: 60 }, (_, i) => (i < n ? second() : {}));

async function report(minute: number): Promise<void> {
  const pipeline = redis.pipeline();
  for (let s = 0; s < 60; s++) pipeline.hset(keys.telemetry(minute * 60 + s), second());
  await pipeline.exec();
}

const tick = (nowMs: number, more: Partial<HistoryTick> = {}): HistoryTick => ({
  ...{ nowMs, dtMs: 1000, overload: false, drift: false, fresh: true },
  inForce: { state: 'closed', rate: 100, capacity: 200, inFlightMax: 20 },
  ...more,
});

/** As Redis tells them. */
const linesOf = (fields: Record<string, string>) =>
  Buffer.from(Object.entries(fields).flat().join('\n'));

function history() {
  let ticks = 0;
  const clock = { nowMs: () => 0, monotonicMs: () => ticks * 1000 };
  const made = createHistory({ redis, address, clock, log: createLog({ level: 'silent' }) });
  return {
    ...made,
    watch: (one: HistoryTick) => {
      ticks += 1;
      made.watch(one);
    },
  };
}

test('counts add up, gauges and processes are averaged over the whole minute, quantiles are of all answers', () => {
  const row = rollUp(MINUTE, seconds(60).map(linesOf), UNWATCHED)!;
  expect(row).toMatchObject({
    ...{ minute: MINUTE, offered: 3600, admitted: 3120, denied: { rate: 480 } },
    ...{ ok: 3000, failed: 60, cancelled: 60, inFlight: 6, poolWaiting: 3 },
    ...{ processes: 2, reporting: 1, state: null, rate: null, watchedS: 0 },
  });
  expect(row.meanMs).toBeCloseTo(2_400 / 51, 6);
  expect(row.p50Ms! / 40).toBeCloseTo(1, 1);
  expect(row.p999Ms! / 400).toBeCloseTo(1, 1);
  expect(row.dbWaitMs).toBeCloseTo(4, 6);
  // Little's law holds in each point.
  expect(row.points.length).toBe(3);
  for (const [x, n, w] of row.points) {
    expect(x).toBe(51);
    expect(n).toBeCloseTo((x * w) / 1000, 9);
  }
  const half = rollUp(MINUTE, seconds(30).map(linesOf), UNWATCHED)!;
  expect(half).toMatchObject({ ok: 1500, inFlight: 3, processes: 1 });
});

test('an idle minute, and one whose counts are no counts, give no row', () => {
  expect(rollUp(MINUTE, seconds(0).map(linesOf), UNWATCHED)).toBeNull();
  const idle = { [FIELD.flushes]: '1', [FIELD.process('a')]: '1' };
  expect(rollUp(MINUTE, [linesOf(idle)], UNWATCHED)).toBeNull();
  expect(rollUp(MINUTE, [linesOf({ ...second(), [FIELD.ok]: 'NaN' })], UNWATCHED)).toBeNull();
});

test('a row is written after its minute, with what the leader saw of it', async () => {
  await report(MINUTE);
  const one = history();
  const from = MINUTE * 60_000;
  for (let s = 0; s < 60; s++) {
    const more: Partial<HistoryTick> = { overload: s < 5, drift: s < 2, fresh: s >= 3 };
    const state = s < 10 ? ('open' as const) : ('closed' as const);
    const inForce = { state, rate: s, capacity: 200, inFlightMax: 20 };
    one.watch(tick(from + s * 1000, { ...more, inForce }));
  }
  one.watch(tick(from + 65_000));
  await one.close();
  expect(await readHistory(redis, keys, 0)).toEqual([]);
  for (let s = 66; s < 112; s++) one.watch(tick(from + s * 1000));
  const rows = await until('the row', async () => {
    const found = await readHistory(redis, keys, 0);
    return found.length > 0 && found;
  });
  await one.close();
  expect(rows).toMatchObject([
    {
      ...{ minute: MINUTE, watchedS: 60, notClosedS: 10, overloadS: 5, driftS: 2, freshS: 57 },
      ...{ state: 'closed', rate: 59, offered: 3600, inFlightMax: 20 },
    },
  ]);
});

test('after a change of owner in the middle of a minute there is one row, with all counts', async () => {
  await report(MINUTE);
  const from = MINUTE * 60_000;
  const [first, second] = [history(), history()];
  for (let s = 0; s < 30; s++) first.watch(tick(from + s * 1000));
  // The first was paused, not dead: it comes back later, believing that it still leads.
  for (let s = 35; s < 115; s++) second.watch(tick(from + s * 1000, { drift: s === 35 }));
  await second.close();
  second.watch(tick(from + 115_000));
  await second.close();
  for (let s = 111; s < 115; s++) first.watch(tick(from + s * 1000));
  await first.close();
  const rows = await readHistory(redis, keys, 0);
  expect(rows).toMatchObject([{ minute: MINUTE, ok: 3000, watchedS: 25, driftS: 1 }]);
  expect(await redis.hlen(keys.history)).toBe(1);
});

test('a Redis that refuses is asked again, and a clock that went back does not end the history', async () => {
  await report(MINUTE);
  const from = MINUTE * 60_000;
  const one = history();
  await redis.set(keys.history, 'of another type');
  one.watch(tick(from + 111_000));
  await one.close();
  await redis.del(keys.history);
  one.watch(tick(from + 112_000));
  await one.close();
  expect(await redis.hlen(keys.history)).toBe(0);
  for (let s = 113; s < 118; s++) one.watch(tick(from + s * 1000));
  await one.close();
  expect(await redis.hlen(keys.history)).toBe(1);
  await report(MINUTE - 60);
  one.watch(tick(from - 3_600_000 + 111_000));
  await one.close();
  expect((await readHistory(redis, keys, 0)).map((row) => row.minute)).toEqual([
    MINUTE - 60,
    MINUTE,
  ]);
});
