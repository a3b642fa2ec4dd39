/** The shipped ACL users on a real server, entered by start.sh: what a service may, and what it can by no trick. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALGORITHMS } from '../../src/redis/algorithms.js';
import { GENESIS_HASH } from '../../src/redis/calls.js';
import { awaitRedis, connect, type RedisClient } from '../../src/redis/connect.js';
import { functionsLibrary, loadFunctions } from '../../src/redis/functions.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { refund } from '../../src/redis/refund.js';
import { addTop, heartbeat, inFlight, lease, note, slots, take } from '../../src/redis/scripts.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject } from '../../src/redis/subject-override.js';
import { freePort } from '../support/redis-server.js';
import { seedParams, testEntry } from '../support/seed-params.js';

const START = fileURLToPath(new URL('../../deploy/redis/start.sh', import.meta.url));
const plain = limiterKeys({ name: 'checkout' });
const grouped = limiterKeys({ name: 'refund', group: 'payments' });
const dir = mkdtempSync(join(tmpdir(), 'flyball-acl-'));
let server: ChildProcess;
let service: RedisClient;
let daemon: RedisClient;
let as: (user: string, password: string, database?: string) => RedisClient;

beforeAll(async () => {
  const port = await freePort();
  mkdirSync(join(dir, 'secrets'));
  writeFileSync(join(dir, 'secrets/flyball_service_password'), 'service pass\n');
  writeFileSync(join(dir, 'secrets/flyball_daemon_password'), 'daemon pass\n');
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir];
  server = spawn('sh', [START, ...args], {
    env: { ...process.env, SECRETS_DIR: join(dir, 'secrets'), RUN_DIR: join(dir, 'run') },
    stdio: 'ignore',
  });
  as = (user, password, database = '') =>
    connect({
      name: 'sdk',
      env: {
        FLYBALL_REDIS_URL: `redis://${user}@127.0.0.1:${port}${database}`,
        FLYBALL_REDIS_PASSWORD: password,
      },
    });
  daemon = as('flyball-daemon', 'daemon pass');
  service = as('flyball-service', 'service pass');
  const url = `redis://127.0.0.1:${port}`;
  await awaitRedis(daemon, { url, deadlineMs: 20_000 });
  await awaitRedis(service, { url, deadlineMs: 20_000 });
});

afterAll(async () => {
  daemon?.disconnect();
  service?.disconnect();
  const gone = new Promise((ok) => server.once('exit', ok));
  server.kill('SIGTERM');
  await gone;
  rmSync(dir, { recursive: true, force: true });
});

test('both find the database that a URL names', async () => {
  const pair = [
    as('flyball-daemon', 'daemon pass', '/3'),
    as('flyball-service', 'service pass', '/3'),
  ];
  const [written, read] = pair as [RedisClient, RedisClient];
  try {
    await awaitRedis(written, { url: 'redis://daemon/3', deadlineMs: 20_000 });
    await awaitRedis(read, { url: 'redis://service/3', deadlineMs: 20_000 });
    await written.hset(plain.params, 'rate', '7');
    expect(await read.hget(plain.params, 'rate')).toBe('7');
    expect(await service.hget(plain.params, 'rate')).not.toBe('7');
  } finally {
    await written.del(plain.params);
    for (const client of pair) client.disconnect();
  }
});

/** `ok`, or the first word of the refusal. */
const tried = (redis: RedisClient, ...[name, ...args]: [string, ...(string | number)[]]) =>
  redis.call(name, ...args).then(
    () => 'ok',
    (error: Error) =>
      /NOPERM|can't (run|access)|command not allowed/.test(error.message)
        ? 'refused'
        : error.message,
  );
/** The same inside a script that names the key, as a caller who writes his own scripts would. */
const inScript = (
  redis: RedisClient,
  ...[name, key, ...args]: [string, string, ...(string | number)[]]
) => tried(redis, 'EVAL', `return redis.call('${name}', KEYS[1], unpack(ARGV))`, 1, key, ...args);

