import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Clock, manualClock, systemClock } from '../../src/clock.js';
import { createLimiter } from '../../src/enforce/limiter.js';
import { countOf, packBins } from '../../src/estimate/bins.js';
import { binOf } from '../../src/histogram.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import type { TelemetryReading } from '../../src/sense/readings.js';
import { createTelemetrySource } from '../../src/sense/telemetry.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

const address = { name: 'checkout' };

function source(clock: Clock = systemClock, deadlineMs?: number) {
  return createTelemetrySource({ redis, address, clock, ...(deadlineMs ? { deadlineMs } : {}) });
}

/** What one process of the SDK sends in one flush; `late` seconds after the second it is counted in. */
async function flush(process: string, fields: Record<string, number>, late = 0): Promise<void> {
  const [seconds] = (await redis.time()) as [number, number];
  const key = limiterKeys(address).telemetry(Number(seconds) - late);
  const pipeline = redis.pipeline();
  const all = { ...fields, [FIELD.flushes]: 1, [FIELD.process(process)]: 1 };
  for (const [field, count] of Object.entries(all)) pipeline.hincrby(key, field, count);
  await pipeline.pexpire(key, 120_000).exec();
}

async function reading(from: ReturnType<typeof source>): Promise<TelemetryReading> {
  const look = await from.read();
  if (look.reading.kind === 'missing') throw new Error(JSON.stringify(look.reading));
  return look.reading;
}

test('a fresh start counts from now, not what was reported before', async () => {
  await flush('a', { off: 50 });
  const telemetry = source();
  expect((await telemetry.read()).reading).toMatchObject({
    kind: 'missing',
    reason: 'not_started',
  });
  expect((await telemetry.read()).reading).toMatchObject({ kind: 'missing', reason: 'no_data' });
  await flush('a', { off: 7 });
  expect((await reading(telemetry)).offered).toBe(7);
});

test('every count is handed on once: flushes late, twice in a second, of several processes', async () => {
  const telemetry = source();
  await telemetry.read();
  let sent = 0;
  let got = 0;
  for (let round = 0; round < 12; round++) {
    for (const [process, late] of [
      ['a', 0],
      ['a', round % 4],
      ['b', (round + 1) % 3],
    ] as const) {
      const off = 1 + ((round * 7) % 11);
      await flush(process, { off });
      await flush(process, { off }, late);
      sent += 2 * off;
    }
    got += (await reading(telemetry)).offered;
  }
  expect(got).toBe(sent);
  expect((await telemetry.read()).reading).toMatchObject({ reason: 'no_data' });
});

test('a whole report comes through', async () => {
  const telemetry = source();
  await telemetry.read();
  await flush('a', {
    [FIELD.offered]: 20,
    [FIELD.admitted]: 15,
    [FIELD.denied('rate')]: 4,
    [FIELD.denied('in_flight')]: 1,
    [FIELD.wouldDeny('rate')]: 2,
    [FIELD.ok]: 10,
    [FIELD.failed]: 2,
    [FIELD.timedOut]: 1,
    [FIELD.cancelled]: 2,
    [FIELD.latency(binOf(100)!)]: 13,
    [FIELD.latencySumUs]: 1_300_000,
    [FIELD.dbWait(binOf(5)!)]: 13,
    [FIELD.dbWaitSumUs]: 65_000,
    [FIELD.code('SYSTEMERROR')]: 2,
    [FIELD.code('constructor')]: 1,
    [FIELD.upstreamOk('pay')]: 10,
    [FIELD.upstreamFailed('pay')]: 2,
    [FIELD.upstreamCode('pay', 'SYSTEMERROR')]: 2,
    [FIELD.generationOk(3)]: 4,
    [FIELD.generationOk(4)]: 6,
    [FIELD.generationFailed(4)]: 3,
    [FIELD.generationCode(4, 'SYSTEMERROR')]: 2,
    [FIELD.reportingProcess('a')]: 1,
    [FIELD.inFlight]: 8,
    [FIELD.oldest(binOf(750)!)]: 1,
    [FIELD.poolWaiting]: 6,
    [FIELD.poolFlushes]: 1,
    'x:of a newer version': 9,
  });
  await flush('b', { [FIELD.inFlight]: 2, [FIELD.oldest(binOf(80)!)]: 1 });
  const got = await reading(telemetry);
  expect(got).toMatchObject({
    processes: 2,
    reporting: 1,
    offered: 20,
    admitted: 15,
    denied: { rate: 4, in_flight: 1 },
    wouldDeny: { rate: 2 },
    ok: 10,
    failed: 3,
    timedOut: 1,
    cancelled: 2,
    latency: [binOf(100), 13],
    latencySumMs: 1300,
    dbWait: [binOf(5), 13],
    dbWaitSumMs: 65,
    codes: { SYSTEMERROR: 2, constructor: 1 },
    upstreams: { pay: { ok: 10, failed: 2, codes: { SYSTEMERROR: 2 } } },
    inFlight: 10,
    poolWaiting: 6,
    generation: { id: 4, ok: 6, failed: 3, codes: { SYSTEMERROR: 2 } },
  });
  expect(got.oldestMs).toBeGreaterThan(740);
  expect(got.oldestMs).toBeLessThan(760);
  expect(got.toMs).toBeGreaterThan(got.fromMs);
});

