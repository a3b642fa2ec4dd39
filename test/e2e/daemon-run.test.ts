/** `flyball run` as a process: start, health, stop, exit codes, and params that come back after a loss. */
import type { Redis } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { freePort, type TestRedis } from '../support/redis-server.js';
import { changeParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
vi.setConfig({ testTimeout: 180_000 });
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

daemonBench((bench) => {
  ({ server, redis, setup } = bench);
  setup.write('checkout.ts', policyText());
});

const params = async () => (await readParams(redis, address)).params;
const get = async (url: string) => {
  const reply = await fetch(url);
  return { status: reply.status, text: await reply.text() };
};

test('starts, adopts, leads, beats, tells health, metrics and status, and stops gracefully', async () => {
  const daemon = setup.start();
  const http = await daemon.http();
  const lease = await daemon.line('lease_taken');
  expect(await params()).toMatchObject({ rate: 100, inFlightMax: 20, mode: 'auto', revision: 1 });
  await until('ready', async () => (await get(`${http}/readyz`)).status === 200);
  expect((await get(`${http}/livez?verbose`)).text).toBe('[+] loop ok\nok\n');

  const first = (await params())!.validUntil;
  await until('a heartbeat', async () => (await params())!.validUntil > first);
  const status = await until('status', async () => {
    const text = await redis.get(keys.status);
    return text ? JSON.parse(text) : null;
  });
  expect(status).toMatchObject({ schema: 1, revision: 1, file: 'same', faults: [], wouldBe: null });
  expect(status.fence).toBeGreaterThanOrEqual(lease.fence as number);
  expect(await redis.pttl(keys.status)).toBeGreaterThan(0);
  const daemons = await until('the registry', async () => {
    const all = Object.values(await redis.hgetall('flyball:daemons')).map((text) =>
      JSON.parse(text.slice(text.indexOf('{'))),
    );
    return all[0]?.leads === 1 && all;
  });
  expect(daemons).toMatchObject([{ pid: daemon.pid, http, leads: 1 }]);

  const metrics = (await get(`${http}/metrics`)).text;
  expect(metrics).toContain('flyball_enforce_rate_tokens_per_second{limiter="checkout"} 100');
  expect(metrics).toContain('flyball_actuate_lease_held{limiter="checkout"} 1');
  expect(metrics).toContain('flyball_policy_load_success 1');

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect(await redis.exists(keys.lease)).toBe(0);
  expect(await redis.hlen('flyball:daemons')).toBe(0);
  expect(daemon.lines.at(-1)!.event).toBe('stopped');
  expect(await redis.xlen(keys.audit)).toBe(1);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test.each(['SIGABRT', 'SIGSEGV'] as const)(
  'a crash (%s) ends the process at once',
  async (signal) => {
    const daemon = setup.start();
    await daemon.http();
    daemon.signal(signal);
    expect(await daemon.exited).toEqual({ code: null, signal });
  },
);

test('--once takes one turn and leaves with 0', async () => {
  const daemon = setup.start({}, ['--once']);
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect(await params()).toMatchObject({ revision: 1 });
  expect(await redis.exists(keys.status)).toBe(1);
  expect(await redis.exists(keys.lease)).toBe(0);
});

test('a second signal leaves at once, even while Redis is silent', async () => {
  const daemon = setup.start();
  await daemon.line('lease_taken');
  server.pause();
  try {
    daemon.signal('SIGTERM');
    await daemon.line('stopping');
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toEqual({ code: 143, signal: null });
  } finally {
    server.resume();
  }
});

describe('start refuses, and nothing is started', () => {
  test('I9: all faults of all policies at once, exit 78', async () => {
    setup.write('checkout.ts', policyText('mood: 1,'));
    setup.write('broken.ts', 'export default {');
    const daemon = setup.start();
    expect((await daemon.exited).code).toBe(78);
    expect(daemon.stderr()).toMatch(/checkout\.ts.*mood/);
    expect(daemon.stderr()).toMatch(/broken\.ts/);
    expect(await redis.dbsize()).toBe(0);
  });

  test('bad settings, exit 78', async () => {
    const daemon = setup.start({ FLYBALL_TICK_MS: 'often', FLYBALL_HTTPPORT: '1' });
    expect((await daemon.exited).code).toBe(78);
    expect(daemon.stderr()).toContain('FLYBALL_TICK_MS is "often"');
    expect(daemon.stderr()).toContain('Did you mean FLYBALL_HTTP_PORT?');
  });

  test('Redis unreachable, exit 75 after a bounded wait, with the address and no password', async () => {
    const port = await freePort();
    const daemon = setup.start({
      FLYBALL_REDIS_URL: `redis://kim:secret@127.0.0.1:${port}/3`,
      FLYBALL_REDIS_WAIT_MS: '500',
    });
    expect((await daemon.exited).code).toBe(75);
    expect(daemon.stderr()).toContain(`127.0.0.1:${port}`);
    expect(daemon.stderr() + JSON.stringify(daemon.lines)).not.toContain('secret');
  });

  test('a port in use, exit 1, with the setting to change; no policy was adopted', async () => {
    const daemon = setup.start({ FLYBALL_HTTP_PORT: String(server.port) });
    expect((await daemon.exited).code).toBe(1);
    expect(daemon.stderr()).toContain('FLYBALL_HTTP_PORT');
    expect(await redis.exists(keys.params)).toBe(0);
  });

  test('a changed group, exit 78', async () => {
    await redis.hset('flyball:limiters', 'checkout', 'payments');
    const daemon = setup.start();
    expect((await daemon.exited).code).toBe(78);
    expect(daemon.stderr()).toContain('A limiter cannot change its group');
  });
});

test('allkeys-* eviction is a warning at start', async () => {
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
  try {
    const daemon = setup.start();
    const line = await daemon.line('redis_eviction');
    expect(line).toMatchObject({ level: 'warn', policy: 'allkeys-lru' });
    await daemon.line('lease_taken');
  } finally {
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
  }
});

test('without a URL it brings a private Redis, says so once, and takes it along when it stops', async () => {
  const alone = daemonSetup(null);
  try {
    alone.write('checkout.ts', policyText());
    const daemon = alone.start();
    await daemon.line('lease_taken');
    expect(daemon.lines.filter((line) => line.event === 'redis')).toHaveLength(1);
    expect(daemon.lines[0]).toMatchObject({ source: 'embedded', joined: false });
    daemon.signal('SIGINT');
    expect((await daemon.exited).code).toBe(0);
    expect(daemon.lines.map((line) => line.event)).toContain('redis_stopped');
  } finally {
    await alone.close();
  }
});

test('FLUSHALL: params come back within a turn or two, as they were, and the chain begins anew', async () => {
  const daemon = setup.start();
  await daemon.line('lease_taken');
  const before = (await params())!;
  await until('a beat', async () => (await redis.exists(keys.status)) === 1);
  await redis.flushall();
  const after = await until('params', params);
  expect(after).toMatchObject({
    rate: 100,
    mode: 'auto',
    revision: 1,
    policyHash: before.policyHash,
  });
  expect(after.epoch).toBeGreaterThan(before.epoch);
  expect(after.fence).toBeGreaterThan(before.fence);
  await until('registered again', async () => (await redis.hlen('flyball:limiters')) === 1);
  const { entries } = await readEntries(redis, address, { kind: 'change' });
  expect(entries.map((e) => e.body.reason)).toEqual(['params_restored']);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test('C02: Redis’s clock went back: params brought to it by one write that says so, and counted', async () => {
  const daemon = setup.start();
  const http = await daemon.http();
  await daemon.line('lease_taken');
  const counted = async () =>
    Number(
      /^flyball_actuate_clock_regressions_total\{limiter="checkout"\} (\S+)$/m.exec(
        (await get(`${http}/metrics`)).text,
      )?.[1] ?? 0,
    );
  expect(await counted()).toBe(0);
  // The last change was made by a clock that was an hour ahead of the one that runs now.
  const aheadUs = (Date.now() + 3_600_000) * 1000;
  const change = () => changeParams(redis, keys, {}, { nowUs: aheadUs });
  await until('a change', async () => (await change()).status === 'ok');
  await until('it is counted', async () => (await counted()) === 1);
  expect((await params())!.changedAt).toBeLessThan(aheadUs);
  const { entries } = await readEntries(redis, address, { kind: 'change' });
  expect(entries.filter((e) => e.body.reason === 'clock_regression')).toHaveLength(1);
});

test('the end of a pin, as of a freeze, is told five minutes before, once, and shown by status; then the autopilot goes on', async () => {
  const daemon = setup.start();
  await daemon.line('lease_taken');
  const run = async (line: string) => {
    const said = await cli(line.split(' '), { env: { FLYBALL_REDIS_URL: server.url } });
    expect(said.code, said.stderr).toBe(0);
    return said.stdout;
  };
  const told = () => daemon.lines.filter(({ kind }) => kind === 'hold_ending');
  const seen = (revision: number) =>
    until(`a turn sees revision ${revision}`, async () => {
      const text = await redis.get(keys.status);
      return text !== null && JSON.parse(text).revision >= revision;
    });
  const shown = (held: string) =>
    new RegExp(`hold +${held} until \\S+ \\([34] min.* left\\) by .*unverified`);
  await run('pin checkout --rate 80 --for 1h --yes');
  await seen(2);
  expect(told()).toEqual([]);
  await run('pin checkout --rate 80 --for 270s --yes');
  await until('its end is announced', () => told().length > 0);
  expect(await run('status checkout')).toMatch(shown('pinned'));
  await run('release checkout --yes');
  await run('freeze checkout --for 4m --yes');
  await until('the other’s, too', () => told().length > 1);
  expect(await run('status checkout')).toMatch(shown('frozen'));
  await seen(5);
  const each = { event: 'alert', limiter: 'checkout', state: 'event' };
  expect(told()).toMatchObject([each, each]);
  await run('freeze checkout --for 1s --yes');
  const lapsed = await until(
    'it lapses',
    async () => (await readEntries(redis, address, { reason: 'hold_lapsed' })).entries[0],
  );
  expect(lapsed.body).toMatchObject({ actor: { kind: 'autopilot' } });
  expect(await run('status checkout')).not.toMatch(/^ *hold /m);
});