describe('the files', () => {
  test('no password stands in what start.sh writes, and the shipped file starts no server', () => {
    const written = readFileSync(join(dir, 'run/users.acl'), 'utf8');
    expect(written).not.toMatch(/service pass|daemon pass|@SERVICE|@DAEMON/);
    const shipped = fileURLToPath(new URL('../../deploy/redis/users.acl', import.meta.url));
    const run = spawnSync('redis-server', ['--port', '0', '--aclfile', shipped], {
      encoding: 'utf8',
    });
    expect(run.status).not.toBe(0);
  });

  test('a missing password file is said, and no server starts', () => {
    const env = { ...process.env, SECRETS_DIR: '/no/such', RUN_DIR: join(dir, 'run2') };
    const run = spawnSync('sh', [START], { env, encoding: 'utf8' });
    expect(run.status).toBe(78);
    expect(run.stderr).toContain('/no/such/flyball_service_password is missing');
  });
});

describe.each([
  ['alone', plain],
  ['in a group', grouped],
])('a service, limiter %s', (_name, keys) => {
  test('decides, counts and reports', async () => {
    await daemon.hset(keys.params, 'rate', '10');
    expect(await tried(service, 'HGETALL', keys.params)).toBe('ok');
    expect(await inScript(service, 'HGETALL', keys.params)).toBe('ok');
    for (const bucket of [
      keys.bucket,
      keys.shadowBucket,
      keys.subjectBucket('user:1'),
      keys.shadowSubjectBucket('a b{}'),
    ]) {
      expect(await inScript(service, 'SET', bucket, '1', 'PX', 1000)).toBe('ok');
      expect(await inScript(service, 'MGET', bucket)).toBe('ok');
    }
    expect(await inScript(service, 'HSET', keys.inFlight, 'p', '1')).toBe('ok');
    expect(await inScript(service, 'SET', keys.refund('m'), '1', 'PX', 1000)).toBe('ok');
    expect(await inScript(service, 'PEXPIRE', keys.inFlight, 1000)).toBe('ok');
    expect(await tried(service, 'HINCRBY', keys.telemetry(1), 'ok', 1)).toBe('ok');
    expect(await tried(service, 'PEXPIRE', keys.telemetry(1), 1000)).toBe('ok');
    // Which limiters there are, for routes.
    expect(await tried(service, 'HGETALL', fleetKeys().limiters)).toBe('ok');
    expect(await tried(service, 'HMGET', keys.params, 'terms', 'rollout')).toBe('ok');
    expect(await tried(service, 'HSET', fleetKeys().limiters, 'x', '')).toBe('refused');
  });

  test('cannot write params, audit, lease, state, policy, status, directly or in a script', async () => {
    const writes: [string, string, ...string[]][] = [
      ...[keys.params, keys.history].flatMap((key): [string, string, ...string[]][] => [
        ['HSET', key, 'rate', '1000000'],
        ['HINCRBY', key, 'rate', '1'],
        ['HDEL', key, 'rate'],
        ['PEXPIRE', key, '1'],
      ]),
      ['XADD', keys.audit, '*', 'kind', 'change'],
      ['XTRIM', keys.audit, 'MAXLEN', '0'],
      ...[
        keys.params,
        keys.audit,
        keys.lease,
        keys.state,
        keys.status,
        keys.policy,
        keys.policyVersion('ab'),
      ].flatMap((key): [string, string, ...string[]][] => [
        ['SET', key, 'x'],
        ['DEL', key],
        ['UNLINK', key],
        ['GETDEL', key],
        ['RENAME', key, keys.bucket],
        ['RENAME', keys.bucket, key],
        ['COPY', keys.bucket, key],
        ['PEXPIRE', key, '1'],
      ]),
      ['HSET', fleetKeys().limiters, 'checkout', 'elsewhere'],
      ['HSET', fleetKeys().daemons, 'd', '1'],
      ['SET', fleetKeys().budget, '1 1 1'],
      ['HSET', fleetKeys().downstream('orders-db'), 'checkout', '{}'],
      ['HSET', fleetKeys().upstream('bank'), 'checkout', '{}'],
    ];
    for (const write of writes) {
      expect([write, await tried(service, ...write)]).toEqual([write, 'refused']);
      expect([write, await inScript(service, ...write)]).toEqual([write, 'refused']);
    }
  });

  test('cannot reach them by a subject, a telemetry second or a key that only looks like its own', async () => {
    for (const trick of ['params', 'x}:params', '{x}:params', `}:b:${keys.params}`, '../params']) {
      // A subject is encoded into one key of its own; whatever it says, params stay as they are.
      const key = keys.subjectBucket(trick);
      expect(await inScript(service, 'SET', key, '1', 'PX', 1000)).toBe('ok');
    }
    expect(await daemon.hgetall(keys.params)).toEqual({ rate: '10' });
    // A key hidden in the script instead of named in KEYS is checked all the same.
    const hidden = `return redis.call('HSET', '${keys.params}', 'rate', '9')`;
    expect(await tried(service, 'EVAL', hidden, 0)).toBe('refused');
    const pcall = `return redis.pcall('SET', '${keys.policy}', 'x')`;
    expect(await tried(service, 'EVAL', pcall, 0)).toBe('refused');
    expect(await daemon.exists(keys.policy)).toBe(0);
  });

  test('cannot read the audit log or a policy', async () => {
    expect(await tried(service, 'XRANGE', keys.audit, '-', '+')).toBe('refused');
    expect(await inScript(service, 'GET', keys.policy)).toBe('refused');
  });
});

