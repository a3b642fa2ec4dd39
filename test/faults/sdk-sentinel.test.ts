/** Sentinel with real processes: a master that dies or hangs, lost writes, and SDK, daemon and CLI that follow. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type TakeDecision,
} from '../../src/index.js';
import { awaitRedis, connect } from '../../src/redis/connect.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText } from '../support/daemon.js';
import { decisionTimes } from '../support/decision-times.js';
import { MASTER_NAME, startSentinel, type TestSentinel } from '../support/redis-sentinel.js';
import { setParams, until } from '../support/sdk-params.js';
import { tempFolder } from '../support/temp-folder.js';

const DEADLINE_MS = 200;

function limiter(url: string, options: Partial<LimiterOptions> = {}): Limiter {
  return createLimiter({
    name: 'bucket',
    url,
    deadlineMs: DEADLINE_MS,
    onWarning: () => {},
    ...options,
  });
}

/** Takes one after another until `over`, none of which went on beyond its deadline; what was decided. */
async function takeUntil(api: Limiter, over: () => boolean): Promise<TakeDecision[]> {
  const decisions: TakeDecision[] = [];
  const times = decisionTimes();
  while (!over()) {
    decisions.push(await times.of(() => api.take()));
    await new Promise((ok) => setTimeout(ok, 5));
  }
  times.expectWithin(DEADLINE_MS);
  return decisions;
}

describe('the master is killed after writes that no replica has', () => {
  let sentinel: TestSentinel;
  let daemons: DaemonSetup;
  beforeEach(async () => {
    sentinel = await startSentinel();
    daemons = daemonSetup(sentinel.url);
    daemons.write('checkout.ts', policyText());
  });
  afterEach(async () => {
    await daemons?.close();
    await sentinel?.stop();
  });

  test('I5, I8: answers as onRedisError says, at most the lost takes again, a new epoch', async () => {
    const env = { FLYBALL_REDIS_URL: sentinel.url };
    const daemon = daemons.start();
    await daemon.line('started');
    const before = await sentinel.master();
    const admin = before.client();
    const api = limiter(sentinel.url);
    const closed = limiter(sentinel.url, { onRedisError: 'closed' });
    await setParams(admin, api, { rate: 0.001, capacity: 50 });
    await until('Redis decides', async () => (await api.peek()).source === 'redis');
    expect((await cli(['doctor', tempFolder('none')], { env })).stdout).toMatch(
      new RegExp(
        `ok +topology +Sentinel names 127\\.0\\.0\\.1:${before.port} as master of "${MASTER_NAME}"; 1 replica`,
      ),
    );
    expect(await redisTakes(api, 20)).toBe(20);
    // What the replica has is what a failover keeps.
    expect(await admin.call('WAIT', 1, 5000)).toBe(1);
    await sentinel.cutReplication();
    expect(await redisTakes(api, 20)).toBe(20);
    expect((await cli(['pin', 'checkout', '--rate', '33', '--yes'], { env })).code).toBe(0);
    const pinned = await until2(async () => {
      const [epoch, revision, validUntil] = await admin.hmget(
        limiterKeys({ name: 'checkout' }).params,
        'epoch',
        'revision',
        'validUntil',
      );
      return { epoch: Number(epoch), revision: Number(revision), validUntil: Number(validUntil) };
    });

    await before.kill();
    let over = false;
    const failover = sentinel.failedOver(before).finally(() => {
      over = true;
    });
    const [away, denied] = await Promise.all([
      takeUntil(api, () => over),
      takeUntil(closed, () => over),
    ]);
    const after = await failover;
    const sources = new Set(away.map(({ source }) => source));
    expect([...sources].every((source) => source === 'local' || source === 'redis')).toBe(true);
    const byLocal = away.filter((d) => d.source === 'local' && d.allowed).length;
    // Its own bucket had been charged with what Redis admitted.
    expect(byLocal).toBeLessThanOrEqual(10);
    expect(denied.filter((d) => d.source === 'closed').every((d) => !d.allowed)).toBe(true);
    expect(denied.some(({ source }) => source === 'closed')).toBe(true);

    await until('Redis decides again', async () => (await api.peek()).source === 'redis');
    const { remaining } = await api.peek();
    const again =
      away.filter((d) => d.source === 'redis' && d.allowed).length +
      denied.filter((d) => d.source === 'redis' && d.allowed).length;
    // 50 tokens, 20 takes kept and 20 lost: the lost ones are there again, and no more.
    expect(remaining + again).toBeLessThanOrEqual(30);
    // Charged in time, but told too late, on a machine that stood still.
    const overtaken = api.stats().overtaken + closed.stats().overtaken;
    expect(remaining + again).toBeGreaterThanOrEqual(30 - overtaken);
    expect(await redisTakes(api, 100)).toBe(remaining);

    const line = await daemon.line('change', (l) => l.reason === 'writes_lost');
    expect(line.epoch as number).toBeGreaterThan(pinned.epoch);
    const admin2 = after.client();
    await until(
      'a beat on the new master',
      async () =>
        Number(await admin2.hget(limiterKeys({ name: 'checkout' }).params, 'validUntil')) >
        pinned.validUntil,
    );
    const audit = await cli(['audit', 'checkout', '--json'], { env });
    expect(audit.code).toBe(0);
    expect(audit.stdout).toContain('writes_lost');
    expect((await cli(['audit', 'verify', 'checkout'], { env })).code).toBe(0);
    expect((await cli(['status', 'checkout'], { env })).stdout).toMatch(/checkout/);
    expect((await cli(['rollback', 'checkout', '1', '--yes'], { env })).code).toBe(0);
    expect(daemon.stderr()).toBe('');
    await Promise.all([api.close(), closed.close()]);
  });
});

