/** The log of a canary that is over: the registry knows it no more, and an export has its last entries all the same. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { canaryAddress, retireCanary } from '../../src/actuate/canary-end.js';
import { withRetired } from '../../src/audit/retired-logs.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { address, folderExporter, history, keyPair, proof } from '../support/audit-rig.js';
import { personWrites } from '../support/person-write.js';
import { redisBench } from '../support/redis-bench.js';
import { seedParams } from '../support/seed-params.js';
import { tempFolder } from '../support/temp-folder.js';

const HOUR_MS = 3_600_000;
const other = canaryAddress(address);
const { audit, params, retention } = limiterKeys(other);
let redis: Redis;

redisBench(async (bench) => {
  ({ redis } = bench);
  await history(redis);
  await seedParams(redis, limiterKeys(other));
  await personWrites(redis, other, { rate: 7 }, 'pin');
});

test('is exported within a minute, signed heads and all; also by who begins after its end', async () => {
  const { secret, open } = keyPair();
  const dir = tempFolder('retired');
  const first = await folderExporter(redis, dir, { secret });
  await first.minute();
  await personWrites(redis, other, { rate: 8 }, 'pin');
  await retireCanary(redis, address);
  await first.round();
  await first.minute();
  expect(first.fault).toBeNull();
  await first.close();
  await personWrites(redis, other, { rate: 9 }, 'pin');
  const next = await folderExporter(redis, dir, { secret, owner: 'd2' });
  await next.minute();
  await next.close();
  const { limiters, fault } = await proof(dir, open);
  expect(fault).toBeUndefined();
  const entries = await redis.xlen(audit);
  expect(limiters.find(({ limiter }) => limiter === other.name)).toMatchObject({
    ...{ verdict: 'proven', entries, gaps: [] },
  });
});

test('is there for a day, its numbers for an hour; then nobody asks for it', async () => {
  const exporter = await folderExporter(redis, tempFolder('retired'));
  await exporter.minute();
  await retireCanary(redis, address);
  const left = async (key: string) => (await redis.pttl(key)) / HOUR_MS;
  for (const key of [audit, retention]) expect(await left(key)).toBeGreaterThan(23);
  expect(await left(params)).toBeLessThanOrEqual(1);
  expect(await left(params)).toBeGreaterThan(0);
  expect(await withRetired(redis, [address])).toEqual([address, other]);
  expect(await withRetired(redis, [address, other])).toEqual([address, other]);
  await redis.del(audit, retention);
  expect(await withRetired(redis, [address])).toEqual([address]);
  await exporter.minute();
  expect(await redis.exists(retention)).toBe(0);
  await exporter.close();
});
