/** Minute roll-ups as stored: written once, read back as they were, kept for 8 days; the layout is a golden file. */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  HISTORY_MINUTE_MS,
  HISTORY_MINUTES,
  type HistoryRow,
  historyText,
  readHistory,
  readHistoryRow,
  trimHistory,
  writeHistoryRow,
} from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const golden = JSON.parse(
  readFileSync(new URL('../contract/history.json', import.meta.url), 'utf8'),
) as { field: string; text: string; row: HistoryRow }[];
const keys = limiterKeys({ name: 'checkout' });
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

const busy = golden[0]!.row;
const at = (minute: number): HistoryRow => ({ ...busy, minute });

test('the layout is the golden one, both ways', () => {
  expect(golden.length).toBe(2);
  for (const { field, text, row } of golden) {
    expect(historyText(row)).toBe(text);
    expect(readHistoryRow(field, text)).toEqual(row);
    expect(text.length).toBeLessThan(300);
  }
});

test('what nothing of ours wrote, or another version did, is left out', async () => {
  const { text } = golden[0]!;
  for (const [field, value] of [
    ['x', text],
    ['29665000', 'nonsense'],
    ['29665001', '[2,1,2]'],
    ['29665002', '{"a":1}'],
    ['29665003', text.replace(/^\[1,/, '[9,')],
  ]) {
    expect(readHistoryRow(field!, value!)).toBeNull();
    await redis.hset(keys.history, field!, value!);
  }
  await writeHistoryRow(redis, keys, at(29_665_010));
  expect((await readHistory(redis, keys, 0)).map((row) => row.minute)).toEqual([29_665_010]);
});

test('a number that was spoilt reads as unknown, never as NaN', () => {
  const spoilt = JSON.parse(golden[0]!.text) as unknown[];
  spoilt[6] = 'NaN';
  spoilt[9] = null;
  spoilt[11] = [1];
  spoilt[26] = [1, 2, null, 3, 4, 5];
  const row = readHistoryRow('29665000', JSON.stringify(spoilt))!;
  expect(row).toMatchObject({ rate: null, offered: 0, denied: {} });
  expect(row.points.flat().every(Number.isFinite)).toBe(true);
});

test('a minute is written once, whoever comes second', async () => {
  expect(await writeHistoryRow(redis, keys, at(1000))).toBe(true);
  expect(await writeHistoryRow(redis, keys, { ...at(1000), offered: 1 })).toBe(false);
  expect(await readHistory(redis, keys, 0)).toEqual([at(1000)]);
});

test('rows are kept for 8 days: the one that falls out goes, gaps are swept, the key has an end', async () => {
  const last = 100_000;
  for (const minute of [last - HISTORY_MINUTES - 5, last - HISTORY_MINUTES, last - 1, last]) {
    await writeHistoryRow(redis, keys, at(minute));
  }
  const minutes = async () => (await readHistory(redis, keys, 0)).map((row) => row.minute);
  expect(await minutes()).toEqual([last - HISTORY_MINUTES - 5, last - 1, last]);
  expect(await trimHistory(redis, keys, last * HISTORY_MINUTE_MS)).toBe(1);
  expect(await minutes()).toEqual([last - 1, last]);
  const ttl = await redis.pttl(keys.history);
  expect(ttl).toBeGreaterThan(7.9 * 86_400_000);
  expect(ttl).toBeLessThanOrEqual(8 * 86_400_000);
});

test('from and to select; oldest first', async () => {
  for (const minute of [12, 10, 11]) await writeHistoryRow(redis, keys, at(minute));
  const from = (a: number, b?: number) => readHistory(redis, keys, a * 60_000, b && b * 60_000);
  expect((await from(11)).map((row) => row.minute)).toEqual([11, 12]);
  expect((await from(10, 12)).map((row) => row.minute)).toEqual([10, 11]);
});

test('8 days of a busy limiter take less than 5 MB', async () => {
  const pipeline = redis.pipeline();
  const { text } = golden[0]!;
  for (let i = 0; i < HISTORY_MINUTES; i++)
    pipeline.hset(keys.history, String(29_000_000 + i), text);
  await pipeline.exec();
  const bytes = Number(await redis.call('MEMORY', 'USAGE', keys.history, 'SAMPLES', '0'));
  expect(bytes).toBeLessThan(5_000_000);
});