test('what the SDK reports is what is read', async () => {
  const telemetry = source();
  await telemetry.read();
  const limiter = createLimiter({ name: 'checkout', rate: 1000, capacity: 1000, url: server.url });
  limiter.reportPool(3);
  const outcomes = ['ok', 'ok', 'ok', 'failed', 'timed_out', 'cancelled'] as const;
  for (const outcome of outcomes) {
    // The limiter may still be connecting: what Redis decided or not is not the matter here.
    const decision = await limiter.take();
    decision.done(outcome, outcome === 'failed' ? { code: 'SYSTEM ERROR', upstream: 'pay' } : {});
  }
  const open = await limiter.take();
  const seen: TelemetryReading[] = [];
  await expect
    .poll(
      async () => {
        const { reading } = await telemetry.read();
        if (reading.kind === 'telemetry') seen.push(reading);
        return seen.reduce((sum, { offered }) => sum + offered, 0);
      },
      { timeout: 20_000 },
    )
    .toBe(7);
  const sum = (pick: (reading: TelemetryReading) => number) =>
    seen.reduce((total, reading) => total + pick(reading), 0);
  expect(sum((r) => r.ok)).toBe(3);
  expect(sum((r) => r.failed)).toBe(2);
  expect(sum((r) => r.timedOut)).toBe(1);
  expect(sum((r) => r.cancelled)).toBe(1);
  expect(sum((r) => r.codes.SYSTEM_ERROR ?? 0)).toBe(1);
  expect(sum((r) => r.upstreams.pay?.failed ?? 0)).toBe(1);
  expect(sum((r) => countOf(packBins(r.latency)))).toBe(5);
  const last = seen.at(-1)!;
  expect(last).toMatchObject({ processes: 1, reporting: 1, inFlight: 1, poolWaiting: 3 });
  open.done('ok');
  await limiter.close();
  expect((await reading(telemetry)).ok).toBe(1);
});

test('C60: alive without traffic is a reading of zeros with no latency; a pool nobody reports is unknown', async () => {
  const telemetry = source();
  await telemetry.read();
  await flush('a', {});
  const got = await reading(telemetry);
  expect(got).toMatchObject({ offered: 0, ok: 0, failed: 0, poolWaiting: null, generation: null });
  expect(got.latency).toEqual([]);
});

test('the first half of a flush waits for the rest', async () => {
  const telemetry = source();
  await telemetry.read();
  const [seconds] = (await redis.time()) as [number, number];
  await redis.hincrby(limiterKeys(address).telemetry(Number(seconds)), FIELD.offered, 5);
  expect((await telemetry.read()).reading).toMatchObject({ reason: 'no_data' });
  await flush('a', { off: 2 });
  expect((await reading(telemetry)).offered).toBe(7);
});

test('a flushed Redis is no negative count: what is there now is new', async () => {
  const telemetry = source();
  await telemetry.read();
  await flush('a', { off: 50 });
  expect((await reading(telemetry)).offered).toBe(50);
  await redis.flushall();
  await flush('a', { off: 3 });
  expect((await reading(telemetry)).offered).toBe(3);
});

