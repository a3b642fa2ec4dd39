/** Keys that something else has written to: garbage, another type, a part missing. Owners heal, people can act. */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { lease, take } from '../../src/redis/scripts.js';
import { cli } from '../support/cli-run.js';
import {
  type DaemonSetup,
  daemonSetup,
  policyText,
  type TestDaemon,
  until,
} from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { seedParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let redis: Redis;
let setup: DaemonSetup;

beforeEach(async () => {
  server = await startRedis();
  redis = server.client();
  setup = daemonSetup(server.url);
  setup.write('checkout.ts', policyText());
});
afterEach(async () => {
  await setup.close();
  await server.stop();
});

const run = (...args: string[]) => cli(args, { env: { FLYBALL_REDIS_URL: server.url } });

/** The daemon leads and beats: its word is moved on, and by a script that read the params. */
async function beats(): Promise<void> {
  const before = Number(await redis.hget(keys.params, 'validUntil'));
  await until('a beat', async () => Number(await redis.hget(keys.params, 'validUntil')) > before);
}

async function started(env: NodeJS.ProcessEnv = {}): Promise<TestDaemon> {
  const daemon = setup.start(env);
  await daemon.line('started');
  await until('the params', () => redis.exists(keys.params));
  await beats();
  return daemon;
}

/** A limiter without a daemon. */
async function seeded(): Promise<void> {
  await seedParams(redis, keys);
  await redis.hset('flyball:limiters', 'checkout', '');
}

test('params with a part missing or garbage count as missing: the owner restores what it last saw', async () => {
  const daemon = await started();
  expect((await run('pin', 'checkout', '--rate', '33', '--yes')).code).toBe(0);
  await until(
    'the pin seen',
    async () => daemon.lines.length > 0 && (await redis.hget(keys.params, 'rate')) === '33',
  );
  await beats();
  const harm: [string, () => Promise<unknown>][] = [
    ['v', () => redis.hdel(keys.params, 'v')],
    ['rate', () => redis.hset(keys.params, 'rate', 'banana')],
    ['capacity', () => redis.hset(keys.params, 'capacity', '-5')],
    ['mode', () => redis.hset(keys.params, 'mode', 'turbo')],
    ['state', () => redis.hset(keys.params, 'state', 'ajar')],
    ['revision', () => redis.hset(keys.params, 'revision', '1e300')],
    ['windowMs', () => redis.hset(keys.params, 'windowMs', 'nan')],
  ];
  for (const [field, hurt] of harm) {
    await hurt();
    const { body } = await until(`${field} restored`, async () => {
      const { entries } = await readEntries(redis, address, { reason: 'params_restored' });
      return entries.find((entry) => String(entry.body.detail?.unreadable).includes(` ${field} `));
    });
    expect(body.after).toMatchObject({ rate: 33, state: 'closed', mode: 'auto' });
    expect(await redis.hget(keys.params, 'pinnedUntil')).not.toBe('0');
    await beats();
  }
  expect((await run('audit', 'verify')).code).toBe(0);
});

test('a packed copy that is gone or garbage changes no answer, with no daemon either', async () => {
  await seeded();
  const ask = () =>
    take(redis, {
      keys,
      takes: [{ subject: null, cost: 1, priority: 'default' }],
      chargeByUs: null,
      fallback: { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 },
      shadow: false,
    });
  for (const hurt of [
    () => redis.hdel(keys.params, 'hot'),
    () => redis.hset(keys.params, 'hot', 'xx'),
  ]) {
    await hurt();
    const { inForce } = await ask();
    expect(inForce).toMatchObject({ managed: true, rate: 100, capacity: 200 });
  }
});

test('params deleted while the lease still stands are back at the next turn, not after the lease', async () => {
  const daemon = await started({ FLYBALL_LEASE_MS: '600000' });
  await daemon.line('lease_taken');
  await redis.del(keys.params);
  await until('the params', () => redis.exists(keys.params), 10_000);
  await beats();
});

test('a lease that is none (no end, no owner, another type) is taken; one set far ahead by a clock lapses', async () => {
  const none: [string, () => Promise<unknown>][] = [
    ['garbage', () => redis.set(keys.lease, 'garbage', 'PX', 900_000)],
    ['without an end', () => redis.set(keys.lease, 'gone:1:abc:1')],
    ['a list', () => redis.lpush(keys.lease, 'x')],
    ['23 h ahead', () => redis.set(keys.lease, 'gone:1:abc:1', 'PX', 23 * 3_600_000)],
  ];
  await seeded();
  const acquire = () => lease(redis, { keys, op: 'acquire', owner: 'me:1:a', leaseMs: 1000 });
  for (const [what, put] of none) {
    await redis.del(keys.lease);
    await put();
    await until(`the lease after ${what}`, async () => (await acquire()).status === 'held', 10_000);
    expect(await redis.get(keys.lease)).toMatch(/^me:1:a:\d+$/);
  }
});

test('the policy, checkpoint or status under another type or text keeps neither people nor a restart from acting', async () => {
  const daemon = await started();
  const hash = (await redis.hget(keys.params, 'policyHash'))!;
  for (const key of [keys.policy, keys.policyVersion(hash), keys.state, keys.status]) {
    await redis.del(key);
    await redis.lpush(key, 'x');
  }
  await daemon.stop();
  for (const args of [
    ['status'],
    ['trip', 'checkout', '--yes'],
    ['rollback', 'checkout', '1', '--yes'],
  ]) {
    const { code, stderr } = await run(...args);
    expect(stderr).not.toContain('WRONGTYPE');
    expect(code).toBe(0);
  }
  await started();
  const whole = await redis.get(keys.policyVersion(hash));
  expect(whole).toContain('checkout');

  await daemon.stop();
  await redis.set(keys.policy, '{{{');
  await redis.set(keys.policyVersion(hash), '{"limiter":{"name":"other"}}');
  await started();
  expect(await redis.mget(keys.policy, keys.policyVersion(hash))).toEqual([whole, whole]);
});

test('an entry of the newest epoch that there can be does not keep the params from coming back', async () => {
  await started();
  const junk = ['kind', 'note', 'epoch', '1e308', 'revision', '1', 'hash', 'a', 'prev', 'b'];
  await redis.xadd(keys.audit, '*', ...junk, 'body', 'null');
  await redis.del(keys.params);
  await until('the params', () => redis.exists(keys.params));
  await beats();
  expect((await run('status')).code).toBe(0);
  expect((await run('audit', 'verify')).stdout).toContain('broken');
});

test('a log that can hold no more refuses the change whole: no revision without its entry', async () => {
  await seeded();
  const last = '18446744073709551615-18446744073709551615';
  await redis.xadd(keys.audit, last, 'foo', 'bar');
  const before = await redis.hmget(keys.params, 'revision', 'state');
  expect((await run('trip', 'checkout', '--yes')).code).toBe(1);
  expect(await redis.hmget(keys.params, 'revision', 'state')).toEqual(before);
});

test('a log that was deleted is a gap that verify finds, also once new entries stand there', async () => {
  await seeded();
  await redis.del(keys.audit);
  expect((await run('trip', 'checkout', '--yes')).code).toBe(0);
  const verified = await run('audit', 'verify');
  expect(verified.code).toBe(1);
  expect(verified.stdout).toContain('begins with revision 2: all before it is missing');
});

test('a user without the right to the channel changes nothing at all, and a start says so', async () => {
  await redis.call('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '+@all', 'resetchannels');
  const daemon = setup.start({ FLYBALL_REDIS_URL: `redis://app:pw@127.0.0.1:${server.port}` });
  expect((await daemon.exited).code).toBe(1);
  expect(daemon.stderr()).toContain('FLYBALL_E_REDIS_DENIED');
  expect(await redis.exists(keys.params, keys.audit)).toBe(0);
});

test('junk in the registries takes no limiter from its daemon; one limiter that cannot be read, no other', async () => {
  const names = { 'BAD {NAME': '', ok: '{{', '\u001b[31m': '', ghost: '' };
  await redis.hset('flyball:limiters', names);
  await redis.set('flyball:daemons', 'x');
  await redis.set(limiterKeys({ name: 'orders' }).params, 'x');
  const orders = "name: 'orders', rate: 100, capacity: 10, inFlightMax: 9";
  setup.write('orders.ts', policyText('', orders));
  const daemon = await started();
  await daemon.line('adoption_failed', (line) => line.limiter === 'orders');
  const status = await run('status');
  expect(status.stdout).toContain('checkout');
  // The registry of daemons gives way to the next that announces itself.
  await until('the registry', async () => (await redis.type('flyball:daemons')) === 'hash');

  await redis.del(limiterKeys({ name: 'orders' }).params);
  await until('orders', () => redis.exists(limiterKeys({ name: 'orders' }).audit));
  await redis.rename('flyball:limiters', 'kept');
  await redis.set('flyball:limiters', 'x');
  await daemon.line('housekeeping_failed');
  await redis.rename('kept', 'flyball:limiters');
  await daemon.line('housekeeping_recovered');
  expect(await redis.hlen('flyball:daemons')).toBe(1);
  // A name without params and policy is nothing to wait for.
  const http = await daemon.http();
  await until('readiness', async () => (await fetch(`${http}/readyz`)).status === 200);
});
