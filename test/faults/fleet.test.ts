/** A fleet of daemons: who leads what, and what becomes of it when one is killed, joins, leaves or sleeps. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { ranked } from '../../src/daemon/rendezvous.js';
import { fleetKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, policyText, type TestDaemon, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { leadersOf, registerLimiter } from '../support/fleet.js';

// Real processes, and leases that must lapse.
vi.setConfig({ testTimeout: 180_000 });
const NAMES = Array.from({ length: 30 }, (_, i) => `limiter-${i}`);
const ENV = { FLYBALL_TICK_MS: '300', FLYBALL_LEASE_MS: '3000' };
let redis: Redis;
let setup: DaemonSetup;

daemonBench(async (bench) => {
  ({ redis, setup } = bench);
  // Daemons lead what is registered, whoever adopted it; one file, since a daemon without any does not start.
  setup.write(
    'first.ts',
    policyText('', `name: '${NAMES[0]}', rate: 100, capacity: 50, inFlightMax: 20`),
  );
  await Promise.all(NAMES.slice(1).map((name) => registerLimiter(redis, name)));
});

const leaders = () => leadersOf(redis, NAMES);

/** Who should lead each limiter; null: not all of these daemons have told of themselves, or another still counts. */
async function planned(daemons: readonly TestDaemon[]): Promise<number[] | null> {
  const owners = (await redis.hkeys(fleetKeys().daemons)).filter((owner) =>
    daemons.some(({ pid }) => owner.split(':')[1] === String(pid)),
  );
  if (owners.length < daemons.length) return null;
  return NAMES.map((name) => Number(ranked(name, owners)[0]?.split(':')[1]));
}

async function balanced(daemons: readonly TestDaemon[]): Promise<number[]> {
  await until(
    `each limiter led by the one of ${daemons.length} whose it is`,
    async () => {
      const plan = await planned(daemons);
      return plan !== null && String(await leaders()) === String(plan);
    },
    90_000,
  );
  const now = await leaders();
  for (const { pid } of daemons) expect(now).toContain(pid);
  return now as number[];
}

const start = (name: string) => setup.start({ ...ENV, FLYBALL_NAME: name });

/** Nobody's limits had begun to glide, and no revision is lost or doubled. */
async function bumpless(): Promise<void> {
  for (const name of NAMES.slice(0, 12)) {
    const { entries } = await readEntries(redis, { name }, { limit: 100 });
    expect(entries.map((entry) => entry.body.reason)).not.toContain('glide_settled');
    expect((await verifyAudit(redis, { name })).verdict).toBe('consistent');
  }
}

test('limiters spread over three; what a killed one led is taken by the next in line, and nothing else moves', async () => {
  const daemons = ['a', 'b', 'c'].map(start);
  const [a, b, c] = daemons as [TestDaemon, TestDaemon, TestDaemon];
  const before = await balanced(daemons);
  a.signal('SIGKILL');
  await a.exited;
  const after = await balanced([b, c]);
  for (const [i, pid] of before.entries()) if (pid !== a.pid) expect(after[i]).toBe(pid);
  await bumpless();
  await until('the others count who lives', async () => {
    const metrics = await (await fetch(`${await b.http()}/metrics`)).text();
    return metrics.includes('flyball_daemon_fleet_daemons 2');
  });
});

test('one that joins is handed its part, at a checkpoint; one that leaves gives its part back', async () => {
  const a = start('a');
  await balanced([a]);
  const b = start('b');
  const shared = await balanced([a, b]);
  const handed = a.lines.filter((line) => line.event === 'lease_handed_over');
  expect(handed.length).toBeGreaterThan(0);
  for (const { limiter } of handed) expect(shared[NAMES.indexOf(limiter as string)]).toBe(b.pid);

  b.signal('SIGTERM');
  expect((await b.exited).code).toBe(0);
  expect(await redis.hkeys(fleetKeys().daemons)).toHaveLength(1);
  await balanced([a]);
  await bumpless();
});

test('C75: a daemon that slept for two leases writes nothing late, is counted among the living again, and gets its part back', async () => {
  const [a, b] = ['a', 'b'].map(start) as [TestDaemon, TestDaemon];
  await balanced([a, b]);
  a.signal('SIGSTOP');
  await until('b leads all', async () => (await leaders()).every((pid) => pid === b.pid), 60_000);
  a.signal('SIGCONT');
  const refused = await a.line('refused');
  expect(refused.reason).toBe('lease');
  const metrics = await (await fetch(`${await a.http()}/metrics`)).text();
  expect(metrics).toMatch(
    /flyball_actuate_refusals_total\{limiter="limiter-\d+",reason="lease"\} 1/,
  );
  await balanced([a, b]);
  await bumpless();
});
