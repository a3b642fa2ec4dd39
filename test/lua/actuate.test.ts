/** The actuating script: who may write, what it refuses without a trace, and that each revision has one entry. */
import { expect, test } from 'vitest';
import { entryHash } from '../../src/actuate/entry.js';
import { type ActuateCall, GENESIS_HASH } from '../../src/redis/calls.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { actuate, lease, note } from '../../src/redis/scripts.js';
import { changeParams, SEED, seedParams, storedParams, testEntry } from '../support/seed-params.js';
import { S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const { limiter } = fixture;

async function entries(keys: LimiterKeys) {
  const rows = await fixture.redis.xrange(keys.audit, '-', '+');
  return rows.map(([id, flat]) => {
    const fields: Record<string, string> = {};
    for (let i = 0; i < flat.length; i += 2) fields[flat[i]!] = flat[i + 1]!;
    return { id, ...fields } as { id: string } & Record<
      'kind' | 'epoch' | 'revision' | 'hash' | 'prev' | 'body',
      string
    >;
  });
}

/** Everything of the limiter, to show that a refusal wrote nothing. */
async function snapshot(keys: LimiterKeys) {
  return [
    await fixture.redis.hgetall(keys.params),
    await entries(keys),
    await fixture.redis.get(keys.state),
    await fixture.redis.get(keys.policy),
  ];
}

async function call(keys: LimiterKeys, more: Partial<ActuateCall>): Promise<ActuateCall> {
  const params = await storedParams(fixture.redis, keys);
  const expected = { epoch: params?.epoch ?? 1, revision: params?.revision ?? 0 };
  return {
    keys,
    authority: { kind: 'person' },
    expected,
    create: false,
    change: {},
    cause: 'person',
    entry: await testEntry(fixture.redis, keys, expected.epoch, expected.revision + 1, 'test'),
    leaseMs: 5000,
    nowUs: T0,
    ...more,
  };
}

test('I2: each revision has exactly one change entry, chained by its hash', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  for (let i = 1; i <= 5; i++) {
    const reply = await changeParams(fixture.redis, keys, { rate: 100 + i }, { nowUs: T0 + i });
    expect(reply).toMatchObject({ status: 'ok', epoch: 1_000_000, revision: 1 + i });
  }
  const log = await entries(keys);
  expect(log.map((each) => [each.kind, each.epoch, each.revision])).toEqual(
    [1, 2, 3, 4, 5, 6].map((revision) => ['change', '1000000', String(revision)]),
  );
  let prev = GENESIS_HASH;
  for (const each of log) {
    expect(each.prev).toBe(prev);
    expect(each.hash).toBe(entryHash(prev, each.body));
    prev = each.hash;
  }
});

test('a write adopts the policy, keeps the checkpoint and tells the channel', async () => {
  const { keys } = limiter();
  const subscriber = fixture.server.client();
  await subscriber.subscribe(keys.changes);
  const told = new Promise<string>((ok) =>
    subscriber.once('message', (_channel, text) => ok(text)),
  );
  await seedParams(
    fixture.redis,
    keys,
    {},
    { nowUs: T0, policy: { hash: 'abc', json: '{"a":1}' } },
  );
  expect(await told).toBe(`${keys.name} 1000000 1`);
  expect(await fixture.redis.mget(keys.policy, keys.policyVersion('abc'))).toEqual([
    '{"a":1}',
    '{"a":1}',
  ]);
  const reply = await actuate(fixture.redis, await call(keys, { checkpoint: '{"law":"x"}' }));
  expect(reply.status).toBe('ok');
  expect(await fixture.redis.get(keys.state)).toBe('{"law":"x"}');
  expect(await fixture.redis.pttl(keys.state)).toBeGreaterThan(0);
});