test('a service adds samples and top subjects, and can neither ask for samples nor read those of others', async () => {
  const keys = limiterKeys({ name: 'watched' });
  expect(await tried(service, 'HGETALL', keys.tail)).toBe('ok');
  expect(await tried(service, 'XADD', keys.samples, 'MAXLEN', '~', 1000, '*', 's', '{}')).toBe(
    'ok',
  );
  expect(await tried(service, 'PEXPIRE', keys.samples, 60_000)).toBe('ok');
  expect(await addTop(service, { keys, minute: 1, fields: [['n', 1]] })).toBe(1);
  // Grown, so that the script cuts.
  const fields = Array.from({ length: 600 }, (_, i) => [`t:user:${i}`, i + 1] as const);
  expect(await addTop(service, { keys, minute: 1, fields })).toBe(130);
  for (const command of [
    ['HSET', keys.tail, 'x', '{}'],
    ['PEXPIRE', keys.tail, 1],
    ['DEL', keys.tail],
    ['XRANGE', keys.samples, '-', '+'],
    ['XREAD', 'STREAMS', keys.samples, '0'],
    ['DEL', keys.samples],
    ['DEL', keys.top(1)],
    ['XADD', keys.audit, '*', 's', '{}'],
  ] as [string, ...(string | number)[]][]) {
    expect([command, await tried(service, ...command)]).toEqual([command, 'refused']);
  }
  const script = `return redis.call('HSET', KEYS[1], 'rate', '9')`;
  expect(await tried(service, 'EVAL', script, 2, keys.params, keys.top(1))).toBe('refused');
  // As `flyball tail` does, with the rights of a person at the CLI.
  expect(await tried(daemon, 'HSET', keys.tail, 'x', '{}')).toBe('ok');
  expect(await tried(daemon, 'XREAD', 'STREAMS', keys.samples, '0')).toBe('ok');
  expect(await tried(daemon, 'HGETALL', keys.top(1))).toBe('ok');
});

test('a service runs no command that is not about one limiter', async () => {
  for (const command of [
    ['FLUSHALL'],
    ['FLUSHDB'],
    ['KEYS', '*'],
    ['SCAN', '0'],
    ['CONFIG', 'GET', '*'],
    ['ACL', 'LIST'],
    ['SCRIPT', 'FLUSH'],
    ['FUNCTION', 'FLUSH'],
    ['CLIENT', 'KILL', 'TYPE', 'normal'],
    ['DEBUG', 'SLEEP', '0'],
    ['SHUTDOWN'],
    ['PUBLISH', fleetKeys().changes, 'x'],
    ['SWAPDB', '0', '1'],
    ['REPLICAOF', 'NO', 'ONE'],
  ] as [string, ...string[]][]) {
    expect([command, await tried(service, ...command)]).toEqual([command, 'refused']);
  }
  expect(await tried(service, 'HGET', fleetKeys().limiters, 'checkout')).toBe('ok');
  expect(await tried(service, 'INFO', 'server')).toBe('ok');
});

