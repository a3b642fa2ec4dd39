/** A real Cluster: daemon, CLI and SDK on it, a slot that moves under load, a master that is killed. */
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type TakeDecision,
} from '../../src/index.js';
import { FUNCTION_NAMES } from '../../src/redis/functions.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText, type TestDaemon } from '../support/daemon.js';
import { startCluster, type TestCluster } from '../support/redis-cluster.js';
import { setParams, until } from '../support/sdk-params.js';
import { tempFolder } from '../support/temp-folder.js';

const DEADLINE_MS = 500;
const HELD_MS = 10 * DEADLINE_MS;
/** Who takes at the same time: their takes of one turn go as one call. */
const TAKERS = 4;

let cluster: TestCluster;
let client: Cluster;
let daemons: DaemonSetup;
let daemon: TestDaemon;
const open: Limiter[] = [];

beforeAll(async () => {
  // The first master alone has a replica: it is the one that is killed.
  cluster = await startCluster({ masters: 3, replicas: 1 });
  client = cluster.client();
  daemons = daemonSetup(cluster.url);
  daemons.write('checkout.ts', policyText());
  daemons.write(
    'refund.ts',
    policyText('', "name: 'refund', group: 'payments', rate: 50, capacity: 20, inFlightMax: 10"),
  );
  daemon = daemons.start();
  await daemon.line('started');
});
afterAll(async () => {
  await Promise.all(open.map((limiter) => limiter.close()));
  await daemons?.close();
  await cluster?.stop();
});

function limiter(name: string, options: Partial<LimiterOptions> = {}): Limiter {
  const made = createLimiter({
    name,
    url: cluster.url,
    deadlineMs: DEADLINE_MS,
    onWarning: () => {},
    ...options,
  });
  open.push(made);
  return made;
}

const run = (...args: string[]) => cli(args, { env: { FLYBALL_REDIS_URL: cluster.url } });
const params = (name: string, group?: string) => limiterKeys({ name, group }).params;
const decides = (api: Limiter) =>
  until('Redis decides', async () => (await api.take('user:0')).source === 'redis');

/** Takes without a pause until `over`; what was decided, and the longest that any took. */
async function takeUntil(api: Limiter, over: () => boolean, subject: (i: number) => string | null) {
  const decisions: TakeDecision[] = [];
  let longestMs = 0;
  let count = 0;
  const taker = async () => {
    while (!over()) {
      const beganMs = performance.now();
      decisions.push(await api.take(subject(count++)));
      longestMs = Math.max(longestMs, performance.now() - beganMs);
      await new Promise((ok) => setTimeout(ok, 2));
    }
  };
  await Promise.all(Array.from({ length: TAKERS }, taker));
  return { decisions, longestMs };
}

