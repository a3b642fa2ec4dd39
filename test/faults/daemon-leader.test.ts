/** The leading daemon is stopped, killed, paused; Redis goes away: one writer at a time, and no revision lost or doubled. */
import { expect, type TestContext, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, type StoredEntry, verifyAudit } from '../../src/actuate/audit.js';
import { explainEntry } from '../../src/actuate/explain.js';
import { ranked } from '../../src/daemon/rendezvous.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { take } from '../../src/redis/scripts.js';
import { policyText, type TestDaemon, until } from '../support/daemon.js';
import { ownBench } from '../support/daemon-bench.js';
import { personWrites } from '../support/person-write.js';
import { startTraffic, type Traffic } from '../support/traffic.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
/** Every answer is slow by this law, so that it cuts a little whenever telemetry is fresh: once a second. */
const CUTTING = `
  signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
  control: { law: 'step', slowAboveMs: 1, slowFor: '1s', down: 0.95 },
  guards: { deadBand: 0, cooldown: 0, changesPerMinute: 1000 },`;
const BRIEF = "whenLost: { after: '3s', over: '1s', rate: 40, inFlight: 8 },";
// Each test starts real processes, and waits for telemetry, which comes once a second.
vi.setConfig({ testTimeout: 180_000 });
const by = (daemon: TestDaemon) => (entry: StoredEntry) =>
  entry.body.actor.name.split(':')[1] === String(daemon.pid);

/** A Redis of its own, daemons on it, and what tests of them ask: they mostly wait, and so run side by side. */
async function open(context: TestContext) {
  const bench = await ownBench(context);
  const { server, redis, setup } = bench;

  const params = async () => (await readParams(redis, address)).params!;
  const changes = async () =>
    (await readEntries(redis, address, { kind: 'change', limit: 1000 })).entries;

  const person = (change: ParamChange, reason: string) =>
    personWrites(redis, address, change, reason);

  const leaderAndStandby = async (): Promise<[TestDaemon, TestDaemon]> => {
    // Long enough that a busy machine does not make them take turns.
    const env = { FLYBALL_LEASE_MS: '1500' };
    // The one whose limiter it is, by the spread over the fleet, comes first: else it would be handed over.
    const [first, second] = ranked('checkout', ['a', 'b']) as [string, string];
    const leader = setup.start({ ...env, FLYBALL_NAME: first });
    await leader.line('lease_taken');
    const standby = setup.start({ ...env, FLYBALL_NAME: second });
    await standby.line('started');
    return [leader, standby];
  };

  const lawChanges = (daemon: TestDaemon, atLeast: number) =>
    until(
      `${atLeast} changes by ${daemon.pid}`,
      async () => {
        const found = (await changes()).filter(by(daemon)).filter((e) => e.body.law !== undefined);
        return found.length >= atLeast && found;
      },
      60_000,
    );

  const wholeChain = async (): Promise<void> => {
    expect(await verifyAudit(redis, address)).toMatchObject({ verdict: 'consistent' });
    const revisions = (await changes()).map((entry) => entry.revision).reverse();
    expect(revisions).toEqual(revisions.map((_, i) => i + 1));
  };
  const startService = (): Traffic => {
    const traffic = startTraffic(server, 'checkout', 20);
    context.onTestFinished(() => traffic.stop());
    return traffic;
  };
  const asked = { params, changes, person, lawChanges, wholeChain };
  return { ...bench, ...asked, leaderAndStandby, startService };
}

