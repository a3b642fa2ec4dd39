/** A write whose reply is lost takes effect once, and its writer learns that it did. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { readParams, write, writeNote } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import type { RedisClient } from '../../src/redis/connect.js';
import { awaitRedis, connect } from '../../src/redis/connect.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type LossyProxy, startLossyProxy } from '../support/lossy-proxy.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { seedParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let proxy: LossyProxy;
let redis: RedisClient;

beforeEach(async () => {
  server = await startRedis();
  proxy = await startLossyProxy(server.port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  redis = connect({ url, name: 'cli' });
  redis.on('error', () => {});
  await awaitRedis(redis, { url, deadlineMs: 10_000 });
  await seedParams(redis, keys);
});
afterEach(async () => {
  redis.disconnect();
  await proxy.close();
  await server.stop();
});

/** Requests that hold the sealed entry: the write itself, by hash or by text. */
const theWrite = (request: string) => request.includes('"sentence":');

const body = {
  actor: { kind: 'person', name: 'kim' },
  reason: 'test',
  sentence: 'x',
  before: null,
  after: null,
  policyHash: '',
} as const;

async function writeRate(rate: number) {
  const { params } = await readParams(redis, address);
  const expected = { epoch: params!.epoch, revision: params!.revision };
  return write(
    redis,
    address,
    { ...body, authority: { kind: 'person' }, expected, change: { rate }, cause: 'person' },
    { leaseMs: 0, nowMs: 1 },
  );
}

test.each(['request', 'reply'] as const)(
  'the %s of a change is lost: one revision, one entry, and the writer is told',
  async (which) => {
    proxy.loseNext(which, theWrite);
    expect(await writeRate(50)).toMatchObject({ status: 'ok', epoch: 1_000_000, revision: 2 });
    expect(proxy.lost).toBe(1);
    const { entries } = await readEntries(redis, address);
    expect(entries.map(({ revision }) => revision)).toEqual([2, 1]);
    expect((await readParams(redis, address)).params).toMatchObject({ rate: 50, revision: 2 });
    expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
  },
);

test.each(['request', 'reply'] as const)('the %s of a note is lost: one note', async (which) => {
  proxy.loseNext(which, theWrite);
  const note = { ...body, expected: { epoch: 1_000_000, revision: 1 } };
  expect(await writeNote(redis, address, note, { nowMs: 1 })).toMatchObject({ status: 'ok' });
  expect(proxy.lost).toBe(1);
  const { entries } = await readEntries(redis, address, { kind: 'note' });
  expect(entries).toHaveLength(1);
});

test('a person’s verb whose reply is lost is done, once', async () => {
  proxy.loseNext('reply', theWrite);
  const outcome = await applyVerb(redis, address, pin({ rate: 40 }, 60_000), {
    actor: 'kim',
    dryRun: false,
    approve: async () => true,
    nowMs: Date.now,
  });
  expect(outcome).toMatchObject({ status: 'done', revision: 2 });
  expect((await readParams(redis, address)).params).toMatchObject({ rate: 40, revision: 2 });
});

test('Redis is killed with a change under way and comes back empty: nothing is written, and the writer hears it', async () => {
  const { params } = await readParams(redis, address);
  const expected = { epoch: params!.epoch, revision: params!.revision };
  // The read of the audit head waits here too: whatever is under way must not be sent to the new server.
  server.pause();
  const pending = write(
    redis,
    address,
    { ...body, authority: { kind: 'person' }, expected, change: { rate: 7 }, cause: 'person' },
    { leaseMs: 0, nowMs: 1 },
  ).then(
    (reply) => reply.status,
    () => 'lost',
  );
  await server.kill();
  await server.restart();
  expect(await pending).not.toBe('ok');
  await expect
    .poll(() => redis.exists(keys.params, keys.audit).catch(() => -1), { timeout: 10_000 })
    .toBe(0);
});