test('C75: only the newest lease holder writes; a late one is refused inside Redis and leaves no trace', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const acquire = (owner: string, token?: number) =>
    lease(fixture.redis, { keys, op: 'acquire', owner, token, leaseMs: 60_000, nowUs: T0 });
  const first = await acquire('one');
  if (first.status !== 'held') throw new Error('not held');
  expect(first.token).toBe(T0 / 1000);
  expect(await acquire('two')).toMatchObject({ status: 'other', owner: 'one', token: first.token });
  expect(await acquire('one', first.token)).toMatchObject({ status: 'held', token: first.token });
  const authority = (owner: string, token: number) => ({ kind: 'lease' as const, owner, token });
  const write = async (owner: string, token: number, rate: number) =>
    actuate(
      fixture.redis,
      await call(keys, { authority: authority(owner, token), cause: 'law', change: { rate } }),
    );
  expect(await write('one', first.token, 90)).toMatchObject({ status: 'ok', revision: 2 });
  expect((await storedParams(fixture.redis, keys))?.validUntil).toBe(T0 / 1000 + 5000);

  await fixture.redis.del(keys.lease); // it lapses while its holder sleeps
  const second = await acquire('two');
  if (second.status !== 'held') throw new Error('not held');
  expect(second.token).toBe(first.token + 1);
  const before = await snapshot(keys);
  for (const [owner, token] of [
    ['one', first.token],
    ['two', first.token],
    ['one', second.token],
    ['two', second.token + 1],
  ] as const) {
    expect(await write(owner, token, 500)).toMatchObject({ status: 'refused', reason: 'lease' });
  }
  expect(await snapshot(keys)).toEqual(before);
  expect(await write('two', second.token, 80)).toMatchObject({ status: 'ok', revision: 3 });
  // Even a lease of the right name counts for nothing once a newer token was given out.
  await fixture.redis.set(keys.lease, `one:${first.token}`);
  expect(await write('one', first.token, 70)).toMatchObject({ status: 'refused', reason: 'lease' });
});

test('the lease: released by its holder only; the token outlives it', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const ask = (op: 'acquire' | 'release', owner: string, token?: number, nowUs = T0) =>
    lease(fixture.redis, { keys, op, owner, token, leaseMs: 60_000, nowUs });
  const held = await ask('acquire', 'a:b:c');
  if (held.status !== 'held') throw new Error('not held');
  expect(await ask('release', 'other', held.token)).toMatchObject({
    status: 'other',
    owner: 'a:b:c',
  });
  expect(await ask('release', 'a:b:c', held.token)).toMatchObject({ status: 'released' });
  // A clock that stepped back does not bring an old token again.
  expect(await ask('acquire', 'next', undefined, T0 - 3600 * S)).toMatchObject({
    status: 'held',
    token: held.token + 1,
  });
});

test('I3: a person writes by compare-and-set; a moved revision, epoch or head is refused', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const good = await call(keys, { change: { rate: 50 } });
  const before = await snapshot(keys);
  for (const [reason, wrong] of [
    ['revision', { expected: { ...good.expected, revision: 0 } }],
    ['revision', { expected: { ...good.expected, epoch: 5 } }],
    ['head', { entry: { ...good.entry, prev: GENESIS_HASH } }],
    ['exists', { create: true, expected: { epoch: 2_000_000, revision: 1 } }],
    ['revision', { newEpoch: 1_000_000 }],
  ] as const) {
    expect(await actuate(fixture.redis, { ...good, ...wrong })).toMatchObject({
      status: 'refused',
      reason,
      epoch: 1_000_000,
      revision: 1,
      head: good.entry.prev,
    });
  }
  expect(await snapshot(keys)).toEqual(before);
  expect(await actuate(fixture.redis, good)).toMatchObject({ status: 'ok', revision: 2 });
  const lost = await call(keys, { newEpoch: 2_000_000 });
  expect(await actuate(fixture.redis, lost)).toMatchObject({ epoch: 2_000_000, revision: 3 });
});

test('params that are missing are not changed, only created, and with a higher epoch than the log knows', async () => {
  const { keys } = limiter();
  const missing = await call(keys, { change: { rate: 5 } });
  expect(await actuate(fixture.redis, missing)).toMatchObject({
    status: 'refused',
    reason: 'invalid',
  });
  expect(await fixture.redis.exists(keys.params, keys.audit)).toBe(0);
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  await fixture.redis.del(keys.params);
  await expect(seedParams(fixture.redis, keys, {}, { epoch: 1_000_000 })).rejects.toThrow(
    'revision',
  );
  expect(await seedParams(fixture.redis, keys, {}, { epoch: 1_000_001 })).toMatchObject({
    revision: 1,
  });
  const { rate: _left, ...rest } = SEED;
  const { keys: other } = limiter();
  const partial = await call(other, {
    create: true,
    change: rest,
    expected: { epoch: 1, revision: 1 },
  });
  expect(await actuate(fixture.redis, partial)).toMatchObject({
    reason: 'invalid',
    detail: 'rate is missing',
  });
});

