import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { LOOK_SECONDS, readLook } from '../../src/redis/look.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { sendReport } from '../../src/redis/telemetry-report.js';
import { sumSeconds, trafficOfHash, trafficOfLines } from '../../src/view/traffic.js';
import { redisBench } from '../support/redis-bench.js';

let redis: Redis;
redisBench((bench) => {
  redis = bench.redis;
});

const NEWEST = 1_000;
const keysOf = (name: string) => limiterKeys({ name });
const wish = (marks: readonly string[] = []) => ({
  lease: '',
  entry: '',
  seconds: Array.from({ length: LOOK_SECONDS }, (_, i) => ({
    second: NEWEST - i,
    mark: marks[i] ?? '',
  })),
});

test('who leads, what they told, shares; what is known is not told again', async () => {
  const keys = keysOf('checkout');
  const nothing = await readLook(redis, keys, wish());
  expect(nothing).toEqual({
    ...{ lease: null, status: null, shares: {}, entries: [] },
    seconds: [null, null, null, null, null],
  });
  await redis.set(keys.lease, 'host:1:aa:7');
  await redis.set(keys.status, '{"é":1}');
  await redis.hset(keys.inFlight, { a: '1 2 1 3', b: '' });
  const whole = await readLook(redis, keys, { ...wish(), lease: 'host:1:aa:6' });
  expect(whole).toMatchObject({ lease: 'host:1:aa:7', status: '{"é":1}' });
  expect(whole.shares).toEqual({ a: '1 2 1 3', b: '' });
  const known = await readLook(redis, keys, { ...wish(), lease: 'host:1:aa:7' });
  expect(known).toMatchObject({ lease: 'host:1:aa:7', status: null });
  await redis.del(keys.lease);
  const gone = await readLook(redis, keys, { ...wish(), lease: 'host:1:aa:7' });
  expect(gone).toMatchObject({ lease: null, status: '{"é":1}' });
});

test('entries after the one that is known, when they are asked for; without a log none', async () => {
  const keys = keysOf('checkout');
  for (let i = 1; i <= 120; i++) await redis.xadd(keys.audit, `${i}-0`, 'n', String(i));
  const found = async (entry: string) =>
    (await readLook(redis, keys, { ...wish(), entry })).entries;
  expect(await found('')).toEqual([]);
  expect(await found('118-0')).toEqual([
    ['119-0', ['n', '119']],
    ['120-0', ['n', '120']],
  ]);
  expect(await found('0-0')).toHaveLength(100);
  expect(await found('120-0')).toEqual([]);
  await redis.set(keys.audit, 'no stream');
  expect(await found('0-0')).toEqual([]);
});

test('only a second that grew is told; one that went is told as empty', async () => {
  const keys = keysOf('checkout');
  await sendReport(redis, keys.telemetry(NEWEST), 'off\n3\nl:12\n2\np:a\n1\nn\n1\n');
  await sendReport(redis, keys.telemetry(NEWEST - 4), 'off\n5\nd:rate\n2\nn\n1\n');
  const first = (await readLook(redis, keys, wish())).seconds;
  expect(first.map((second) => second?.lines ?? null)).toEqual([
    ['3', '0', '1', '0', 'a', ''],
    ...[null, null, null],
    ['5', '0', '1', '0', '', '', 'd:rate', '2'],
  ]);
  const marks = first.map((second) => second?.mark ?? '');
  await sendReport(redis, keys.telemetry(NEWEST), 'off\n4\nn\n1\n');
  const second = (await readLook(redis, keys, wish(marks))).seconds;
  expect(second.map((one) => one?.lines[0] ?? null)).toEqual(['7', null, null, null, null]);
  await redis.del(keys.telemetry(NEWEST - 4));
  expect((await readLook(redis, keys, wish(marks))).seconds[4]).toEqual({ mark: '', lines: [] });
});

test('many limiters go in few calls, each with its own; one of another type is the fault of its own alone', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `l${i}`);
  for (const name of names) await redis.set(keysOf(name).lease, `owner-of-${name}`);
  await redis.set(keysOf('l3').inFlight, 'no hash');
  const before = await calls();
  const read = await Promise.allSettled(names.map((name) => readLook(redis, keysOf(name), wish())));
  // Three calls of five at most, of which one is asked again one by one.
  expect((await calls()) - before).toBeLessThanOrEqual(3 + 5);
  for (const [i, one] of read.entries()) {
    if (i === 3) expect(one.status).toBe('rejected');
    else expect(one).toMatchObject({ value: { lease: `owner-of-l${i}` } });
  }
});

async function calls(): Promise<number> {
  const stats = await redis.info('commandstats');
  const of = (name: string) =>
    Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return of('evalsha') + of('eval');
}

const field = fc.oneof(
  fc.constantFrom(FIELD.offered, FIELD.admitted, FIELD.flushes, FIELD.inFlight, 'ok', 'err', 'nn'),
  fc.constantFrom('offf', 'xoff', 'd', 'd:', 'pr:', 'p:', 'dd:rate', 'prp:a', 'sd', 'sdx:a'),
  fc.constantFrom(FIELD.denied('rate'), FIELD.wouldDeny('in_flight'), FIELD.denied('d:x')),
  fc.constantFrom(FIELD.process('a'), FIELD.reportingProcess('b'), FIELD.process('Ü:1')),
  fc.integer({ min: -50, max: 400 }).map(FIELD.latency),
  fc.integer({ min: -50, max: 400 }).map(FIELD.oldest),
);
const count = fc.oneof(fc.nat(1e6).map(String), fc.constantFrom('-1', '', '1.5', 'x'));
const hash = fc.dictionary(field, count, { noNullPrototype: true, minKeys: 1 });

test('what is told of seconds sums to the same as their whole hashes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(hash, { minLength: 1, maxLength: LOOK_SECONDS }), async (hashes) => {
      const keys = keysOf('checkout');
      await redis.flushall();
      // A second is there once it was flushed.
      const whole = hashes.map((one) => ({ ...one, n: one.n ?? '1' }));
      for (const [i, one] of whole.entries()) await redis.hset(keys.telemetry(NEWEST - i), one);
      const { seconds } = await readLook(redis, keys, wish());
      const told = seconds.flatMap((second) => (second === null ? [] : [second.lines]));
      expect(sumSeconds(told.map(trafficOfLines), 5)).toEqual(
        sumSeconds(whole.map(trafficOfHash), 5),
      );
    }),
    { numRuns: 100 },
  );
});
