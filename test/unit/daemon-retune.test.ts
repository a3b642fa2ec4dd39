/** What the leader hands to the history each tick, and what a schedule makes of the history when a run is overdue. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readParams, write } from '../../src/actuate/actuator.js';
import { adopt, type LoadedPolicy } from '../../src/actuate/adopt.js';
import { readEntries } from '../../src/actuate/audit.js';
import { createLease } from '../../src/actuate/lease.js';
import { keepLastRun, type LastRun, readLastRun } from '../../src/actuate/tuning.js';
import { systemClock } from '../../src/clock.js';
import { createClockHold } from '../../src/daemon/clock-hold.js';
import type { HistoryTick } from '../../src/daemon/history.js';
import { createLeader } from '../../src/daemon/leader.js';
import { createServerWatch } from '../../src/daemon/server-watch.js';
import { createWriter } from '../../src/daemon/writer.js';
import { createEstimateState, type Estimates, estimate } from '../../src/estimate/estimate.js';
import { createLog } from '../../src/log.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { historyText } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { createMetrics } from '../../src/report/metrics.js';
import { createSourcePool } from '../../src/sense/source-pool.js';
import { madeUp } from '../support/history.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
const leaseMs = 60_000;
const input = {
  limiter: { ...address, rate: 100, capacity: 50, inFlightMax: 20 },
  signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
  objective: { p95: { below: 250 } },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
  control: { law: 'step' },
  tune: { schedule: '* * * * *' },
} satisfies PolicyInput;

function loaded(more: Partial<PolicyInput> = {}): LoadedPolicy {
  const policy = policySchema.parse({ ...input, ...more });
  return { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) };
}
let adopted: LoadedPolicy;
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(() => begin());

async function begin(more: Partial<PolicyInput> = {}): Promise<void> {
  adopted = loaded(more);
  await redis.flushall();
  const actor = { kind: 'autopilot' as const, name: 'd' };
  await adopt(redis, adopted, { actor, leaseMs, nowMs: Date.now() });
}

const lease = () => createLease({ redis, address, owner: 'd', leaseMs });

async function leading(file: 'same' | 'drift') {
  const held = lease();
  await held.acquire();
  const log = createLog({ level: 'silent' });
  const deps = { redis, address, leaseMs, clock: systemClock, log, metrics: createMetrics('unit') };
  const ticks: HistoryTick[] = [];
  const clocks = { skewMs: 0, heldFor: null, notice: () => {}, close: () => {} };
  const leader = createLeader({
    ...{ ...deps, owner: 'd', tickMs: 1000, fileState: () => ({ file, faults: [] }) },
    ...{ members: { rank: () => 0, settled: () => true }, spend: null },
    sources: createSourcePool({ env: {}, log, clock: systemClock, everyMs: 500 }),
    servers: createServerWatch({ redis, everyMs: 1000 }),
    notifier: {
      raise() {},
      sees() {},
      firing: async () => [],
      sweep: async () => {},
      close: async () => {},
    },
    fleetAlerts: { evicted() {}, leaseLost() {}, close() {} },
    ...{ clocks, evictions: { of: () => null } },
    clockHold: createClockHold(clocks),
    ...{ lease: held, writer: createWriter({ ...deps, lease: held }) },
    history: { watch: (tick) => ticks.push(tick), close: async () => {} },
  });
  return {
    leader,
    ticks,
    held,
    async lead(p95Ms: number | null) {
      const { params, nowUs } = await readParams(redis, address);
      const missing = { kind: 'missing' as const, reason: 'no_data' as const };
      const readings = { atMs: nowUs / 1000, telemetry: missing, signals: {} };
      const sensed = { estimates: estimates(nowUs / 1000, p95Ms), readings };
      await leader.lead(adopted, params!, nowUs, sensed, 1000, null);
    },
  };
}

function estimates(atMs: number, value: number | null): Estimates {
  const missing = { kind: 'missing' as const, reason: 'no_data' as const };
  const readings = { atMs, telemetry: missing, signals: {} };
  const nothing = estimate(adopted.policy, createEstimateState(), readings, 1000).estimates;
  const p95 = { value, fresh: value !== null, ageMs: 100, count: 500 };
  return value === null ? nothing : { ...nothing, signals: { p95 } };
}

async function set(change: ParamChange): Promise<void> {
  const { params } = await readParams(redis, address);
  const entry = { reason: 'trip', sentence: 'x', before: null, after: null };
  const reply = await write(
    redis,
    address,
    {
      ...{ authority: { kind: 'person' }, expected: params!, change, cause: 'person', ...entry },
      ...{ actor: { kind: 'person', name: 'kim' }, policyHash: adopted.hash },
    },
    { leaseMs, nowMs: Date.now() },
  );
  expect(reply.status).toBe('ok');
}

test('each tick tells the history what is in force, and whether a signal or the file is off', async () => {
  const calm = await leading('same');
  await calm.lead(100);
  await calm.lead(300);
  await calm.lead(null);
  expect(calm.ticks).toMatchObject([
    {
      ...{ dtMs: 1000, overload: false, drift: false },
      inForce: { state: 'closed', rate: 100, capacity: 50, inFlightMax: 20 },
    },
    { overload: true, drift: false },
    { overload: false },
  ]);
  expect(calm.ticks.every((tick) => Math.abs(tick.nowMs - Date.now()) < 60_000)).toBe(true);
  const drifted = await leading('drift');
  await drifted.lead(100);
  expect(drifted.ticks).toMatchObject([{ drift: true }]);
});

const HOUR_AGO: LastRun = { atMs: Date.now() - 3_600_000, outcome: 'unchanged', sentence: '' };

/** Days of 40 ± 20 good answers a second that end now, and a last run. */
async function history(days: number, last: LastRun | null = HOUR_AGO): Promise<void> {
  const newest = Math.floor(Date.now() / 60_000) - 1;
  const rows = madeUp({ days, mean: 40 });
  const pipeline = redis.pipeline();
  rows.forEach((row, i) => {
    pipeline.hset(keys.history, String(newest - (rows.length - 1 - i)), historyText(row));
  });
  await pipeline.exec();
  if (last !== null) await keepLastRun(redis, address, last);
}