test('the real scripts: a service takes and asks for its share; it cannot actuate, lease, beat or note', async () => {
  const keys = limiterKeys({ name: 'real' });
  await seedParams(daemon, keys, {
    rate: 5,
    capacity: 5,
    inFlightMax: 4,
    subjectRate: 1,
    subjectCapacity: 2,
  });
  const before = await daemon.hgetall(keys.params);
  const fallback = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
  const takes = [{ subject: 'user:1', cost: 1, priority: 'default' }] as const;
  const reply = await take(service, { keys, takes, chargeByUs: 'any', fallback, shadow: false });
  expect(reply).toMatchObject({ status: 'ok', inForce: { managed: true } });
  expect(reply.answers[0]?.allowed).toBe(true);
  const asked = { keys, processId: 'p', need: 9, reports: true, fallback };
  expect((await inFlight(service, asked)).share).toBe(4);
  expect(
    (await slots(service, { keys, op: 'hold', ids: ['q:1'], fallback })).done,
    'places beside shares: the share takes all',
  ).toEqual([false]);
  for (const algorithm of [
    'token-bucket',
    'sliding-log',
    'sliding-counter',
    'fixed-window',
  ] as const) {
    const terms = { algorithm, windowMs: 60_000, cells: 6 };
    const call = { keys, chargeByUs: 'any', fallback, shadow: false, terms } as const;
    const taken = await take(service, { ...call, takes: [{ ...takes[0], subject: algorithm }] });
    const { epoch, generation } = taken.inForce;
    const one = { subject: algorithm, cost: 1, atUs: taken.nowUs, epoch, generation, terms };
    const refunds = [{ ...one, mark: algorithm }];
    expect(await refund(service, { keys, refunds, dueUs: null, shadow: false, fallback })).toEqual([
      'refunded',
    ]);
  }

  const refused = /can't (run|access)|NOPERM/;
  const entry = { kind: 'note', prev: GENESIS_HASH, hash: 'f'.repeat(64), body: '{}' } as const;
  await expect(seedParams(service, limiterKeys({ name: 'forged' }))).rejects.toThrow(refused);
  await expect(lease(service, { keys, op: 'acquire', owner: 'x', leaseMs: 1e6 })).rejects.toThrow(
    refused,
  );
  await expect(note(service, { keys, entry })).rejects.toThrow(refused);
  await expect(heartbeat(service, { keys, owner: 'x', token: 1, leaseMs: 1e6 })).rejects.toThrow(
    refused,
  );
  expect(await daemon.hgetall(keys.params)).toEqual(before);
  expect(await daemon.xlen(keys.audit)).toBe(1);

  // The daemon may do all of it.
  expect(await lease(daemon, { keys, op: 'acquire', owner: 'd', leaseMs: 5_000 })).toMatchObject({
    status: 'held',
  });
});