test.concurrent('C75: a leader stopped for two leases writes nothing more: refused inside Redis, and noted', async (context) => {
  const { redis, setup, changes, lawChanges, wholeChain, leaderAndStandby, startService } =
    await open(context);
  setup.write('checkout.ts', policyText(CUTTING));
  const [a, b] = await leaderAndStandby();
  startService();
  await lawChanges(a, 2);

  a.signal('SIGSTOP');
  const taken = await b.line('lease_taken');
  await lawChanges(b, 2);
  a.signal('SIGCONT');
  const refused = await a.line('refused');
  expect(refused.reason).toBe('lease');
  expect(refused.fence as number).toBeLessThan(taken.fence as number);
  const note = await until('the note', async () => {
    const { entries } = await readEntries(redis, address, { reason: 'write_refused' });
    return entries.find(by(a));
  });
  expect(note.body.detail).toMatchObject({ refused: 'lease', fence: refused.fence });

  // It is among the living again, and so is handed its limiter, with a higher token.
  const again = await a.line(
    'lease_taken',
    (line) => (line.fence as number) > (taken.fence as number),
  );
  expect(again.fence).toBeGreaterThan(refused.fence as number);
  await b.line('lease_handed_over');
  const who = (await changes()).reverse().map((entry) => (by(a)(entry) ? 'a' : 'b'));
  expect(who.filter((each, i) => each !== who[i - 1]).join('')).toMatch(/^aba?$/);
  const metrics = await (await fetch(`${await a.http()}/metrics`)).text();
  expect(metrics).toMatch(
    /flyball_actuate_refusals_total\{limiter="checkout",reason="lease"\} [1-9]/,
  );
  await wholeChain();
});

test.concurrent('kill -9 of the leader: the other takes over, goes on from its state, no revision lost or doubled', async (context) => {
  const { redis, setup, params, changes, lawChanges, wholeChain, leaderAndStandby, startService } =
    await open(context);
  setup.write('checkout.ts', policyText(CUTTING));
  const [a, b] = await leaderAndStandby();
  const traffic = startService();
  await lawChanges(a, 2);
  a.signal('SIGKILL');
  await a.exited;
  const atDeath = await params();
  await b.line('lease_taken');
  const found = await lawChanges(b, 2);
  await traffic.stop();

  const reasons = (await changes()).map((entry) => entry.body.reason);
  expect(reasons).not.toContain('glide_settled');
  const firstByB = found.at(-1)!.body;
  expect(firstByB.revision).toBe(atDeath.revision + 1);
  expect(firstByB.before!.rate).toBe(atDeath.rate);
  expect(firstByB.after!.rate).toBeLessThan(atDeath.rate);
  await wholeChain();

  // I13: every decision of both daemons recomputes from its entry.
  const decided = (await changes()).filter((entry) => entry.body.law !== undefined);
  expect(decided.length).toBeGreaterThanOrEqual(4);
  for (const entry of decided) {
    const explained = await explainEntry(redis, address, entry);
    expect([entry.revision, explained.verdict, explained.differences]).toEqual([
      entry.revision,
      'agrees',
      undefined,
    ]);
  }
});

test.concurrent('I11: with every daemon killed the limits glide to their safe values; undo works; the next owner says what held', async (context) => {
  const { redis, setup, person, wholeChain, leaderAndStandby } = await open(context);
  setup.write('checkout.ts', policyText(BRIEF));
  const [a, b] = await leaderAndStandby();
  await until('a beat', async () => (await redis.exists(keys.status)) === 1);
  for (const daemon of [a, b]) daemon.signal('SIGKILL');
  await Promise.all([a.exited, b.exited]);
  const written = await redis.xlen(keys.audit);

  const fallback = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
  const peek = { subject: null, cost: 0, priority: 'default' as const };
  const inForce = async () =>
    (await take(redis, { keys, takes: [peek], chargeByUs: 'any', fallback, shadow: false }))
      .inForce;
  await until('the safe values', async () => {
    const now = await inForce();
    return now.gliding && now.rate === 40 && now.inFlightMax === 8;
  });
  expect(await redis.xlen(keys.audit)).toBe(written); // time passing writes nothing

  const nextDay = Date.now() + 86_400_000;
  await person({ rate: 70, inFlightMax: 12, pinnedUntil: nextDay, heldBy: 'kim' }, 'pin');
  expect(await inForce()).toMatchObject({ rate: 70, inFlightMax: 12, gliding: false });
  await person({ pinnedUntil: 0, heldBy: '' }, 'release');
  await until('the safe values again', async () => (await inForce()).rate === 40);

  const next = setup.start();
  await next.line('change', (line) => line.reason === 'glide_settled');
  const settled = (await readEntries(redis, address, { reason: 'glide_settled' })).entries[0]!.body;
  expect(settled.before).toMatchObject({ rate: 70, inFlightMax: 12 });
  expect(settled.after).toMatchObject({ rate: 40, inFlightMax: 8 });
  expect(settled.detail).toMatchObject({ heldMeanwhile: { toRate: 40, safeRate: 40 } });
  await wholeChain();
});

