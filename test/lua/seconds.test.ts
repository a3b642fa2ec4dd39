import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { readHashes } from '../../src/redis/read-hashes.js';
import { sendReport } from '../../src/redis/telemetry-report.js';
import { readSeconds } from '../../src/redis/telemetry-seconds.js';
import { redisBench } from '../support/redis-bench.js';

let redis: Redis;
redisBench((bench) => {
  redis = bench.redis;
});

const keyOf = (i: number, second = 7) => limiterKeys({ name: `l${i}` }).telemetry(second);
const wish = (key: string, mark = '') => ({ key, mark });
const read = async (...wishes: { key: string; mark: string }[]) => {
  const { seconds, nowUs } = await readSeconds(redis, wishes);
  const texts = seconds.map((second) => second?.lines.toString() ?? null);
  return { texts, marks: seconds.map((second) => second?.mark), nowUs };
};

async function calls(command: string): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

async function redisNowUs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}

test('a report is added in one call, and lives for two minutes', async () => {
  await sendReport(redis, keyOf(1), 'off\n3\nl:12\n2\nn\n1\n');
  await sendReport(redis, keyOf(1), 'off\n4\nl:-3\n1\nn\n1');
  expect(await redis.hgetall(keyOf(1))).toEqual({ off: '7', 'l:12': '2', 'l:-3': '1', n: '2' });
  const ttl = await redis.pttl(keyOf(1));
  expect(ttl).toBeGreaterThan(110_000);
  expect(ttl).toBeLessThanOrEqual(120_000);
});

test('only what was added is told: nothing of a second that stands, all of one that began anew', async () => {
  await sendReport(redis, keyOf(1), 'off\n3\nn\n1\n');
  const first = await read(wish(keyOf(1)), wish(keyOf(2)));
  // One that is not there, and was not known either, says nothing.
  expect(first.texts).toEqual(['off\n3\nn\n1', null]);
  const mark = first.marks[0]!;
  expect((await read(wish(keyOf(1), mark))).texts).toEqual([null]);
  // Counts without their flush are the first half of one that is sent field by field.
  await redis.hincrby(keyOf(1), 'ok', 1);
  await redis.hincrby(keyOf(1), 'n', 1);
  const [grown] = (await read(wish(keyOf(1), mark))).texts;
  expect(grown).toContain('ok\n1');
  await redis.del(keyOf(1));
  expect((await read(wish(keyOf(1), mark))).texts).toEqual(['']);
  // As many flushes as before, and other counts: the mark tells them apart.
  await sendReport(redis, keyOf(1), 'off\n9\nn\n1\n');
  expect((await read(wish(keyOf(1), mark))).texts).toEqual(['off\n9\nn\n1']);
});

test('what a hundred limiters read in one turn is a few calls; a key of another type fails its own alone', async () => {
  for (let i = 0; i < 100; i++) await sendReport(redis, keyOf(i), `off\n${i}\nn\n1\n`);
  await read(wish(keyOf(0)));
  const before = await calls('evalsha');
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, i) => read(wish(keyOf(i)), wish(keyOf(i, 8)))),
  );
  expect(all.map(({ texts }) => texts)).toEqual(
    Array.from({ length: 100 }, (_, i) => [`off\n${i}\nn\n1`, null]),
  );
  expect((await calls('evalsha')) - before).toBeLessThanOrEqual(4);
  const [seconds] = (await redis.time()) as [number, number];
  expect(Math.abs(all[99]!.nowUs / 1e6 - Number(seconds))).toBeLessThan(60);

  await redis.set(keyOf(3), 'not a hash');
  const some = await Promise.allSettled([2, 3, 4].map((i) => read(wish(keyOf(i)))));
  expect(some.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

test('hashes of many limiters travel together, each with its own fault; their time is read after them', async () => {
  const names = ['a', 'b', 'c'].map((name) => limiterKeys({ name }));
  await redis.hset(names[0]!.params, { rate: '1' });
  await redis.set(names[1]!.params, 'not a hash');
  const beforeUs = await redisNowUs();
  const read = await Promise.allSettled(
    names.map((keys) => readHashes(redis, keys, [keys.params])),
  );
  const afterUs = await redisNowUs();
  expect(read.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  const [first, , third] = read as PromiseFulfilledResult<Awaited<ReturnType<typeof readHashes>>>[];
  expect(first!.value.hashes).toEqual([{ rate: '1' }]);
  expect(third!.value.hashes).toEqual([{}]);
  for (const { value } of [first!, third!]) {
    expect(value.nowUs).toBeGreaterThanOrEqual(beforeUs);
    expect(value.nowUs).toBeLessThanOrEqual(afterUs);
  }
});
