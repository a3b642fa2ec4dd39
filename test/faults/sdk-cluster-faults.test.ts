/** A real Cluster: daemon, CLI and SDK on it, a slot that moves under load, a master that is killed. */
import type { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type TakeDecision,
} from '../../src/index.js';
import { FUNCTION_NAMES } from '../../src/redis/functions.js';
import { type LimiterKeys, limiterKeys } from '../../src/redis/keys.js';
import { take } from '../../src/redis/scripts.js';
import { FALLBACK } from '../lua/fixture.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText, type TestDaemon } from '../support/daemon.js';
import { decisionTimes } from '../support/decision-times.js';
import { startCluster, startLoneNode, type TestCluster } from '../support/redis-cluster.js';
import { setParams, until } from '../support/sdk-params.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { tempFolder } from '../support/temp-folder.js';

const DEADLINE_MS = 500;
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
const errorsOf = (redis: Redis, error: string) =>
  redis
    .info('errorstats')
    .then((text) => Number(new RegExp(`errorstat_${error}:count=(\\d+)`).exec(text)?.[1] ?? 0));
const decides = (api: Limiter) =>
  until('Redis decides', async () => (await api.take('user:0')).source === 'redis');

/** Who has the slot of this key, and a master that may have it next: not the first, which is killed. */
async function wayOf(key: string) {
  const from = await cluster.ownerOf(key);
  const to = cluster.masters.slice(1).find(({ id }) => id !== from.id)!;
  return { from, to };
}