test('C31: daemon and CLI work on three masters as on one server', async () => {
  const owners = await Promise.all(
    [params('checkout'), params('refund', 'payments')].map((key) => cluster.ownerOf(key)),
  );
  expect(new Set(owners.map(({ id }) => id)).size).toBe(2);
  const status = await run('status', '--json');
  expect(JSON.parse(status.stdout).limiters.map((l: { limiter: string }) => l.limiter)).toEqual([
    'checkout',
    'refund',
  ]);
  expect((await run('pin', 'refund', '--rate', '33', '--yes')).code).toBe(0);
  expect(await client.hget(params('refund', 'payments'), 'rate')).toBe('33');
  expect((await run('rollback', 'refund', '1', '--yes')).code).toBe(0);
  expect(await client.hget(params('refund', 'payments'), 'rate')).toBe('50');
  const audit = await run('audit', 'refund');
  expect([audit.code, audit.stdout]).toEqual([0, expect.stringMatching(/33/)]);
  expect((await run('audit', 'verify', 'refund')).code).toBe(0);
  const [all, debug, report] = [
    await run('audit'),
    await run('debug', 'refund', 'user:42'),
    await run('report'),
  ];
  expect([all.code, debug.code, report.code]).toEqual([0, 0, 0]);
  expect(debug.stdout).toMatch(/^passes {2}admitted/m);
  const doctor = await run('doctor', tempFolder('none'));
  expect(doctor.stdout).toMatch(
    /warn +topology +cluster of 3 masters and 1 replica, state ok, 16384 of 16384/,
  );
  expect(doctor.stdout.match(/version +Redis/g)).toHaveLength(1);
  expect(doctor.stdout).not.toMatch(/^fail +(redis|topology|version|role|clock|scripts|rights)/m);
  expect((await run('functions', 'load')).code).toBe(0);
  const loaded = await Promise.all(
    client.nodes('master').map((node) => node.call('FUNCTION', 'LIST')),
  );
  for (const list of loaded) expect(JSON.stringify(list)).toContain(FUNCTION_NAMES[0]);
  expect(daemon.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('C43: a slot moves under load: each decided in time, each token charged once', async () => {
  const api = limiter('moved');
  await setParams(client as never, api, {
    rate: 0.001,
    capacity: 100_000,
    subjectRate: 1000,
    subjectCapacity: 1000,
  });
  await decides(api);
  const before = (await api.peek()).remaining;
  const from = await cluster.ownerOf(params('moved'));
  const to = cluster.masters.find(({ id }) => id !== from.id && id !== cluster.masters[0]!.id)!;
  let over = false;
  // Subjects that are known, and new ones, whose missing key is what TRYAGAIN is about.
  const load = takeUntil(
    api,
    () => over,
    (i) => `user:${i % 3 === 0 ? i : i % 20}`,
  );
  await new Promise((ok) => setTimeout(ok, 200));
  const moved = await cluster.moveSlot(
    params('moved'),
    to,
    () => new Promise((ok) => setTimeout(ok, 2)),
  );
  await until(
    'the new owner is known to all',
    async () => (await cluster.ownerOf(params('moved'))).id === to.id,
  );
  await new Promise((ok) => setTimeout(ok, 200));
  over = true;
  const { decisions, longestMs } = await load;
  expect(moved).toBeGreaterThan(20);
  // It was met indeed: keys on two nodes at once, and the slot gone.
  const said = (
    await Promise.all(cluster.masters.map(({ admin }) => admin.info('errorstats')))
  ).join();
  for (const error of ['TRYAGAIN', 'MOVED']) expect(said).toContain(`errorstat_${error}:`);
  expect(longestMs).toBeLessThan(HELD_MS);
  expect(
    [...new Set(decisions.map(({ source }) => source))].filter(
      (s) => s !== 'redis' && s !== 'local',
    ),
  ).toEqual([]);
  await decides(api);
  const admitted =
    decisions.filter(({ source, allowed }) => source === 'redis' && allowed).length + 1;
  const charged = before - (await api.peek()).remaining;
  expect(charged).toBeGreaterThanOrEqual(admitted);
  expect(charged).toBeLessThanOrEqual(admitted + TAKERS * api.stats().overtaken);
  expect(decisions.at(-1)!.source).toBe('redis');
});

test('a limiter whose slot moves keeps its daemon', async () => {
  const key = params('checkout');
  const from = await cluster.ownerOf(key);
  const to = cluster.masters.find(({ id }) => id !== from.id && id !== cluster.masters[0]!.id)!;
  await cluster.moveSlot(key, to);
  const word = Number(await client.hget(key, 'validUntil'));
  await until(
    'a beat on the new node',
    async () => Number(await client.hget(key, 'validUntil')) > word,
  );
  expect((await run('pin', 'checkout', '--rate', '44', '--yes')).code).toBe(0);
  expect(await to.admin.hget(key, 'rate')).toBe('44');
});

test('a master is killed: the others’ limiters never notice, its own are decided here until its replica is master', async () => {
  const [first] = cluster.masters;
  const names = Array.from({ length: 64 }, (_, i) => `n${i}`);
  const owners = await Promise.all(names.map((name) => cluster.ownerOf(params(name))));
  const lostName = names[owners.findIndex(({ id }) => id === first!.id)]!;
  const keptName = names[owners.findIndex(({ id }) => id !== first!.id)]!;
  const lost = limiter(lostName, { onRedisError: 'closed' });
  const kept = limiter(keptName);
  for (const api of [lost, kept]) {
    await setParams(client as never, api, { rate: 0.001, capacity: 10_000 });
    await decides(api);
  }
  expect(await first!.admin.call('WAIT', 1, 5000)).toBe(1);
  const outages = kept.stats().outages;
  await first!.server.kill();
  let over = false;
  const loads = [lost, kept].map((api) =>
    takeUntil(
      api,
      () => over,
      () => null,
    ),
  );
  await until('the replica is master', async () => {
    const [replica] = cluster.replicas;
    return (await replica!.admin.info('replication')).includes('role:master');
  });
  await until('it decides', async () => (await lost.peek()).source === 'redis');
  over = true;
  const [ofLost, ofKept] = await Promise.all(loads);
  expect(Math.max(ofLost!.longestMs, ofKept!.longestMs)).toBeLessThan(HELD_MS);
  expect(ofLost!.decisions.some(({ source }) => source === 'closed')).toBe(true);
  expect(ofLost!.decisions.filter(({ source, allowed }) => source === 'closed' && allowed)).toEqual(
    [],
  );
  expect(kept.stats().outages).toBe(outages);
  expect(ofKept!.decisions.filter(({ source }) => source !== 'redis').length).toBeLessThanOrEqual(
    TAKERS,
  );
  const charged = ofLost!.decisions.filter(
    ({ source, allowed }) => source === 'redis' && allowed,
  ).length;
  const { remaining } = await lost.peek();
  expect(10_000 - remaining).toBeGreaterThanOrEqual(charged);
  expect(daemon.stderr()).toBe('');
});