test.concurrent('C91: a rollback holds against the next ticks until released; then the law goes on from it', async (context) => {
  const { redis, setup, params, changes, person, lawChanges, wholeChain, startService } =
    await open(context);
  setup.write('checkout.ts', policyText(CUTTING));
  const daemon = setup.start();
  startService();
  await lawChanges(daemon, 2);
  const hour = Date.now() + 3_600_000;
  await person({ rate: 90, inFlightMax: 15, pinnedUntil: hour, heldBy: 'kim' }, 'rollback');
  const { revision } = await params();

  const ticks = async () => JSON.parse((await redis.get(keys.status)) ?? '{"atMs":0}').atMs;
  const from = await ticks();
  await until('three seconds of ticks', async () => (await ticks()) > from + 3000);
  expect(await params()).toMatchObject({ rate: 90, inFlightMax: 15, revision });

  await person({ pinnedUntil: 0, heldBy: '' }, 'release');
  const released = (await params()).revision;
  const next = await until('the law’s next change', async () =>
    (await changes()).find((entry) => entry.revision === released + 1),
  );
  expect(next.body.before).toMatchObject({ rate: 90, inFlightMax: 15 });
  expect(next.body.after!.rate).toBeLessThan(90);
  expect(next.body.after!.rate).toBeGreaterThan(80);
  await wholeChain();
});

test.concurrent('I7: a hold whose time is over is cleared by the owner, in an entry that says so', async (context) => {
  const { redis, setup, params, person, wholeChain } = await open(context);
  setup.write('checkout.ts', policyText());
  const daemon = setup.start();
  await daemon.line('lease_taken');
  await person({ rate: 5, pinnedUntil: Date.now() + 1000, heldBy: 'kim' }, 'pin');
  await daemon.line('change', (line) => line.reason === 'hold_lapsed');
  const lapsed = (await readEntries(redis, address, { reason: 'hold_lapsed' })).entries[0]!.body;
  expect(lapsed.before).toMatchObject({ rate: 5 });
  expect(lapsed.after).toMatchObject({ rate: 20 });
  expect(await params()).toMatchObject({ pinnedUntil: 0, heldBy: '' });
  await wholeChain();
});

test.concurrent('Redis away: alive but not ready; when it is back, empty, the limits come back as they were', async (context) => {
  const { server, redis, setup, params, person } = await open(context);
  setup.write('checkout.ts', policyText());
  const daemon = setup.start();
  const http = await daemon.http();
  await daemon.line('lease_taken');
  await person({ rate: 77, pinnedUntil: -1, heldBy: 'kim' }, 'pin');
  const { revision } = await params();
  await until('the daemon has seen it', async () => {
    const text = await redis.get(keys.status);
    return text && JSON.parse(text).revision === revision;
  });
  await server.kill();
  await daemon.line('tick_failed');
  await until('not ready', async () => (await fetch(`${http}/readyz`)).status === 503);
  expect((await fetch(`${http}/livez`)).status).toBe(200);
  await server.restart();
  await daemon.line('tick_recovered');
  await until('ready', async () => (await fetch(`${http}/readyz`)).status === 200);
  const restored = await until('params', async () => (await readParams(redis, address)).params);
  expect(restored).toMatchObject({ rate: 77, pinnedUntil: -1, heldBy: 'kim', revision: 1 });
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});
