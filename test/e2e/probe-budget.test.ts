/** Half-open over several service processes: one budget of probes for all, its deadline, and the successes that end it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import type { TestRedis } from '../support/redis-server.js';

vi.setConfig({ testTimeout: 180_000 });
const SERVICE = fileURLToPath(new URL('../support/probe-process.mjs', import.meta.url));
const LOG = 'test:admitted';
const PROBE_RATE = 4;
const SUCCESSES = 6;
/** The way back grows at each turn that hears answers, which come once a second: of longer turns it takes fewer. */
const TURNS = { FLYBALL_TICK_MS: '250', FLYBALL_LEASE_MS: '2000' };
const address = { name: 'bank' };
const POLICY = policyText(
  `signals: { errors: { source: 'telemetry', stat: 'errorRatio' } },
  breaker: {
    on: 'errors', above: '50%', per: '1s', openFor: '1s', openForMax: '1s',
    probeRate: ${PROBE_RATE}, successes: ${SUCCESSES}, probeDeadline: '2s',
  },`,
  "name: 'bank', rate: 60, capacity: 30",
).replace('max: 400 }, inFlight: { min: 2, max: 64 }', 'max: 400 }');
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;
const services: ChildProcess[] = [];

daemonBench((bench) => {
  ({ server, redis, setup } = bench);
});
afterEach(async () => {
  await Promise.all(
    services.splice(0).map((service) => {
      const gone = new Promise((ok) => service.once('close', ok));
      service.stdin!.end();
      return gone;
    }),
  );
});

async function startService(): Promise<void> {
  const args = [SERVICE, server.url, address.name, LOG];
  const service = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  services.push(service);
  await new Promise((ok) => service.stdout!.once('data', ok));
}

const all = (ends: 'ok' | 'fail' | 'hang') => {
  for (const service of services) service.stdin!.write(`${ends}\n`);
};

/** Oldest first, each with the Redis ms at which it was written. */
async function changes() {
  const { entries } = await readEntries(redis, address, { kind: 'change', limit: 1000 });
  return entries
    .map(({ id, body }) => ({ atMs: Number(id.split('-')[0]), body }))
    .sort((a, b) => a.body.revision - b.body.revision);
}

/** The first change after that revision that says so. */
const entryOf = (says: RegExp, after = 0) =>
  until(
    `an entry that says ${says}`,
    async () =>
      (await changes()).find(
        ({ body }) => body.revision > after && says.test(`${body.reason}: ${body.sentence}`),
      ),
    90_000,
  );

test('three processes: never more probes than the fleet’s budget; hanging, failing and good ones are told apart', async () => {
  setup.write('bank.ts', POLICY);
  await setup.start(TURNS).line('lease_taken');
  for (let i = 0; i < 3; i++) await startService();
  await until('all are admitted', async () => (await redis.xlen(LOG)) > 50);
  all('fail');
  const trip = await entryOf(/breaker_trip/);
  all('hang');
  // Probes of which none is answered: open again at the deadline, and not for ever.
  const late = await entryOf(/no verdict of the probes/, trip.body.revision);
  all('fail');
  const failed = await entryOf(/probes failed/, late.body.revision);
  all('ok');
  const passed = await entryOf(/probes passed/, failed.body.revision);
  await entryOf(/breaker_closed/, passed.body.revision);

  // What was admitted is written down after it was: by then the budget must have had room for it.
  const probing: number[] = [];
  const pids = new Set<string>();
  for (const [id, fields] of await redis.xrange(LOG, '-', '+')) {
    const atMs = Number(id.split('-')[0]);
    if (atMs > trip.atMs + 1000 && atMs < passed.atMs) {
      probing.push(atMs);
      pids.add(fields[1]!);
    }
  }
  expect(probing.length).toBeGreaterThan(SUCCESSES);
  // 1 s closed, then at most one bucket and the rate: three processes with a budget each would have three times that.
  const rounds = (await changes()).filter(({ body }) => body.reason.startsWith('breaker_'));
  const begins = rounds
    .filter(({ body, atMs }) => body.after?.state === 'open' && atMs < passed.atMs)
    .map(({ atMs }) => atMs + 1000);
  for (const [i, beginMs] of begins.entries()) {
    const endMs = begins[i + 1] ?? passed.atMs;
    const round = probing.filter((atMs) => atMs >= beginMs && atMs < endMs);
    for (const [k, atMs] of round.entries()) {
      const budget = PROBE_RATE + (PROBE_RATE * (atMs - beginMs)) / 1000;
      expect(k + 1, `probe ${k + 1} after ${atMs - beginMs} ms`).toBeLessThanOrEqual(budget + 1);
    }
  }
  expect(begins.length).toBeGreaterThanOrEqual(3);
  expect(late.atMs - trip.atMs).toBeGreaterThanOrEqual(3000);
  const ok = Number(/(\d+) probes passed/.exec(passed.body.sentence)![1]);
  expect(ok).toBeGreaterThanOrEqual(SUCCESSES);
  expect((await verifyAudit(redis, address)).verdict).not.toBe('broken');
});
