/** What surrounds the decision of a take: bad input, late calls, modes, missing params, and marks that keep every digit. */
import { expect, test } from 'vitest';
import { takeScript } from '../../src/redis/scripts.gen.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const { limiter } = fixture;

/** The raw call of another language: EVAL with the arguments of docs/contract.md. */
function raw(keys: string[], args: (string | number)[]) {
  return fixture.redis.eval(takeScript.lua, keys.length, ...keys, ...args) as Promise<unknown[]>;
}

test.each([
  'NaN',
  'nan',
  'Infinity',
  'inf',
  '-5',
  '-0',
  ' 5 ',
  '5 ',
  '0x10',
  '1e309',
  '1e3',
  'null',
  '',
  '5.',
  '.5',
  '0.0',
  '00',
  '05',
  '1.2345678',
  '99999999999999999',
  '5  critical',
  '5 urgent',
  '5critical',
  '1,5',
  '٣',
])('C18: raw cost %j is an error code and writes nothing', async (cost) => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  const reply = await raw([keys.params, keys.bucket, keys.bucket], [T0, '', '0', '', cost]);
  expect(reply.slice(3)).toEqual([8, 10, -1]);
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
});

test.each([
  ['5', 5],
  ['1.5', 8],
  ['0.000001', 9],
  ['10', 0],
  ['5 critical', 5],
])('C18: raw cost %j decides', async (cost, remaining) => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  const reply = await raw([keys.params, keys.bucket, keys.bucket], [T0, '', '0', '', cost]);
  expect(reply.slice(3)).toEqual([0, remaining, 0]);
  expect(Number(await fixture.redis.get(keys.bucket))).not.toBeNaN();
});

test('C18: a bad cost in a batch decides nothing for itself, and the others are decided', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  const costs = [1, Number.NaN, Number.POSITIVE_INFINITY, -5, -0, 1e21, 1e-7, 1.5];
  const reply = await call(
    costs.map((cost) => ({ cost })),
    T0,
  );
  expect(reasons(reply)).toEqual([
    'ok',
    'bad_cost',
    'bad_cost',
    'bad_cost',
    'bad_cost',
    'bad_cost',
    'bad_cost',
    'ok',
  ]);
  expect(reply.answers[1]).toEqual({
    allowed: false,
    reason: 'bad_cost',
    remaining: 9,
    retryAfterMs: null,
  });
});

test.each([
  ['no key for the take', 2, [T0, '', '0', '', '1']],
  ['no argument for the key', 3, [T0, '', '0', '']],
  ['a time that is none', 3, ['soon', '', '0', '', '1']],
  ['a deadline that is none', 3, [T0, 'never', '0', '', '1']],
])('a call with %s is refused by name, before anything is read', async (_what, count, args) => {
  const { keys } = limiter();
  const call = raw([keys.params, keys.bucket, keys.bucket].slice(0, count), args);
  await expect(call).rejects.toThrow(/^FLYBALL_E_CALL_INVALID/);
});

test('one argument holds for all takes of a call, and packed answers are the same numbers', async () => {
  const calls = [
    ['0', '2', '2', '2'],
    ['0', '2'],
    ['2', '2', '2', '2'],
    ['2', '2'],
  ];
  const replies: unknown[][] = [];
  for (const [flag, ...costs] of calls) {
    const { keys } = limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 5 }, { nowUs: T0 });
    const names = [keys.params, keys.bucket, keys.bucket, keys.bucket, keys.bucket];
    const args = [T0, '', flag!, '', ...costs];
    const reply = (await fixture.redis.callBuffer(
      'eval',
      takeScript.lua,
      5,
      ...names,
      ...args,
    )) as [number, number, Buffer, ...(number | Buffer)[]];
    const bytes = reply[3];
    const numbers = Buffer.isBuffer(bytes)
      ? Array.from({ length: bytes.length / 8 }, (_each, i) => bytes.readDoubleLE(8 * i))
      : reply.slice(3);
    replies.push([...reply.slice(0, 2), reply[2].toString(), ...numbers]);
    expect(Buffer.isBuffer(bytes)).toBe(flag === '2');
  }
  expect(replies[0]!.slice(3)).toEqual([0, 3, 0, 0, 1, 0, 2, 1, 1000]);
  for (const reply of replies) expect(reply).toEqual(replies[0]);
});

