import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  readHead,
  readParams,
  type WriteRequest,
  write,
  writeNote,
} from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { createLease } from '../../src/actuate/lease.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { SEED, seedParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const options = { leaseMs: 1000, nowMs: 1_700_000_000_000 };
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => redis.flushall());

function person(change: WriteRequest['change'], expected: WriteRequest['expected']): WriteRequest {
  return {
    authority: { kind: 'person' },
    expected,
    change,
    cause: 'person',
    actor: { kind: 'person', name: 'kim@host (unverified)' },
    reason: 'pin',
    sentence: 'Pinned.',
    before: null,
    after: null,
    policyHash: '',
  };
}

async function expected() {
  const { params } = await readParams(redis, address);
  return { epoch: params!.epoch, revision: params!.revision };
}

test('I2: each revision has exactly one change entry, written with it', async () => {
  await seedParams(redis, keys);
  for (let i = 0; i < 5; i++) {
    const at = await expected();
    const reply = await write(redis, address, person({ rate: 50 + i }, at), options);
    expect(reply).toMatchObject({ status: 'ok', revision: at.revision + 1 });
  }
  const { entries } = await readEntries(redis, address, { kind: 'change' });
  expect(entries.map((e) => e.revision)).toEqual([6, 5, 4, 3, 2, 1]);
  expect(entries[0]!.body).toMatchObject({
    revision: 6,
    epoch: entries[0]!.epoch,
    atMs: options.nowMs,
  });
  expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent', changes: 6 });
});

test('I2: a moved head alone is sealed again; writers and notes at once leave one whole chain', async () => {
  await seedParams(redis, keys);
  const at = await expected();
  const notes = Array.from({ length: 4 }, (_, i) =>
    writeNote(
      redis,
      address,
      { ...person({}, at), reason: 'note', sentence: `note ${i}` },
      options,
    ),
  );
  const [change, ...replies] = await Promise.all([
    write(redis, address, person({ rate: 60 }, at), options),
    ...notes,
  ]);
  expect(change).toMatchObject({ status: 'ok' });
  expect(replies.map((reply) => reply.status)).toEqual(['ok', 'ok', 'ok', 'ok']);
  expect(await verifyAudit(redis, address)).toMatchObject({
    verdict: 'consistent',
    changes: 2,
    notes: 4,
  });
});

test('I3: a moved revision goes back to who decided, and writes nothing', async () => {
  await seedParams(redis, keys);
  const at = await expected();
  await write(redis, address, person({ rate: 60 }, at), options);
  const late = await write(redis, address, person({ rate: 70 }, at), options);
  expect(late).toMatchObject({ status: 'refused', reason: 'revision', revision: at.revision + 1 });
  expect((await readParams(redis, address)).params!.rate).toBe(60);
  expect(await redis.xlen(keys.audit)).toBe(2);
});

test('I3: only the newest holder of the lease writes; the fence grows over release and expiry', async () => {
  await seedParams(redis, keys);
  const a = createLease({ redis, address, owner: 'a', leaseMs: 60_000 });
  const b = createLease({ redis, address, owner: 'b', leaseMs: 60_000 });
  expect(a.authority()).toBeNull();
  expect(await a.acquire()).toMatchObject({ status: 'held' });
  expect(await b.acquire()).toMatchObject({ status: 'other', owner: 'a' });
  expect(b.token).toBeNull();
  const first = a.token!;
  expect(await a.acquire()).toMatchObject({ status: 'held', token: first });

  await redis.del(keys.lease); // as if it had lapsed
  await b.acquire();
  expect(b.token!).toBeGreaterThan(first);
  const request = (lease: typeof a, at: WriteRequest['expected']): WriteRequest => ({
    ...person({ rate: 80 }, at),
    authority: lease.authority()!,
    cause: 'law',
    actor: { kind: 'autopilot', name: lease.owner },
  });
  const late = await write(redis, address, request(a, await expected()), options);
  expect(late).toMatchObject({ status: 'refused', reason: 'lease' });
  expect(await a.beat('{}')).toMatchObject({ status: 'refused', reason: 'lease' });
  const good = await write(redis, address, request(b, await expected()), options);
  expect(good).toMatchObject({ status: 'ok' });

  await a.release(); // must not give away what b holds
  expect(await redis.exists(keys.lease)).toBe(1);
  const second = b.token!;
  await b.release();
  expect(await redis.exists(keys.lease)).toBe(0);
  await a.acquire();
  expect(a.token!).toBeGreaterThan(second);
});

test('params that are missing are null, and the time is that of Redis', async () => {
  const { params, nowUs } = await readParams(redis, address);
  expect(params).toBeNull();
  const [seconds] = await redis.time();
  expect(Math.abs(Number(seconds) - nowUs / 1e6)).toBeLessThan(5);
  expect(await readHead(redis, address)).toBe(GENESIS_HASH);
});

test('a create names epoch and revision; params that are there are not overwritten', async () => {
  const request = {
    ...person({ ...SEED }, { epoch: 5, revision: 1 }),
    create: true,
  };
  expect(await write(redis, address, request, options)).toMatchObject({ epoch: 5, revision: 1 });
  expect(await write(redis, address, request, options)).toMatchObject({
    status: 'refused',
    reason: 'exists',
  });
  const next = { ...person({ rate: 90 }, { epoch: 5, revision: 1 }), newEpoch: 9 };
  expect(await write(redis, address, next, options)).toMatchObject({ epoch: 9, revision: 2 });
  const newest = (await readEntries(redis, address)).entries[0]!;
  expect([newest.epoch, newest.body.epoch]).toEqual([9, 9]);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});
