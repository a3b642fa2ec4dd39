/** Tuning by schedule on running daemons: applied or noted once when overdue, by the leader only, held limiters left alone. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { keepLastRun, type LastRun, readLastRun } from '../../src/actuate/tuning.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { freeze } from '../../src/actuate/verbs/freeze.js';
import { historyText } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { type DaemonSetup, daemonSetup, policyText, until } from '../support/daemon.js';
import { madeUp } from '../support/history.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const DAY_MS = 86_400_000;
vi.setConfig({ testTimeout: 120_000 });
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await redis.flushall();
  setup = daemonSetup(server.url);
});
afterEach(() => setup.close());

const params = async () => (await readParams(redis, address)).params!;
const tunings = async (kind: 'change' | 'note') =>
  (await readEntries(redis, address, { kind, reason: 'tune' })).entries;

/** Three days of 40 ± 20 good answers a second, and a last run of so long ago. */
async function history(days: number, lastRunMs: number | null): Promise<void> {
  const rows = madeUp({ days, mean: 40 });
  const last = Math.floor(Date.now() / 60_000) - 1;
  const pipeline = redis.pipeline();
  rows.forEach((row, i) => {
    pipeline.hset(keys.history, String(last - (rows.length - 1 - i)), historyText(row));
  });
  await pipeline.exec();
  if (lastRunMs === null) return;
  const atMs = Date.now() - lastRunMs;
  await keepLastRun(redis, address, { atMs, outcome: 'unchanged', sentence: '' });
}

function policy(mode: string, law = 'step'): void {
  const tune = "tune: { schedule: 'weekly', timezone: 'Europe/Berlin', instances: 8 },";
  const text = policyText(`${tune} control: { law: '${law}' },`);
  setup.write('checkout.ts', text.replace("mode: 'auto'", `mode: '${mode}'`));
}

const lastRun = (outcome: LastRun['outcome']) =>
  until(`a run that ended as ${outcome}`, async () => {
    const run = await readLastRun(redis, address);
    return run?.outcome === outcome && run;
  });

test('C88: what is overdue is done at once by the leader, once, within the bounds, with an entry', async () => {
  policy('auto');
  await history(3, 8 * DAY_MS);
  const daemon = setup.start();
  await daemon.line('tuned');
  const second = setup.start();
  await second.line('started');
  const run = await lastRun('applied');
  expect(Date.now() - run.atMs).toBeLessThan(60_000);
  const now = await params();
  expect(now.rate).toBeGreaterThan(50);
  expect(now.rate).toBeLessThan(70);
  const changes = await tunings('change');
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
  expect((await tunings('change')).length).toBe(1);
  expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent' });
});

test.each([
  ['recommend', 'step'],
  ['auto', 'fixed'],
])('in %s with the law %s it is noted, and nothing changes', async (mode, law) => {
  policy(mode, law);
  await history(3, 8 * DAY_MS);
  setup.start();
  await lastRun('noted');
  expect(await params()).toMatchObject({ rate: 100, revision: 1 });
  const notes = await tunings('note');
  expect(notes.length).toBe(1);
  expect(notes[0]!.body).toMatchObject({ before: { rate: 100 }, detail: { tune: {} } });
  expect(notes[0]!.body.after!.rate).toBeLessThan(70);
});

test('what is not due, or was never seen before, is not done; too short a history is said', async () => {
  policy('auto');
  await history(3, null);
  const daemon = setup.start();
  await lastRun('begun');
  await daemon.stop();
  expect((await params()).rate).toBe(100);
  await redis.del(keys.history);
  await history(0.5, 8 * DAY_MS);
  setup.start();
  const run = await lastRun('refused');
  expect(run.sentence).toContain('a day with 360 usable minutes is needed');
  expect((await params()).rate).toBe(100);
  expect(await tunings('change')).toEqual([]);
});

test('a limiter that a person has frozen is left alone', async () => {
  policy('auto');
  const first = setup.start();
  await first.line('lease_taken');
  await applyVerb(redis, address, freeze('until-ended'), {
    actor: 'kim',
    dryRun: false,
    nowMs: Date.now,
    approve: async () => true,
  });
  await first.stop();
  await redis.del(keys.history);
  await history(3, 8 * DAY_MS);
  setup.start();
  expect((await lastRun('held')).sentence).toContain('frozen by kim');
  expect((await params()).rate).toBe(100);
  expect(await tunings('change')).toEqual([]);
});