test('single subjects: a service asks what is known of them and counts outcomes; it says nothing itself', async () => {
  const keys = limiterKeys({ name: 'known' });
  const terms = 'max=2 on=paid reset=failed keep=60000 step=1:9:2';
  await seedParams(daemon, keys, {
    ...{ rate: 5, capacity: 500, subjectRate: 1, subjectCapacity: 2 },
    ...{ subjectRules: 1, subjectTerms: terms },
  });
  const fallback = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
  const said = {
    ...{ kind: 'block' as const, untilMs: -1, rate: null, capacity: null, revision: 2 },
    ...{ subject: 'bad', by: 'ada', why: '' },
  } as const;
  const override = async (redis: RedisClient) => {
    const expected = { epoch: 1_000_000, revision: 1 };
    const entry = await testEntry(daemon, keys, expected.epoch, 2, 'said');
    return overrideSubject(redis, { keys, expected, subject: 'bad', override: said, entry });
  };
  await expect(override(service)).rejects.toThrow(/can't (run|access)|NOPERM/);
  expect(await daemon.exists(keys.overrides)).toBe(0);
  expect(await override(daemon)).toMatchObject({ status: 'ok' });
  for (const algorithm of ALGORITHMS) {
    // More subjects than may live, an hour apart, so that the index is put in order as well.
    for (const [i, name] of ['a', 'b', 'c', 'd', 'bad'].entries()) {
      const { status } = await take(service, {
        ...{ keys, fallback, shadow: false, rules: true, chargeByUs: 'any' },
        takes: [{ subject: name, cost: 0.001, priority: 'default' }],
        terms: { algorithm, windowMs: 1_000, cells: 2 },
        nowUs: Date.now() * 1_000 + i * 3_600_000_000,
      });
      expect([algorithm, name, status]).toEqual([algorithm, name, 'ok']);
    }
  }
  const fair = limiterKeys({ name: 'fair' });
  await seedParams(daemon, fair, { capacity: 2, subjectRules: 1, subjectTerms: 'fair=1' });
  for (const seconds of [0, 0.01, 0.02, 0.03]) {
    const wish = { subject: 'a', cost: 1, priority: 'default' } as const;
    const { status } = await take(service, {
      ...{ keys: fair, fallback, shadow: false, rules: true, chargeByUs: 'any' },
      takes: [wish, { ...wish, subject: 'b' }, wish],
      nowUs: (Date.now() + seconds * 1_000) * 1_000,
    });
    expect([seconds, status]).toEqual([seconds, 'ok']);
  }
  expect(await daemon.exists(fair.owed(false))).toBe(1);
  for (const name of ['paid', 'failed']) {
    const outcome = { keys, subject: 'a', name, id: name };
    expect(await countOutcome(service, outcome)).toMatchObject({ status: 'counted' });
  }
  for (const write of [
    ['HSET', keys.overrides, 'bad', ''],
    ['HDEL', keys.overrides, 'bad'],
    ['DEL', keys.overrides],
    ['SET', keys.overrides, 'x'],
  ] as [string, string, ...string[]][]) {
    expect([write, await tried(service, ...write)]).toEqual([write, 'refused']);
    expect([write, await inScript(service, ...write)]).toEqual([write, 'refused']);
  }
});

test('the functions: a daemon loads them, a service calls them on keys of its own alone', async () => {
  expect(await loadFunctions(daemon)).toEqual([]);
  expect(await tried(service, 'FUNCTION', 'LOAD', 'REPLACE', functionsLibrary())).toBe('refused');
  const args = ['', '', '0', '10 20 0 -1 0', '1'];
  const keys = [plain.params, plain.bucket, plain.subjectBucket('by-function')];
  expect(await tried(service, 'FCALL', 'flyball_take', 3, ...keys, ...args)).toBe('ok');
  const foreign = [plain.params, plain.audit, plain.audit];
  expect(await tried(service, 'FCALL', 'flyball_take', 3, ...foreign, ...args)).not.toBe('ok');
});

test('a daemon writes all of it, and nothing outside', async () => {
  expect(await tried(daemon, 'HSET', plain.params, 'rate', '10')).toBe('ok');
  expect(await inScript(daemon, 'XADD', plain.audit, '*', 'kind', 'note')).toBe('ok');
  expect(await tried(daemon, 'SET', plain.policy, '{}')).toBe('ok');
  expect(await tried(daemon, 'PUBLISH', fleetKeys().changes, 'x')).toBe('ok');
  expect(await tried(daemon, 'HSETNX', plain.history, '29665000', '[]')).toBe('ok');
  expect(await tried(daemon, 'HKEYS', plain.history)).toBe('ok');
  expect(await tried(daemon, 'PEXPIRE', plain.history, '1000', 'NX')).toBe('ok');
  expect(await tried(daemon, 'CONFIG', 'GET', 'maxmemory-policy')).toBe('ok');
  expect(await tried(daemon, 'SET', 'other', '1')).toBe('refused');
  for (const name of ['FLUSHALL', 'KEYS', 'SHUTDOWN']) {
    expect(await tried(daemon, name, ...(name === 'KEYS' ? ['*'] : []))).toBe('refused');
  }
});

test('nobody enters without a name', async () => {
  const { port } = (daemon as Redis).options;
  const redis = connect({ url: `redis://127.0.0.1:${port}`, name: 'cli' });
  try {
    expect(await redis.get('x').catch((error: Error) => error.message)).toMatch(/NOAUTH|NOPERM/);
  } finally {
    redis.disconnect();
  }
});