test('packed, in shadow and with missing params, and late: as without', async () => {
  const { keys } = limiter();
  const numbers = '1 2 0 -1 0';
  const at = (bucket: string, args: (string | number)[]) =>
    fixture.redis.callBuffer(
      'eval',
      takeScript.lua,
      4,
      keys.params,
      bucket,
      bucket,
      bucket,
      ...args,
    );
  const [, , text, bytes] = (await at(keys.shadowBucket, [T0, '', '3', numbers, '1'])) as Buffer[];
  expect(text!.toString()).toMatch(/^0 0 0 0 shadow /);
  expect(bytes!.readDoubleLE(0)).toBe(0);
  expect(await fixture.redis.get(keys.shadowBucket)).toMatch(/^u:0:/);
  expect(await at(keys.bucket, [T0, T0 - 1, '2', numbers, '1'])).toHaveLength(3);
  await seedParams(fixture.redis, keys, { mode: 'shadow' }, { nowUs: T0 });
  expect(((await at(keys.bucket, [T0, '', '2', numbers, '1'])) as unknown[])[0]).toBe(2);
});

test('peek: cost 0 tells what is left and writes nothing', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  expect(await one(T0, { cost: 0 })).toMatchObject({ allowed: true, remaining: 10 });
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
});

test('late: after chargeBy nothing is charged, and the reply carries the time', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 10 }, { nowUs: T0 });
  expect(await call([{}], T0, { chargeByUs: T0 - 1 })).toMatchObject({
    status: 'late',
    nowUs: T0,
    answers: [],
  });
  expect(await call([{}], T0, { chargeByUs: null })).toMatchObject({ status: 'late', nowUs: T0 });
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
  expect(await call([{}], T0, { chargeByUs: T0 })).toMatchObject({ status: 'ok' });
});

test('without a given time the server tells its own', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys);
  const [seconds, micros] = await fixture.redis.time();
  const reply = await call([{}], T0, { nowUs: undefined as never });
  expect(Math.abs(reply.nowUs - (Number(seconds) * S + Number(micros)))).toBeLessThan(10 * S);
});

test('mode: off admits all and writes nothing', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { mode: 'off', rate: 1, capacity: 1 }, { nowUs: T0 });
  const reply = await call([{}, {}, {}, { cost: Number.NaN }], T0);
  expect(reasons(reply)).toEqual(['off', 'off', 'off', 'bad_cost']);
  expect(reply.answers[0]?.allowed).toBe(true);
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
});

test('C99: shadow has buckets of its own; a call with the wrong ones is told the mode and charges nothing', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { mode: 'shadow', rate: 1, capacity: 2 }, { nowUs: T0 });
  const wrong = await call([{}], T0);
  expect(wrong).toMatchObject({ status: 'mode', answers: [], inForce: { mode: 'shadow' } });
  const shadow = await call([{}, {}, {}], T0, { shadow: true });
  expect(reasons(shadow)).toEqual(['ok', 'ok', 'rate']);
  expect(await fixture.redis.exists(keys.bucket)).toBe(0);
  await changeParams(fixture.redis, keys, { mode: 'auto' }, { nowUs: T0 });
  expect(await call([{}], T0, { shadow: true })).toMatchObject({ status: 'mode' });
  expect(reasons(await call([{}, {}, {}], T0))).toEqual(['ok', 'ok', 'rate']);
});