test('a field that is no count makes the reading missing, never NaN', async () => {
  const telemetry = source();
  await telemetry.read();
  await flush('a', { off: 5 });
  const [seconds] = (await redis.time()) as [number, number];
  // A flush of its own: the second may have changed since the one above.
  const key = limiterKeys(address).telemetry(Number(seconds));
  await redis.multi().hset(key, FIELD.ok, 'many').hincrby(key, FIELD.flushes, 1).exec();
  expect((await telemetry.read()).reading).toMatchObject({
    kind: 'missing',
    reason: 'not_finite',
    detail: expect.stringContaining('field ok'),
  });
});

test('a clock that is set makes one tick unknown; then it starts again from now', async () => {
  const clock = manualClock();
  const telemetry = source(clock);
  await telemetry.read();
  await flush('a', { off: 5 });
  clock.advance(60_000);
  expect((await telemetry.read()).reading).toMatchObject({ reason: 'clock_skew' });
  expect((await telemetry.read()).reading).toMatchObject({ reason: 'not_started' });
  await flush('a', { off: 4 });
  expect((await reading(telemetry)).offered).toBe(4);
});

test('C58: a Redis that hangs or is gone is a missing reading within the deadline, and it heals', async () => {
  const own = await startRedis();
  try {
    const client = own.client({ commandTimeout: 5000, maxRetriesPerRequest: 1 });
    const telemetry = createTelemetrySource({
      redis: client,
      address,
      clock: systemClock,
      deadlineMs: 200,
    });
    await telemetry.read();
    own.pause();
    expect(await telemetry.read()).toMatchObject({ nowMs: null, reading: { reason: 'timeout' } });
    own.resume();
    await expect
      .poll(async () => (await telemetry.read()).nowMs, { timeout: 20_000 })
      .not.toBeNull();
    await own.kill();
    await expect
      .poll(async () => (await telemetry.read()).reading, { timeout: 20_000 })
      .toMatchObject({ kind: 'missing', reason: 'unreachable' });
    await own.restart();
    await expect
      .poll(async () => (await telemetry.read()).nowMs, { timeout: 20_000 })
      .not.toBeNull();
  } finally {
    await own.stop();
  }
});

test('CPU and memory are means over the processes that tell them, delays of event loops by bins', async () => {
  const telemetry = source();
  await telemetry.read();
  await flush('old', { [FIELD.offered]: 1 });
  expect(await reading(telemetry)).toMatchObject({ cpu: null, memory: null, loopDelay: [] });
  const vitals = (cpu: number, memory: number, delayMs: number) => ({
    [FIELD.vitals]: 1,
    [FIELD.cpu]: cpu,
    [FIELD.memory]: memory,
    [FIELD.loopDelay(binOf(delayMs)!)]: 1,
    [FIELD.loopDelaySumUs]: delayMs * 1000,
  });
  await flush('a', vitals(900, 500, 10));
  await flush('b', vitals(300, 100, 30));
  await flush('old', { [FIELD.offered]: 1 });
  const seen = await reading(telemetry);
  expect(seen).toMatchObject({ cpu: 0.6, memory: 0.3, loopDelaySumMs: 40 });
  expect(countOf(packBins(seen.loopDelay!))).toBe(2);
});

test('a service tells how it fares with its second flush', async () => {
  const telemetry = source();
  await telemetry.read();
  const limiter = createLimiter({ redis: server.client(), name: 'checkout', rate: 9, capacity: 9 });
  await expect
    .poll(
      async () => {
        const { reading: seen } = await telemetry.read();
        return seen.kind === 'telemetry' && seen.cpu != null && seen.memory;
      },
      { timeout: 20_000, interval: 300 },
    )
    .toBeGreaterThan(0);
  await limiter.close();
});

test('answers and time of each route come through Redis, also of many processes', async () => {
  const telemetry = source();
  await telemetry.read();
  for (const process of ['a', 'b']) {
    await flush(process, {
      ...{
        [FIELD.ok]: 5,
        [FIELD.routeAnswers('GET /ping')]: 3,
        [FIELD.routeSumUs('GET /ping')]: 60_500,
      },
      ...{ [FIELD.routeAnswers('other')]: 2, [FIELD.routeSumUs('other')]: 800_000 },
    });
  }
  expect((await reading(telemetry)).routes).toEqual({
    GET__ping: { n: 6, sumMs: 121 },
    other: { n: 4, sumMs: 1600 },
  });
});
