/** Heartbeat, glide and settling: the limits go to safe values without a writer, and the next owner goes on from there. */
import { expect, test } from 'vitest';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { actuate, heartbeat, lease } from '../../src/redis/scripts.js';
import { changeParams, seedParams, storedParams, testEntry } from '../support/seed-params.js';
import { S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const { limiter } = fixture;
const LOST = { lostAfterMs: 60_000, lostOverMs: 30_000, safeRate: 40, safeInFlight: 10 };

async function hold(keys: LimiterKeys, owner = 'daemon') {
  const granted = await lease(fixture.redis, {
    keys,
    op: 'acquire',
    owner,
    leaseMs: 600_000,
    nowUs: T0,
  });
  if (granted.status !== 'held') throw new Error('not held');
  return { keys, owner, token: granted.token, leaseMs: 3000 };
}

test('a heartbeat renews the word without revision or entry, and keeps the checkpoint', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const beat = await hold(keys);
  const reply = await heartbeat(fixture.redis, { ...beat, checkpoint: '{"a":1}', nowUs: T0 + S });
  expect(reply).toEqual({
    status: 'ok',
    nowUs: T0 + S,
    validUntil: T0 / 1000 + 4000,
    epoch: 1_000_000,
    revision: 1,
  });
  expect((await storedParams(fixture.redis, keys))?.validUntil).toBe(T0 / 1000 + 4000);
  expect(await fixture.redis.xlen(keys.audit)).toBe(1);
  expect(await fixture.redis.get(keys.state)).toBe('{"a":1}');
});

test('a heartbeat is refused without params, without the lease, after the glide has begun, before the last write', async () => {
  const { keys } = limiter();
  const early = await hold(keys);
  const beat = (nowUs: number, more: object = {}) =>
    heartbeat(fixture.redis, { ...early, nowUs, ...more });
  expect(await beat(T0)).toMatchObject({ status: 'refused', reason: 'missing' });
  await seedParams(fixture.redis, keys, LOST, { nowUs: T0 });
  expect(await beat(T0, { token: early.token - 1 })).toMatchObject({ reason: 'lease' });
  expect(await beat(T0, { owner: 'other' })).toMatchObject({ reason: 'lease' });
  expect(await beat(T0 - 1)).toMatchObject({ reason: 'clock' });
  expect(await beat(T0)).toMatchObject({ status: 'ok' });
  expect(await beat(T0 + 62.999 * S)).toMatchObject({ status: 'ok' });
  expect(await beat(T0 + 125.998 * S)).toMatchObject({ status: 'ok' });
  expect(await beat(T0 + 188.998 * S)).toMatchObject({ status: 'refused', reason: 'gliding' });
});

test('I11: with no word the limits hold, then glide in a line to the safe values, in the takes themselves', async () => {
  const { keys, call } = limiter();
  const cap = { inFlightMax: 30 };
  await seedParams(
    fixture.redis,
    keys,
    { rate: 100, capacity: 200, ...cap, ...LOST },
    { nowUs: T0 },
  );
  const at = async (seconds: number) => {
    const { rate, inFlightMax, gliding } = (await call([{ cost: 0 }], T0 + seconds * S)).inForce;
    return [rate, inFlightMax, gliding];
  };
  expect(await at(59.999)).toEqual([100, 30, false]);
  expect(await at(60)).toEqual([100, 30, true]);
  expect(await at(75)).toEqual([70, 20, true]);
  expect(await at(90)).toEqual([40, 10, true]);
  expect(await at(86_400)).toEqual([40, 10, true]);
});

test('I11: a hold and an open time put the glide off; without end, for good', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 100, ...LOST }, { nowUs: T0 });
  const rateAt = async (seconds: number) =>
    (await call([{ cost: 0 }], T0 + seconds * S)).inForce.rate;
  await changeParams(
    fixture.redis,
    keys,
    { rate: 7, pinnedUntil: T0 / 1000 + 3_600_000 },
    { nowUs: T0 },
  );
  expect(await rateAt(3600 + 59)).toBe(7);
  expect(await rateAt(3600 + 75)).toBe(23.5);
  await changeParams(fixture.redis, keys, { frozenUntil: -1 }, { nowUs: T0 });
  expect(await rateAt(1e6)).toBe(7);
});

test('I11: from half-open the limits glide up to the safe rate, and the narrow bucket widens', async () => {
  const { keys, call } = limiter();
  await seedParams(
    fixture.redis,
    keys,
    { rate: 100, capacity: 200, probeRate: 1, ...LOST },
    { nowUs: T0 },
  );
  await changeParams(fixture.redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: T0 });
  const at = async (seconds: number) => (await call([{ cost: 0 }], T0 + seconds * S)).inForce;
  expect(await at(4)).toMatchObject({ state: 'open', rate: 0 });
  expect(await at(64)).toMatchObject({ state: 'half-open', rate: 1, capacity: 1, gliding: false });
  expect(await at(80)).toMatchObject({
    state: 'recovering',
    rate: 20.5,
    capacity: 100.5,
    gliding: true,
  });
  expect(await at(95)).toMatchObject({ state: 'recovering', rate: 40, capacity: 200 });
});

test('the next owner settles: what really held becomes what is stored, and no token is lost or made', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 100, capacity: 200, ...LOST }, { nowUs: T0 });
  const beat = await hold(keys);
  await one(T0 + 90 * S, { cost: 200 });
  const at = T0 + 92 * S;
  const reply = await actuate(fixture.redis, {
    keys,
    authority: { kind: 'lease', owner: beat.owner, token: beat.token },
    expected: { epoch: 1_000_000, revision: 1 },
    create: false,
    change: {},
    cause: 'settle',
    entry: await testEntry(fixture.redis, keys, 1_000_000, 2, 'settled'),
    leaseMs: 3000,
    nowUs: at,
  });
  expect(reply).toMatchObject({ status: 'ok' });
  const params = (await storedParams(fixture.redis, keys))!;
  // 60 s at 100, 30 s from 100 to 40, 2 s at 40.
  expect(params).toMatchObject({ rate: 40, accrued: 6000 + 2100 + 80, changedAt: at });
  expect((await one(at, { cost: 0 })).remaining).toBe(80);
  expect(await heartbeat(fixture.redis, { ...beat, nowUs: at + S })).toMatchObject({
    status: 'ok',
  });
});

test('a person freezes what is in force, not what was before the glide', async () => {
  const { keys, call } = limiter();
  await seedParams(fixture.redis, keys, { rate: 100, ...LOST }, { nowUs: T0 });
  const at = T0 + 200 * S;
  await changeParams(fixture.redis, keys, { frozenUntil: -1, heldBy: 'ann' }, { nowUs: at });
  expect((await call([{ cost: 0 }], at + 1e6 * S)).inForce).toMatchObject({
    rate: 40,
    gliding: false,
  });
});
