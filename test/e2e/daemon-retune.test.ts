/** Tuning by schedule on running daemons: what is overdue is done once, by the leader only. */
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { keepLastRun, readLastRun } from '../../src/actuate/tuning.js';
import { historyText } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { madeUp } from '../support/history.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const DAY_MS = 86_400_000;
vi.setConfig({ testTimeout: 120_000 });
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ redis, setup } = bench);
});

const params = async () => (await readParams(redis, address)).params!;
const tunings = async () => (await readEntries(redis, address, { reason: 'tune' })).entries;

/** Three days of 40 ± 20 good answers a second, and a last run of so long ago. */
async function history(lastRunMs: number): Promise<void> {
  const rows = madeUp({ days: 3, mean: 40 });
  const last = Math.floor(Date.now() / 60_000) - 1;
  const pipeline = redis.pipeline();
  rows.forEach((row, i) => {
    pipeline.hset(keys.history, String(last - (rows.length - 1 - i)), historyText(row));
  });
  await pipeline.exec();
  const atMs = Date.now() - lastRunMs;
  await keepLastRun(redis, address, { atMs, outcome: 'unchanged', sentence: '' });
}

function policy(): void {
  const tune = "tune: { schedule: 'weekly', timezone: 'Europe/Berlin', instances: 8 },";
  const text = policyText(`${tune} control: { law: 'step' },`);
  setup.write('checkout.ts', text);
}

test('C88: what is overdue is done at once by the leader, once, within the bounds, with an entry', async () => {
  policy();
  await history(8 * DAY_MS);
  const daemon = setup.start();
  await daemon.line('tuned');
  const second = setup.start();
  await second.line('started');
  const run = await until('a run that was applied', async () => {
    const last = await readLastRun(redis, address);
    return last?.outcome === 'applied' && last;
  });
  expect(Date.now() - run.atMs).toBeLessThan(60_000);
  const now = await params();
  expect(now.rate).toBeGreaterThan(50);
  expect(now.rate).toBeLessThan(70);
  const changes = await tunings();
  expect(changes).toMatchObject([
    {
      body: {
        actor: { kind: 'autopilot' },
        before: { rate: 100 },
        after: { rate: now.rate },
        detail: { cause: 'schedule', tune: { rate: { binds: 'history' } } },
      },
    },
  ]);
  expect(changes[0]!.body.sentence).toContain('Tuned by schedule from');
  // The next owner sees that it is done.
  daemon.signal('SIGTERM');
  await daemon.exited;
  await second.line('lease_taken');
  await until('a turn of the second', async () => {
    const status = JSON.parse((await redis.get(keys.status)) ?? '{}');
    return String(status.owner).includes(`:${second.pid}:`);
  });
  expect((await tunings()).length).toBe(1);
  expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent' });
});
