/** A limiter's row read again and again: from Redis, and from what this daemon stored there itself while it leads. */
import type { Redis } from 'ioredis';
import { beforeEach, expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { lease } from '../../src/redis/scripts.js';
import type { LimiterStatus } from '../../src/report/status.js';
import { createOwnStatuses } from '../../src/view/own-statuses.js';
import { statusView } from '../../src/view/status.js';
import { readStatusFacts, type StatusFacts } from '../../src/view/status-facts.js';
import { createStatusReader } from '../../src/view/status-reader.js';
import { seedLimiter } from '../support/cli-run.js';
import { redisBench } from '../support/redis-bench.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let redis: Redis;
redisBench(async (bench) => {
  ({ redis } = bench);
});
beforeEach(() => seedLimiter(redis, address));

/** @returns its status, as it stores it. */
async function leads(owner: string, more: Partial<LimiterStatus> = {}): Promise<LimiterStatus> {
  const reply = await lease(redis, { keys, op: 'acquire', owner, leaseMs: 60_000 });
  if (reply.status !== 'held') throw new Error(JSON.stringify(reply));
  const [s] = await redis.time();
  const status = {
    ...{ schema: 1, atMs: Number(s) * 1000, tickMs: 1000, owner, fence: reply.token },
    ...{ epoch: 1, revision: 1, law: 'aimd@1', policyHash: 'a', file: 'drift', faults: ['é: x'] },
    sample: { signals: { p95: { value: 12.5, fresh: true, ageMs: 0, count: 9 } } },
    decision: { change: false, reason: 'steady', terms: {} },
    ...{ wouldBe: null, clocks: { redisMs: 1.25, servicesMs: 0 } },
    ...more,
  } as unknown as LimiterStatus;
  await redis.set(keys.status, JSON.stringify(status), 'PX', 60_000);
  return status;
}

/** Telemetry of every second around now: whichever five are looked at, they sum to the same. */
async function flush(fields: Record<string, number>): Promise<void> {
  const second = Number((await redis.time())[0]);
  for (let at = second - 10; at < second + 60; at++) await redis.hset(keys.telemetry(at), fields);
}

/** Of the same moment. */
const rowOf = (facts: StatusFacts) => {
  const { traffic, ...row } = statusView({ ...facts, nowMs: 1_000 });
  // Which five seconds it is of, is a matter of when it was read.
  return { ...row, processes: traffic.processes, offered: traffic.offeredPerSecond };
};

test('by memory, by looking again and by looking once a row is the same', async () => {
  const own = await leads('here:1:aa');
  await flush({ off: 50, adm: 40, 'd:rate': 10, 'p:a': 1, 'pr:a': 1, n: 1, inf: 2, 'l:3': 9 });
  const again = createStatusReader(redis, address);
  const byMemory = createStatusReader(redis, address, { notes: true, told: () => own });
  for (let look = 0; look < 2; look++) {
    const once = rowOf(await readStatusFacts({ redis, url: '', prefix: undefined }, address));
    expect(once).toMatchObject({ law: 'aimd@1', file: 'drift', faults: ['é: x'], offered: 50 });
    expect(once.daemon.owner).toBe('here:1:aa');
    expect(rowOf((await again.read()).facts)).toEqual(once);
    expect(rowOf((await byMemory.read()).facts)).toEqual(once);
  }
});

test('memory counts while the lease is its own: the next leader is read, and so is what it left', async () => {
  const own = await leads('here:1:aa', { law: 'mine@1' });
  const reader = createStatusReader(redis, address, { told: () => own });
  const law = async () => statusView((await reader.read()).facts).law;
  // Never so, but it shows whence it comes.
  await redis.set(keys.status, JSON.stringify({ ...own, law: 'stored@1' }));
  expect(await law()).toBe('mine@1');
  await lease(redis, { keys, op: 'release', owner: own.owner, token: own.fence, leaseMs: 60_000 });
  expect(await law()).toBe('stored@1');
  await leads('there:2:bb', { law: 'theirs@1' });
  const { facts } = await reader.read();
  expect(statusView(facts)).toMatchObject({ law: 'theirs@1', daemon: { owner: 'there:2:bb' } });
  // Again its own, by a newer token: what it told under the old one is past.
  await redis.del(keys.lease);
  await leads('here:1:aa', { law: 'newer@1' });
  expect(await law()).toBe('newer@1');
  await redis.flushall();
  expect(await law()).toBeNull();
});

test('what was told so long ago that Redis has it no more is none', async () => {
  const atMs = Number((await redis.time())[0]) * 1000 - 20_000;
  const own = await leads('here:1:aa', { atMs });
  const reader = createStatusReader(redis, address, { told: () => own });
  expect(statusView((await reader.read()).facts).law).toBeNull();
});

test('of limiters that nobody asked for nothing is kept', () => {
  const own = createOwnStatuses();
  const status = { owner: 'a' } as LimiterStatus;
  own.tell('checkout', status);
  expect(own.of('checkout')).toBeNull();
  own.want(new Set(['checkout']), false);
  own.tell('checkout', status);
  own.tell('search', status);
  expect([own.of('checkout'), own.of('search')]).toEqual([status, null]);
  own.want(new Set(['search']), false);
  expect(own.of('checkout')).toBeNull();
});
