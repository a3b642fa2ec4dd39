import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readParams, write } from '../../src/actuate/actuator.js';
import { type AdoptOutcome, adopt, type LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

const BASE: PolicyInput = {
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
};

function loaded(input: PolicyInput): LoadedPolicy {
  const policy = policySchema.parse(input);
  return { file: 'checkout.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
}

function adoptNow(input: PolicyInput, more: object = {}): Promise<AdoptOutcome> {
  return adopt(redis, loaded(input), {
    actor: { kind: 'autopilot', name: 'd1' },
    leaseMs: 1000,
    nowMs: 1_700_000_000_000,
    ...more,
  });
}

async function person(change: ParamChange) {
  const { params } = await readParams(redis, address);
  const reply = await write(
    redis,
    address,
    {
      authority: { kind: 'person' },
      expected: params!,
      change,
      cause: 'person',
      actor: { kind: 'person', name: 'kim' },
      reason: 'pin',
      sentence: 'x',
      before: null,
      after: null,
      policyHash: params!.policyHash,
    },
    { leaseMs: 0, nowMs: 1 },
  );
  expect(reply.status).toBe('ok');
}

const params = async () => (await readParams(redis, address)).params!;
const newest = async () => (await readEntries(redis, address)).entries[0]!.body;

test('creates params with the policy beside them, registers the limiter, and does nothing twice', async () => {
  const outcome = await adoptNow(BASE);
  expect(outcome).toMatchObject({ status: 'created', revision: 1 });
  expect(await params()).toMatchObject({
    rate: 100,
    capacity: 200,
    inFlightMax: 20,
    minRate: 20,
    maxRate: 400,
    mode: 'auto',
    state: 'closed',
    policyHash: loaded(BASE).hash,
  });
  expect(await redis.get(keys.policy)).toBe(loaded(BASE).json);
  expect(await redis.get(keys.policyVersion(loaded(BASE).hash))).toBe(loaded(BASE).json);
  expect(await redis.hgetall('flyball:limiters')).toEqual({ checkout: '' });
  expect(await newest()).toMatchObject({ reason: 'params_created', before: null });
  expect(await adoptNow(BASE)).toEqual({ status: 'unchanged' });
  expect((await verifyAudit(redis, address)).changes).toBe(1);
});

test('refuses a changed group and names both; nothing is written', async () => {
  await adoptNow(BASE);
  const outcome = await adoptNow({ ...BASE, limiter: { ...BASE.limiter, group: 'payments' } });
  expect(outcome).toMatchObject({ status: 'refused', reason: 'group' });
  expect((outcome as { sentence: string }).sentence).toContain(
    'limiter.group is group "payments", but checkout lives in no group',
  );
  expect((await readParams(redis, { ...address, group: 'payments' })).params).toBeNull();
});

describe('auto keeps what is in force', () => {
  test('rate and cap stay when they lie within the new bounds', async () => {
    await adoptNow(BASE);
    await person({ rate: 70, inFlightMax: 9 });
    await adoptNow({ ...BASE, limiter: { ...BASE.limiter, rate: 150 } });
    expect(await params()).toMatchObject({ rate: 70, inFlightMax: 9, policyRate: 150 });
    expect((await newest()).sentence).toContain('rate and cap in force are kept:');
  });

  test('they are clamped to bounds that leave them out', async () => {
    await adoptNow(BASE);
    await person({ rate: 300, inFlightMax: 50 });
    await adoptNow({
      ...BASE,
      bounds: { rate: { min: 20, max: 120 }, inFlight: { min: 2, max: 30 } },
    });
    expect(await params()).toMatchObject({ rate: 120, inFlightMax: 30 });
    expect((await newest()).sentence).toContain('within the new bounds');
  });

  test('capacity moves with the rate only where it has bounds', async () => {
    await adoptNow(BASE);
    await person({ rate: 50 });
    const bounds = { ...BASE.bounds!, capacity: { min: 10, max: 400 } };
    await adoptNow({ ...BASE, bounds });
    expect(await params()).toMatchObject({ rate: 50, capacity: 100 });
  });

  test('an open breaker stays open', async () => {
    await adoptNow(BASE);
    await person({ state: 'open', openForMs: 60_000 });
    const { openUntil } = await params();
    await adoptNow({ ...BASE, guards: { cooldown: '5s' } });
    expect(await params()).toMatchObject({ state: 'open', openUntil, rate: 100 });
  });
});

test('other modes set the policy’s own numbers', async () => {
  await adoptNow(BASE);
  await person({ rate: 70, inFlightMax: 9 });
  await adoptNow({ ...BASE, mode: 'recommend' });
  expect(await params()).toMatchObject({ rate: 100, inFlightMax: 20, mode: 'recommend' });
});

test('I7: a hold stays, lowered only to the new maximum, and the entry says so', async () => {
  await adoptNow(BASE);
  await person({ rate: 5, pinnedUntil: -1, heldBy: 'kim' });
  await adoptNow({ ...BASE, mode: 'recommend' });
  expect(await params()).toMatchObject({ rate: 5, pinnedUntil: -1, heldBy: 'kim' });
  expect((await newest()).sentence).toContain('the hold of kim stays:');

  await person({ rate: 300 });
  await adoptNow({ ...BASE, bounds: { ...BASE.bounds!, rate: { min: 20, max: 120 } } });
  expect(await params()).toMatchObject({ rate: 120, pinnedUntil: -1 });
  expect((await newest()).sentence).toContain('lowered to the new maximum');
});

test('restores what this process saw last: rate, trip and hold survive a loss of Redis', async () => {
  await adoptNow(BASE);
  await person({ rate: 70, pinnedUntil: -1, heldBy: 'kim', state: 'open', openUntil: -1 });
  const last = await params();
  await redis.flushall();
  expect(await adoptNow(BASE, { last })).toMatchObject({ status: 'restored', revision: 1 });
  const now = await params();
  expect(now).toMatchObject({
    rate: 70,
    pinnedUntil: -1,
    heldBy: 'kim',
    state: 'open',
    openUntil: -1,
  });
  expect(now.epoch).toBeGreaterThan(last.epoch);
  expect((await newest()).reason).toBe('params_restored');
});

test('the epoch grows above every one in the audit log', async () => {
  await adoptNow(BASE);
  const before = await params();
  await redis.del(keys.params);
  await adoptNow(BASE);
  expect((await params()).epoch).toBeGreaterThan(before.epoch);
  expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent', changes: 2 });
});

test('a policy that was thrown away is stored again, with an entry', async () => {
  await adoptNow(BASE);
  await redis.del(keys.policy);
  expect(await adoptNow(BASE)).toMatchObject({ status: 'changed', revision: 2 });
  expect(await redis.get(keys.policy)).toBe(loaded(BASE).json);
});

test('a policy adopted after the open time has run out trips nothing again, and the entry says so', async () => {
  await adoptNow(BASE);
  await person({ state: 'open', openForMs: 5000, openUntil: 1 });
  expect(await params()).toMatchObject({ state: 'open', generation: 1 });
  await adoptNow({ ...BASE, owner: 'platform' });
  expect(await params()).toMatchObject({ state: 'half-open', generation: 1, openUntil: 0 });
  expect(await newest()).toMatchObject({
    reason: 'policy_adopted',
    before: { state: 'half-open' },
    after: { state: 'half-open' },
  });
});

test('adopting while the limits glide goes on from where the glide is, not from where it began', async () => {
  await adoptNow({ ...BASE, whenLost: { after: 0, over: 0, rate: 30, inFlight: 4 } });
  await person({ rate: 300, inFlightMax: 40 });
  await adoptNow({ ...BASE, owner: 'platform' });
  expect(await params()).toMatchObject({ rate: 30, inFlightMax: 4 });
  expect((await newest()).before).toMatchObject({ rate: 30, inFlightMax: 4 });
});
