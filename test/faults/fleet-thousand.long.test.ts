/** A thousand limiters over three daemons, one of them killed: how long until each is led again, in leases of Redis's time. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { verifyAudit } from '../../src/actuate/audit.js';
import { ranked } from '../../src/daemon/rendezvous.js';
import { fleetKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, policyText, type TestDaemon, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { leadersOf, registerLimiter } from '../support/fleet.js';

// Three daemons with three hundred limiters each start, and leases must lapse.
vi.setConfig({ testTimeout: 400_000, hookTimeout: 200_000 });
const COUNT = 1_000;
const NAMES = Array.from({ length: COUNT }, (_, i) => `limiter-${i}`);
/** Twice the defaults, so that a machine busy with other tests can keep to them. */
const TICK_MS = 2_000;
const LEASE_MS = 10_000;
/** A lease that lapses and a tick are 1.2; the rest is for a machine that does other things meanwhile. */
const MOST_LEASES = 3;
let redis: Redis;
let setup: DaemonSetup;

daemonBench(async (bench) => {
  ({ redis, setup } = bench);
  // A daemon without any file does not start; the others are registered, and led by whoever lives.
  setup.write(
    'first.ts',
    policyText('', `name: '${NAMES[0]}', rate: 100, capacity: 50, inFlightMax: 20`),
  );
  const register = (name: string) => registerLimiter(redis, name);
  for (let i = 1; i < COUNT; i += 50) await Promise.all(NAMES.slice(i, i + 50).map(register));
});

const leaders = () => leadersOf(redis, NAMES);

async function redisMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/** Each led by the one whose it is, of those that live. */
async function balanced(daemons: readonly TestDaemon[]): Promise<number[]> {
  let now: (number | null)[] = [];
  await until(
    `${COUNT} limiters spread over ${daemons.length} daemons`,
    async () => {
      const owners = await redis.hkeys(fleetKeys().daemons);
      if (owners.length < daemons.length) return false;
      now = await leaders();
      return NAMES.every((name, i) => ranked(name, owners)[0]?.split(':')[1] === String(now[i]));
    },
    240_000,
  );
  return now as number[];
}

async function ledBy(daemons: readonly TestDaemon[]): Promise<void> {
  const pids = new Set(daemons.map(({ pid }) => pid));
  const led = async () => (await leaders()).every((pid) => pid !== null && pids.has(pid));
  await until(`all of ${COUNT} led by those that live`, led, 120_000);
}

test('a thousand limiters over three daemons: one is killed, and each is led again within three leases', async () => {
  const env = { FLYBALL_TICK_MS: String(TICK_MS), FLYBALL_LEASE_MS: String(LEASE_MS) };
  const daemons = ['a', 'b', 'c'].map((name) => setup.start({ ...env, FLYBALL_NAME: name }));
  const [a, ...rest] = daemons as [TestDaemon, TestDaemon, TestDaemon];
  const before = await balanced(daemons);
  const its = before.filter((pid) => pid === a.pid).length;
  // A fair part of a thousand, give or take: 333 ± 5 standard deviations.
  expect(its).toBeGreaterThan(COUNT / 5);
  expect(its).toBeLessThan(COUNT / 2);

  a.signal('SIGKILL');
  await a.exited;
  const killedMs = await redisMs();
  await ledBy(rest);
  const leases = ((await redisMs()) - killedMs) / LEASE_MS;
  console.info(`${its} of ${COUNT} limiters were led again after ${leases.toFixed(2)} leases`);
  expect(leases).toBeLessThan(MOST_LEASES);
  for (const i of [before.indexOf(a.pid), before.lastIndexOf(a.pid)]) {
    expect((await verifyAudit(redis, { name: NAMES[i]! })).verdict).toBe('consistent');
  }
});