test.each([
  [{ rate: Number.NaN }, 'invalid'],
  [{ rate: Number.POSITIVE_INFINITY }, 'invalid'],
  [{ rate: -1 }, 'invalid'],
  [{ rate: 1e300 }, 'invalid'],
  [{ capacity: 0 }, 'invalid'],
  [{ openUntil: -2 }, 'invalid'],
  [{ state: 'ajar' as never }, 'invalid'],
  [{ mode: 'turbo' as never }, 'invalid'],
  [{ inFlightMax: 1.5 }, 'invalid'],
  [{ safeRate: 0 }, 'invalid'],
  [{ probeRate: 0 }, 'invalid'],
  [{ reserveSheddable: 1.5 }, 'invalid'],
  [{ minRate: 2000 }, 'invalid'],
  [{ heldBy: 'x'.repeat(300) }, 'invalid'],
  [{ subject: 'x'.repeat(1025) }, 'invalid'],
  [{ onRedisError: 'fail' as never }, 'invalid'],
  [{ accrued: 5 } as never, 'invalid'],
  [{ fence: 5 } as never, 'invalid'],
  [{ burst: 5 } as never, 'invalid'],
  [{ rate: 1001 }, 'bounds'],
  [{ capacity: 1001 }, 'bounds'],
  [{ inFlightMax: 1001 }, 'bounds'],
])('I1: %j is refused as %s, and nothing is written', async (change, reason) => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const before = await snapshot(keys);
  expect(await changeParams(fixture.redis, keys, change, { nowUs: T0 })).toMatchObject({ reason });
  expect(await snapshot(keys)).toEqual(before);
});

test('I1: the law stays above the minimum, a person reaches 0, slow start lies between', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, { rate: 100, minRate: 20 }, { nowUs: T0 });
  const change = (cause: 'law' | 'person' | 'breaker', more: object) =>
    changeParams(fixture.redis, keys, more, { cause, nowUs: T0 });
  expect(await change('law', { rate: 19 })).toMatchObject({
    reason: 'bounds',
    detail: expect.stringMatching(/19.*20 to 1000/),
  });
  expect(await change('person', { rate: 0 })).toMatchObject({ status: 'ok' });
  expect(await change('breaker', { state: 'recovering', rate: 2 })).toMatchObject({ status: 'ok' });
});

test('holds: law and schedule wait, a trip goes through and comes back, a policy only lowers to its maximum', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, { rate: 100, minRate: 20 }, { nowUs: T0 });
  const change = (cause: ActuateCall['cause'], more: object, nowUs = T0) =>
    changeParams(fixture.redis, keys, more, { cause, nowUs });
  const until = T0 / 1000 + 60_000;
  await change('person', { rate: 5, pinnedUntil: until, heldBy: 'ann' });
  for (const cause of ['law', 'schedule'] as const) {
    expect(await change(cause, { rate: 50 })).toMatchObject({
      reason: 'held',
      detail: 'held by ann',
    });
  }
  expect(await change('policy', { rate: 50 })).toMatchObject({ reason: 'held' });
  expect(await change('policy', { pinnedUntil: 0 })).toMatchObject({ reason: 'held' });
  expect(await change('policy', { maxRate: 500 })).toMatchObject({ status: 'ok' });
  expect(await change('policy', { maxRate: 4, minRate: 1, rate: 4 })).toMatchObject({
    status: 'ok',
  });
  expect(await change('breaker', { state: 'open' })).toMatchObject({ status: 'ok' });
  expect(await change('breaker', { state: 'closed', rate: 3 })).toMatchObject({ reason: 'held' });
  expect(await change('breaker', { state: 'closed' })).toMatchObject({ status: 'ok' });
  expect((await storedParams(fixture.redis, keys))?.rate).toBe(4);
  expect(await change('person', { holdBreaker: 1 })).toMatchObject({ status: 'ok' });
  expect(await change('breaker', { state: 'open' })).toMatchObject({ reason: 'held' });
  // The time of the hold is over: the law goes on.
  expect(await change('law', { rate: 2 }, T0 + 61 * S)).toMatchObject({ status: 'ok' });
});