/** A job, and the turn that acts on it: how the run ended, what was written, what is in force. */
async function tuned() {
  const { leader, lead, held } = await leading('same');
  expect(held.token).not.toBeNull();
  await leader.runJobs(adopted);
  await lead(100);
  await held.release();
  const { entries } = await readEntries(redis, address, { reason: 'tune' });
  const { params } = await readParams(redis, address);
  return { run: await readLastRun(redis, address), entries, params: params! };
}

test.each([
  ['mode recommend', { mode: 'recommend' }],
  ['law fixed', { control: { law: 'fixed' } }],
] as [string, Partial<PolicyInput>][])(
  '%s: it is noted, and nothing changes',
  async (what, more) => {
    await begin(more);
    await history(2);
    const { run, entries, params } = await tuned();
    expect(run).toMatchObject({ outcome: 'noted' });
    expect(params).toMatchObject({ rate: 100, revision: 1 });
    expect(entries).toMatchObject([
      { kind: 'note', body: { before: { rate: 100 }, detail: { tune: {} } } },
    ]);
    expect(entries[0]!.body.after!.rate).toBeLessThan(70);
    expect(entries[0]!.body.sentence).toContain(`not applied (${what})`);
  },
);

test('what was never seen before is begun, not made up for; too short a history is said', async () => {
  await history(2, null);
  expect(await tuned()).toMatchObject({
    run: { outcome: 'begun' },
    entries: [],
    params: { rate: 100 },
  });
  await begin();
  await history(0.5);
  const { run, entries } = await tuned();
  expect(run).toMatchObject({ outcome: 'refused' });
  expect(run!.sentence).toContain('a day with 360 usable minutes is needed');
  expect(entries).toEqual([]);
});

test('a clock that was set back does not silence the schedule', async () => {
  await history(2, { ...HOUR_AGO, atMs: Date.now() + 10 * 86_400_000 });
  const { run } = await tuned();
  expect(run).toMatchObject({ outcome: 'begun' });
  expect(run!.atMs).toBeLessThan(Date.now() + 60_000);
});

test.each([
  ['frozen', { frozenUntil: -1, heldBy: 'kim' }],
  ['pinned', { pinnedUntil: -1, heldBy: 'kim' }],
] as [string, ParamChange][])('a limiter that is %s is left alone', async (what, change) => {
  await history(2);
  await set(change);
  const { run, entries, params } = await tuned();
  expect(run).toMatchObject({ outcome: 'held', sentence: `It is ${what} by kim.` });
  expect([entries, params.rate]).toEqual([[], 100]);
});

test.each([undefined, { schedule: 'never' }])('by %o nothing is judged', async (tune) => {
  await begin({ tune });
  await history(2, { ...HOUR_AGO, atMs: Date.now() - 8 * 86_400_000 });
  expect(await tuned()).toMatchObject({ run: { outcome: 'unchanged' }, entries: [] });
});

test('tuned weekly, unless it is said otherwise', async () => {
  await begin({ tune: {} });
  await history(2, { ...HOUR_AGO, atMs: Date.now() - 8 * 86_400_000 });
  expect(await tuned()).toMatchObject({ run: { outcome: 'applied' } });
});

test('a run that is due while the breaker is open waits, and is made once it has closed', async () => {
  await history(2);
  await set({ state: 'open', openForMs: 600_000 });
  expect(await tuned()).toMatchObject({
    ...{ run: { outcome: 'unchanged' }, entries: [], params: { state: 'open', rate: 100 } },
  });
  await set({ state: 'closed' });
  const { run, entries, params } = await tuned();
  expect(run).toMatchObject({ outcome: 'applied' });
  expect(params.rate).toBeLessThan(70);
  expect(entries).toMatchObject([{ kind: 'change', body: { detail: { cause: 'schedule' } } }]);
  // It is done: nothing is due before the next minute but one.
  await keepLastRun(redis, address, { ...HOUR_AGO, atMs: Date.now() + 50_000 });
  expect((await tuned()).params.revision).toBe(params.revision);
});