/** How many of `n` takes Redis itself admitted. */
async function redisTakes(api: Limiter, n: number): Promise<number> {
  let admitted = 0;
  for (let i = 0; i < n; i++) {
    const decision = await api.take();
    if (decision.source === 'redis' && decision.allowed) admitted += 1;
  }
  return admitted;
}

/** The pinned revision, once the daemon has seen and renewed it. */
async function until2(
  read: () => Promise<{ epoch: number; revision: number; validUntil: number }>,
) {
  const first = await read();
  let now = first;
  await until('the daemon renewed the pinned revision twice', async () => {
    now = await read();
    return now.validUntil > first.validUntil + 200;
  });
  return now;
}

describe('the master hangs', () => {
  let sentinel: TestSentinel;
  beforeEach(async () => {
    sentinel = await startSentinel();
  });
  afterEach(() => sentinel?.stop());

  test('I8: decisions go on in time, the new master is found, nothing is charged late', async () => {
    const before = await sentinel.master();
    const admin = before.client();
    const api = limiter(sentinel.url);
    await setParams(admin, api, { rate: 0.001, capacity: 10_000 });
    await until('Redis decides', async () => (await api.peek()).source === 'redis');
    expect(await redisTakes(api, 5)).toBe(5);
    expect(await admin.call('WAIT', 1, 5000)).toBe(1);
    before.pause();
    let over = false;
    const failover = sentinel.failedOver(before).finally(() => {
      over = true;
    });
    const decisions = await takeUntil(api, () => over);
    await failover;
    expect(decisions.length).toBeGreaterThan(0);
    const charged = decisions.filter(({ source }) => source === 'redis').length;
    await until('the new master decides', async () => (await api.peek()).source === 'redis');
    // What lay in the hanging server's sockets is its own; woken, it becomes a replica, and charges nothing here.
    before.resume();
    const { remaining } = await api.peek();
    expect(remaining).toBeLessThanOrEqual(10_000 - 5 - charged);
    expect(remaining).toBeGreaterThanOrEqual(10_000 - 5 - charged - api.stats().overtaken);
    await api.close();
  });

  test('a name that Sentinel does not know, and Sentinels that are away, are said', async () => {
    const unknown = sentinel.url.replace(MASTER_NAME, 'other');
    expect(await faultOf(unknown)).toMatch(
      /cannot be used: Sentinel knows no master of that name.*the name at the end/,
    );
    expect(await faultOf('redis+sentinel://:hunter2@127.0.0.1:1,127.0.0.1:2/limits')).toMatch(
      /failed to connect to sentinel 127\.0\.0\.1:[12] because/,
    );
  });
});

test('Sentinels with a password of their own: given by environment, never shown', async () => {
  const sentinel = await startSentinel({ password: 'watch word' });
  try {
    const env = { FLYBALL_REDIS_URL: sentinel.url, FLYBALL_REDIS_SENTINEL_PASSWORD: 'watch word' };
    expect(await faultOf(sentinel.url, env)).toBe('none');
    const wrong = await faultOf(sentinel.url, { FLYBALL_REDIS_SENTINEL_PASSWORD: 'wrong word' });
    expect(wrong).toMatch(/WRONGPASS|NOAUTH/);
    expect(wrong).toContain('Check FLYBALL_REDIS_SENTINEL_PASSWORD');
    expect(wrong).not.toContain('wrong word');
  } finally {
    await sentinel.stop();
  }
});

async function faultOf(url: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const redis = connect({ url, name: 'cli', env });
  redis.on('error', () => {});
  const fault = await awaitRedis(redis, { url, deadlineMs: 1_000 }).then(
    () => 'none',
    (error: Error) => error.message,
  );
  redis.disconnect();
  expect(fault).not.toContain('hunter2');
  return fault;
}