/** Takes without a pause until `over`, none of which went on beyond its deadline; what was decided. */
async function takeUntil(api: Limiter, over: () => boolean, subject: (i: number) => string | null) {
  const decisions: TakeDecision[] = [];
  const times = decisionTimes();
  let count = 0;
  const taker = async () => {
    while (!over()) {
      decisions.push(await times.of(() => api.take(subject(count++))));
      await new Promise((ok) => setTimeout(ok, 2));
    }
  };
  await Promise.all(Array.from({ length: TAKERS }, taker));
  times.expectWithin(DEADLINE_MS);
  return decisions;
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
  const { to } = await wayOf(params('moved'));
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
  const decisions = await load;
  expect(moved).toBeGreaterThan(20);
  // It was met indeed: keys on two nodes at once, and the slot gone.
  for (const error of ['TRYAGAIN', 'MOVED']) {
    const said = await Promise.all(cluster.masters.map(({ admin }) => errorsOf(admin, error)));
    expect(said.some((count) => count > 0)).toBe(true);
  }
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

test('C43: keys that have left while their slot has not: ASK leads to them, each decided and charged once', async () => {
  const api = limiter('asked');
  const key = params('asked');
  await setParams(client as never, api, { rate: 0.001, capacity: 1000 });
  await until('Redis decides', async () => (await api.take()).source === 'redis');
  const before = (await api.peek()).remaining;
  const { from, to } = await wayOf(key);
  const slot = await from.admin.cluster('KEYSLOT', key);
  let [asked, admitted] = [0, 0];
  await cluster.moveSlot(key, to, async () => {
    if ((await from.admin.cluster('COUNTKEYSINSLOT', slot)) > 0 || admitted > 0) return;
    const asks = await errorsOf(from.admin, 'ASK');
    await until('twenty are decided where the keys are', async () => {
      const { source, allowed } = await api.take();
      if (source === 'redis' && allowed) admitted += 1;
      return admitted === 20;
    });
    asked = (await errorsOf(from.admin, 'ASK')) - asks;
  });
  expect(asked).toBeGreaterThanOrEqual(20);
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  const charged = before - (await api.peek()).remaining;
  expect(charged).toBeGreaterThanOrEqual(admitted);
  expect(charged).toBeLessThanOrEqual(admitted + api.stats().overtaken);
});

test('I5: while its slot moves a limiter mints what one that stays does: nothing twice, nothing lost', async () => {
  const impatient = cluster.client({ maxRedirections: 4, retryDelayOnTryAgain: 1 });
  const names = ['minted', 'stays'].map((name) => `${name}-${Date.now()}`);
  const [moving, staying] = names.map((name) => limiterKeys({ name }));
  // So slow that no key's life, which is by the server's clock, is over in between.
  const numbers = { rate: 0.2, minRate: 0.01, capacity: 50, subjectRate: 0.02, subjectCapacity: 5 };
  const T0 = 1_700_000_000_000_000;
  for (const keys of [moving!, staying!]) {
    await seedParams(impatient, keys, numbers, { nowUs: T0 });
  }
  let steps = 0;
  const nowUs = () => T0 + steps * 10_000_000;
  const takesOf = async (keys: LimiterKeys) => {
    const takes = Array.from({ length: 5 }, (_each, i) => ({
      ...{ subject: i === 0 ? 'a' : null, cost: 1, priority: 'default' as const },
    }));
    const common = { chargeByUs: 'any' as const, fallback: FALLBACK, shadow: false };
    return (await take(impatient, { keys, takes, ...common, nowUs: nowUs() })).answers;
  };
  const changes = async (keys: LimiterKeys) => {
    const rate = steps % 4 ? 0.4 : 0.1;
    const { status } = await changeParams(impatient, keys, { rate }, { nowUs: nowUs() });
    expect(status).toBe('ok');
  };
  /** A call of the one that moves; if its keys are on two nodes it has done nothing, else the other does the same. */
  async function step(call: (keys: LimiterKeys) => Promise<unknown>): Promise<boolean> {
    steps += 1;
    let here: unknown;
    try {
      here = await call(moving!);
    } catch (error) {
      // Sent to and fro: each node that says so has done nothing.
      expect((error as Error).message).toContain('Too many Cluster redirections');
      return false;
    }
    expect(await call(staying!)).toEqual(here);
    return true;
  }
  let through = 0;
  const both = async () => {
    for (const call of [takesOf, changes, takesOf]) if (await step(call)) through += 1;
  };
  for (let i = 0; i < 5; i++) await both();
  expect(through).toBe(15);
  const { to } = await wayOf(moving!.params);
  expect(await cluster.moveSlot(moving!.params, to, both)).toBeGreaterThanOrEqual(4);
  // While all keys of a take are on one node it was decided.
  expect(through).toBeGreaterThan(15);
  const during = through;
  for (let i = 0; i < 5; i++) await both();
  expect(through).toBe(during + 15);
});

test('C43: CLUSTERDOWN: decided here in time, nothing charged, and by Redis again once all slots are served', async () => {
  const { server, cluster: own } = await startLoneNode();
  const node = server.client({ enableReadyCheck: false });
  try {
    const url = `redis+cluster://127.0.0.1:${server.port}`;
    const api = limiter('down', { url });
    const closed = limiter('down', { url, onRedisError: 'closed' });
    await setParams(own as never, api, { rate: 0.001, capacity: 100 });
    for (const each of [api, closed]) {
      await until('Redis decides', async () => (await each.take()).source === 'redis');
    }
    const before = (await api.peek()).remaining;
    // A slot that nobody serves: by default none is served then.
    const key = params('down');
    await node.cluster('DELSLOTS', await node.cluster('KEYSLOT', key));
    await until('the cluster is down', async () =>
      (await node.get(key).catch((error: Error) => error.message))!.startsWith('CLUSTERDOWN'),
    );
    const times = decisionTimes();
    for (let i = 0; i < 10; i++) {
      expect((await times.of(() => api.take())).source).toBe('local');
      expect(await times.of(() => closed.take())).toMatchObject({
        ...{ source: 'closed', allowed: false },
      });
    }
    times.expectWithin(DEADLINE_MS);
    await until('it has been told so', async () =>
      /cmdstat_evalsha:.*rejected_calls=[1-9]/.test(await node.info('commandstats')),
    );
    await node.cluster('ADDSLOTS', await node.cluster('KEYSLOT', key));
    for (const each of [api, closed]) {
      await until('Redis decides again', async () => (await each.peek()).source === 'redis');
    }
    expect((await api.peek()).remaining).toBe(before);
  } finally {
    own.disconnect();
    await Promise.all(open.splice(0).map((each) => each.close()));
    await server.stop();
  }
});

test('a limiter whose slot moves keeps its daemon', async () => {
  const key = params('checkout');
  const { to } = await wayOf(key);
  await cluster.moveSlot(key, to);
  const word = Number(await client.hget(key, 'validUntil'));
  await until(
    'a beat on the new node',
    async () => Number(await client.hget(key, 'validUntil')) > word,
  );
  expect((await run('pin', 'checkout', '--rate', '44', '--yes')).code).toBe(0);
  expect(await to.admin.hget(key, 'rate')).toBe('44');
});

/** The first master and its replica; or the other way round, where a first try has killed it. */
async function withReplica() {
  const [first, second] = [cluster.masters[0]!, cluster.replicas[0]!];
  const isMaster = async () => (await first.admin.info('replication')).includes('role:master');
  return (await isMaster()) ? [first, second] : [second, first];
}

test('a master is killed: the others’ limiters never notice, its own are decided here until its replica is master', async () => {
  const [first, heir] = await withReplica();
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
    return (await heir!.admin.info('replication')).includes('role:master');
  });
  await until('it decides', async () => (await lost.peek()).source === 'redis');
  over = true;
  const [ofLost, ofKept] = await Promise.all(loads);
  expect(ofLost!.some(({ source }) => source === 'closed')).toBe(true);
  expect(ofLost!.filter(({ source, allowed }) => source === 'closed' && allowed)).toEqual([]);
  expect(kept.stats().outages).toBe(outages);
  expect(ofKept!.filter(({ source }) => source !== 'redis').length).toBeLessThanOrEqual(TAKERS);
  const charged = ofLost!.filter(({ source, allowed }) => source === 'redis' && allowed).length;
  const { remaining } = await lost.peek();
  expect(10_000 - remaining).toBeGreaterThanOrEqual(charged);
  expect(daemon.stderr()).toBe('');
});