test('missing params: the numbers of the call rule, and the bucket says so', async () => {
  const { keys, call } = limiter();
  const fallback = { rate: 2, capacity: 4, inFlightMax: 7, subjectRate: 1, subjectCapacity: 2 };
  const reply = await call([{ subject: 'a' }, { subject: 'a' }, { subject: 'a' }, {}, {}, {}], T0, {
    fallback,
  });
  expect(reply.inForce).toMatchObject({
    managed: false,
    revision: 0,
    rate: 2,
    capacity: 4,
    inFlightMax: 7,
    subjectRate: 1,
  });
  expect(reasons(reply)).toEqual(['ok', 'ok', 'subject', 'ok', 'ok', 'rate']);
  expect(reply.answers[5]?.retryAfterMs).toBe(500);
  expect(await fixture.redis.get(keys.bucket)).toBe(`u:0:${T0}`);
  expect(await fixture.redis.pttl(keys.bucket)).toBeGreaterThan(2000);
  expect((await call([{}], T0 + 0.5 * S, { fallback })).answers[0]?.allowed).toBe(true);
  // Another process with numbers of its own reads the same tokens.
  const other = await call([{ cost: 0 }], T0 + S, {
    fallback: { ...fallback, rate: 100, capacity: 3 },
  });
  expect(other.answers[0]?.remaining).toBe(3);
});

test('missing params: a clock that went back neither fills nor blocks', async () => {
  const { call } = limiter();
  const fallback = { rate: 1, capacity: 2, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
  await call([{}, {}], T0, { fallback });
  expect((await call([{}], T0 - 3600 * S, { fallback })).answers[0]?.allowed).toBe(false);
  expect((await call([{}], T0 - 3599 * S, { fallback })).answers[0]?.allowed).toBe(true);
});

test('params that come back, or go, keep the tokens of a bucket at most', async () => {
  const { keys, call } = limiter();
  const fallback = { rate: 1, capacity: 10, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
  await call([{ cost: 7 }], T0, { fallback });
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 100 }, { nowUs: T0 });
  expect(reasons(await call([{ cost: 4 }, { cost: 3 }, {}], T0, { fallback }))).toEqual([
    'rate',
    'ok',
    'rate',
  ]);
  expect((await call([{}], T0 + S, { fallback })).answers[0]?.allowed).toBe(true);
  await fixture.redis.del(keys.params);
  expect((await call([{}], T0 + S, { fallback })).answers[0]?.allowed).toBe(false);
  expect((await call([{}], T0 + 2 * S, { fallback })).answers[0]?.allowed).toBe(true);
});

test('a denied take on tokens of a call without params lets them refill', async () => {
  const { keys, call } = limiter();
  await call([{ cost: 10 }], T0);
  await seedParams(fixture.redis, keys, { rate: 10, capacity: 10 }, { nowUs: T0 });
  expect((await call([{}], T0)).answers[0]?.allowed).toBe(false);
  expect((await call([{}], T0 + 0.1 * S)).answers[0]?.allowed).toBe(true);
});

test('C20: marks and clocks keep every digit: a year at 1,000/s is within 4e-6 of a token', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1000, capacity: 1000 }, { nowUs: T0 });
  const year = T0 + 365 * 86_400 * S;
  await one(year, { cost: 1000 });
  const text = (await fixture.redis.get(keys.bucket))!;
  expect(text).toBe(String(Number(text)));
  expect(Number(text)).toBeCloseTo(365 * 86_400 * 1000, 5);
  expect((await one(year, { cost: 0 })).remaining).toBe(0);
  expect(await one(year + 1, { cost: 0.001 })).toMatchObject({ allowed: true });
  expect(await one(year + 1, { cost: 0.00005 })).toMatchObject({ allowed: false });
  // Every double of this size reads back to the same bits from the text that Lua writes.
  const values = Array.from({ length: 500 }, (_, i) => Math.sqrt(i + 2) * 1e10 + i / 7);
  const texts = (await fixture.redis.eval(
    "local out = {} for i = 1, #ARGV do out[i] = string.format('%.17g', tonumber(ARGV[i])) end return out",
    0,
    ...values,
  )) as string[];
  expect(texts.map(Number)).toEqual(values);
});