test('I12: outside auto nothing moves by itself, but a trip that a person made ends', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, { mode: 'recommend' }, { nowUs: T0 });
  const change = (cause: ActuateCall['cause'], more: object) =>
    changeParams(fixture.redis, keys, more, { cause, nowUs: T0 });
  expect(await change('law', { rate: 50 })).toMatchObject({ reason: 'mode' });
  expect(await change('breaker', { state: 'open' })).toMatchObject({ reason: 'mode' });
  expect(await change('person', { state: 'open' })).toMatchObject({ status: 'ok' });
  expect(await change('breaker', { state: 'half-open' })).toMatchObject({ status: 'ok' });
});

test('a trip is a new generation with an open time; leaving it clears it; an elapsed one becomes half-open', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const nowMs = T0 / 1000;
  const after = async (change: object, nowUs: number) => {
    expect(await changeParams(fixture.redis, keys, change, { nowUs })).toMatchObject({
      status: 'ok',
    });
    const { state, generation, openUntil, openForMs } = (await storedParams(fixture.redis, keys))!;
    return { state, generation, openUntil, openForMs };
  };
  expect(await after({ state: 'open', openForMs: 4000 }, T0)).toEqual({
    state: 'open',
    generation: 1,
    openUntil: nowMs + 4000,
    openForMs: 4000,
  });
  expect(await after({ openUntil: nowMs + 9000 }, T0 + S)).toMatchObject({
    generation: 1,
    openForMs: 8000,
  });
  expect(await after({ rate: 50 }, T0 + 10 * S)).toMatchObject({
    state: 'half-open',
    openUntil: 0,
  });
  expect(await after({ state: 'open' }, T0 + 11 * S)).toMatchObject({
    generation: 2,
    openUntil: nowMs + 19_000,
  });
  expect(await after({ state: 'open', openUntil: -1 }, T0 + 12 * S)).toMatchObject({
    generation: 2,
    openUntil: -1,
  });
  expect(await after({ state: 'closed' }, T0 + 13 * S)).toMatchObject({
    generation: 2,
    openUntil: 0,
  });
});

test('notes need the head, no lease; they move the head but not the revision', async () => {
  const { keys } = limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const stale = await call(keys, { change: { rate: 1 } });
  const entry = {
    ...(await testEntry(fixture.redis, keys, 1_000_000, 1, 'a note')),
    kind: 'note' as const,
  };
  expect(await note(fixture.redis, { keys, entry })).toMatchObject({ status: 'ok' });
  expect(await note(fixture.redis, { keys, entry })).toEqual({
    status: 'refused',
    reason: 'head',
    head: entry.hash,
  });
  expect(await actuate(fixture.redis, stale)).toMatchObject({ reason: 'head', head: entry.hash });
  expect((await entries(keys)).map((each) => each.kind)).toEqual(['change', 'note']);
});

test('a first epoch beyond 2^44 tokens begins the clock anew, with empty buckets and no burst', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 1e9, capacity: 10, maxRate: 1e9 }, { nowUs: T0 });
  const later = T0 + 86_400 * S;
  await one(later);
  await changeParams(fixture.redis, keys, { rate: 10 }, { nowUs: later });
  expect((await storedParams(fixture.redis, keys))?.accrued).toBe(0);
  expect((await one(later)).allowed).toBe(false);
  expect((await one(later + 0.1 * S)).allowed).toBe(true);
});

test('a cold start may begin empty', async () => {
  const { keys, one } = limiter();
  await seedParams(fixture.redis, keys, { rate: 10 }, { nowUs: T0, refloor: 'empty' });
  expect((await one(T0)).allowed).toBe(false);
  expect((await one(T0 + 0.1 * S)).allowed).toBe(true);
  await changeParams(fixture.redis, keys, {}, { nowUs: T0 + 5 * S, refloor: 'empty' });
  expect((await one(T0 + 5 * S)).allowed).toBe(false);
});
