/** `flyball doctor` against servers that are wrong in one way each: every finding has its mend, and nothing is changed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { VERSION } from '../../src/version.js';
import { cli, cliProcess, seedLimiter } from '../support/cli-run.js';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';
import { ROOT } from '../support/source-tree.js';

vi.setConfig({ testTimeout: 120_000 });

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
const home = process.cwd();
const dir = mkdtempSync(join(tmpdir(), 'flyball-doctor-'));
const data = join(dir, 'data');
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  // Without a folder of policies in sight none is loaded, which takes a process each time.
  process.chdir(dir);
  server = await startRedis(['--enable-debug-command', 'yes']);
  redis = server.client();
});
afterAll(async () => {
  process.chdir(home);
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  await redis.flushall();
  // A test that failed half-way may have left them.
  await redis.config('SET', 'appendonly', 'no', 'slowlog-log-slower-than', '10000');
  await redis.call('SLOWLOG', 'RESET');
  await seedLimiter(redis, checkout);
});

interface Finding {
  check: string;
  status: string;
  message: string;
  mend?: string;
  command?: string;
}

async function doctor(args: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const shown = await cli(['doctor', '--json', ...args], {
    env: {
      ...{ FLYBALL_REDIS_URL: server.url, FLYBALL_DATA_DIR: data },
      ...env,
    },
  });
  const { findings, ...rest } = JSON.parse(shown.stdout) as { findings: Finding[]; ok: boolean };
  return {
    ...shown,
    ...rest,
    findings,
    of: (check: string) => findings.filter((f) => f.check === check),
  };
}

test('what fails or warns has a mend; nothing is written', async () => {
  const all = async () => {
    const names = (await redis.keys('*')).sort();
    return Promise.all(names.map(async (name) => [name, String(await redis.dump(name))]));
  };
  const before = await all();
  const { findings, code, stderr } = await doctor();
  expect(await all()).toEqual(before);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  for (const finding of findings) {
    expect(Object.keys(finding).sort()).toEqual(
      ['check', 'status', 'message', 'mend', 'command'].filter((name) => name in finding).sort(),
    );
    expect(['ok', 'warn', 'fail', 'skipped']).toContain(finding.status);
    if (['warn', 'fail'].includes(finding.status)) expect(finding.mend, finding.check).toBeTruthy();
  }
  const checks = new Set(findings.map(({ check }) => check));
  for (const check of [
    'node',
    'redis',
    'topology',
    'version',
    'persistence',
    'eviction',
    'role',
    'clock',
    'scripts',
    'rights',
    'latency',
    'daemon',
    'data folder',
    'policies',
  ]) {
    expect(checks, check).toContain(check);
  }
});

describe('Redis', () => {
  test('persistence: no log, a log that is synced by nobody; the command to paste mends it', async () => {
    const off = (await doctor()).of('persistence')[0]!;
    expect(off).toMatchObject({
      status: 'warn',
      mend: expect.stringContaining('Set appendonly yes'),
    });
    expect(off.command).toBe(
      `redis-cli -h 127.0.0.1 -p ${server.port} CONFIG SET appendonly yes && redis-cli -h 127.0.0.1 -p ${server.port} CONFIG REWRITE`,
    );
    await redis.config('SET', 'appendonly', 'yes');
    await redis.config('SET', 'appendfsync', 'no');
    expect((await doctor()).of('persistence')[0]).toMatchObject({
      status: 'warn',
      command: expect.stringContaining('CONFIG SET appendfsync everysec'),
    });
    await redis.config('SET', 'appendfsync', 'everysec');
    expect((await doctor()).of('persistence')[0]).toEqual({
      ...{ check: 'persistence', status: 'ok', message: 'append-only file on, fsync everysec' },
    });
    await redis.config('SET', 'appendonly', 'no');
  });

  test('slow commands of the last hour are named, without what they were about', async () => {
    await redis.config('SET', 'slowlog-log-slower-than', '0');
    await redis.call('DEBUG', 'SLEEP', '0.03');
    await redis.call(
      'EVAL',
      "local t = redis.call('TIME') local n = 0 repeat local u = redis.call('TIME') n = (u[1] - t[1]) * 1000000 + u[2] - t[2] until n > 15000 return 'hush'",
      '0',
    );
    await redis.config('SET', 'slowlog-log-slower-than', '10000');
    const { of, stdout } = await doctor();
    expect(of('slow commands')[0]).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(/EVAL \d+/),
      command: expect.stringContaining('SLOWLOG GET 10'),
    });
    expect(stdout).not.toContain('hush');
    await redis.call('SLOWLOG', 'RESET');
  });

  test('a server that answers late: a warning with where the time goes by', async () => {
    const busy = server.client();
    let stop = false;
    // One command at a time holds the server for 20 ms: round trips of others wait for it.
    const holding = (async () => {
      while (!stop) await busy.call('DEBUG', 'SLEEP', '0.02');
    })();
    const [found] = (await doctor()).of('latency');
    stop = true;
    await holding;
    await redis.call('SLOWLOG', 'RESET');
    expect(found).toMatchObject({
      ...{ status: 'warn', message: expect.stringContaining('more than 5 ms') },
      command: expect.stringContaining('--latency-history'),
    });
  });

  test('--load: decisions per second, and nothing left behind', async () => {
    const before = (await redis.keys('*')).sort();
    const { of, code } = await doctor(['--load', '1s']);
    expect(code).toBe(0);
    expect(of('load')[0]!.message).toMatch(
      /^\d+ decisions\/s from one process here, 64 at once, for 1 s; p99 /,
    );
    expect((await redis.keys('*')).sort()).toEqual(before);
  });

  test.each([
    ['--load 2m', '--load: "2m" is more than 1m. Write 5s.'],
    ['--load 5', '"5" has no unit'],
    ['--laod 5s', "unknown option '--laod' (Did you mean --load?)"],
  ])('%s is answered with the mend', async (args, said) => {
    const shown = await cli(['doctor', ...args.split(' ')], { env: {} });
    expect(shown).toMatchObject({ code: 64, stdout: '' });
    expect(shown.stderr).toContain(said);
  });
});

describe('daemons', () => {
  const now = async () => Number((await redis.time())[0]) * 1000;

  test('who lives and in which version; another version, one that fell silent', async () => {
    const { daemons } = fleetKeys();
    const record = (version: string) => JSON.stringify({ name: 'east', version, leads: 1 });
    // Ahead, so that a machine that is busy for a while does not make it silent.
    const speaks = async () => (await now()) + 60_000;
    await redis.hset(daemons, 'east:1:aa', `${await speaks()} ${record(VERSION)}`);
    expect((await doctor()).of('daemons')).toEqual([
      { check: 'daemons', status: 'ok', message: `1 lives: east (${VERSION}, leads 1)` },
    ]);
    await redis.hset(daemons, 'west:2:bb', `${await speaks()} ${record('0.0.1')}`);
    await redis.hset(daemons, 'north:3:cc', `${(await now()) - 40_000} ${record(VERSION)}`);
    await redis.hset(daemons, 'x\x1b[2J:4:dd', `${(await now()) - 40_000} {}`);
    await redis.hset(daemons, 'y:5:ee', 'nothing of ours');
    const found = (await doctor()).of('daemons');
    expect(found.map(({ status }) => status)).toEqual(['warn', 'warn', 'warn']);
    const said = found.map(({ message }) => message).join('\n');
    expect(said).toMatch(/^north was last heard .* ago, and has not said that it leaves$/m);
    expect(said).toMatch(/^2 live: .*west \(0\.0\.1, leads 1\).*; this command is /m);
    expect(JSON.stringify(found)).not.toContain('\x1b');
  });

  test('a late tick, clocks that are off, a file that waits, faults: each told with its mend', async () => {
    const atMs = (await now()) - 40_000;
    await redis.hset(keys.params, 'validUntil', String(atMs + 600_000));
    const status = {
      ...{ schema: 1, atMs, tickMs: 1000, file: 'pending', faults: ['checkout.ts: x is wrong'] },
      clocks: { redisMs: 2500, servicesMs: -90_000 },
    };
    await redis.set(keys.status, JSON.stringify(status));
    const { of } = await doctor();
    expect(of('ticks checkout')[0]!.message).toMatch(/last tick was .* ago/);
    expect(of('clocks checkout')).toHaveLength(2);
    expect(of('policy checkout').map(({ command }) => command)).toEqual([
      'flyball plan',
      'flyball check policies/',
    ]);
    await redis.set(
      keys.status,
      JSON.stringify({ ...status, atMs: (await now()) + 60_000, file: 'drift' }),
    );
    const drift = await doctor();
    expect(drift.of('ticks checkout')).toEqual([]);
    expect(drift.of('policy checkout')[0]!.message).toContain('is not what is adopted');
  });
});

describe('audit export', () => {
  test('an exporter that has all, one that lacks entries for long; none says nothing', async () => {
    expect((await doctor()).of('audit export')).toEqual([]);
    const [[newest] = ['']] = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1);
    await redis.hset(keys.retention, '@file:east', `${newest} 1`, 'keeps', '100 200');
    expect((await doctor()).of('audit export')).toEqual([
      { check: 'audit export', status: 'ok', message: 'file:east has all entries' },
    ]);
    await redis.del(keys.audit);
    // A minute more, so that two hours have passed however the clocks round.
    const hoursAgo = Number.parseInt(newest, 10) - 7_260_000;
    await redis.xadd(keys.audit, `${hoursAgo}-1`, 'kind', 'change');
    await redis.hset(keys.retention, '@file:east', `${hoursAgo}-0 1`);
    const [late] = (await doctor()).of('audit export');
    expect(late).toMatchObject({ status: 'warn', mend: expect.stringContaining('logs') });
    expect(late!.message).toMatch(/^file:east lacks entries of checkout, the oldest for 2 h/);
  });
});

describe('the data folder', () => {
  test('open to others: a warning, and the command closes it', async () => {
    chmodSync(data, 0o755);
    const [found] = (await doctor()).of('data folder');
    expect(found).toMatchObject({ status: 'warn', command: `chmod 700 ${data}` });
    chmodSync(data, 0o700);
    expect((await doctor()).of('data folder')[0]!.status).toBe('ok');
    expect(
      (await doctor([], { FLYBALL_DATA_DIR: join(dir, 'nowhere') })).of('data folder'),
    ).toEqual([]);
  });
});

describe('the shipped users', () => {
  let guarded: ChildProcess;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    mkdirSync(join(dir, 'secrets'));
    writeFileSync(join(dir, 'secrets/flyball_service_password'), 'service-pass\n');
    writeFileSync(join(dir, 'secrets/flyball_daemon_password'), 'daemon-pass\n');
    guarded = spawn(
      'sh',
      [
        join(ROOT, 'deploy/redis/start.sh'),
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        dir,
      ],
      {
        env: { ...process.env, SECRETS_DIR: join(dir, 'secrets'), RUN_DIR: join(dir, 'run') },
        stdio: 'ignore',
      },
    );
  });
  afterAll(async () => {
    const gone = new Promise((ok) => guarded.once('exit', ok));
    guarded.kill('SIGTERM');
    await gone;
  });

  const as = (user: string, password: string) =>
    doctor([], { FLYBALL_REDIS_URL: `redis://${user}:${password}@127.0.0.1:${port}` });

  test('the daemon may all it needs; a service is told for what it is; no password is shown', async () => {
    const url = `redis://flyball-daemon:daemon-pass@127.0.0.1:${port}`;
    await vi.waitFor(
      async () => expect((await cli(['status'], { env: { FLYBALL_REDIS_URL: url } })).code).toBe(0),
      { timeout: 20_000 },
    );
    const daemon = await as('flyball-daemon', 'daemon-pass');
    expect(daemon.of('rights')).toEqual([
      { check: 'rights', status: 'ok', message: 'this user may read and change limiters' },
    ]);
    expect(daemon.findings.filter(({ status }) => status === 'fail')).toEqual([]);
    const service = await as('flyball-service', 'service-pass');
    expect(service.of('rights')[0]).toMatchObject({
      ...{ status: 'warn', mend: expect.stringContaining('daemon user') },
      message: expect.stringMatching(/^a user for services: .*HSET.*XADD/),
    });
    expect(service.findings.filter(({ status }) => status === 'fail')).toEqual([]);
    expect(daemon.stdout + service.stdout).not.toMatch(/(daemon|service)-pass/);
  });

  test('an administrator is told when a shipped user has too little or too much', async () => {
    const rules = (user: string) =>
      readFileSync(join(ROOT, 'deploy/redis/users.acl'), 'utf8')
        .split('\n')
        .find((line) => line.startsWith(`user ${user} `))!
        .replace(/#@\w+@/, 'nopass')
        // SETUSER takes a selector as one word.
        .match(/\([^)]*\)|\S+/g)!
        .slice(2);
    for (const user of ['flyball-service', 'flyball-daemon']) {
      await redis.call('ACL', 'SETUSER', user, ...rules(user));
    }
    const good = await doctor();
    for (const user of ['flyball-service', 'flyball-daemon']) {
      expect(good.of(`user ${user}`)[0]).toMatchObject({ status: 'ok' });
    }
    await redis.call('ACL', 'SETUSER', 'flyball-service', '+hset', '~*');
    await redis.call('ACL', 'SETUSER', 'flyball-daemon', '-xadd');
    const bad = await doctor();
    expect(bad.code).toBe(1);
    expect(bad.of('user flyball-service')[0]).toMatchObject({
      ...{ status: 'warn', message: 'a service may change limits itself' },
    });
    expect(bad.of('user flyball-daemon')[0]).toMatchObject({
      ...{ status: 'fail', message: expect.stringContaining('may not XADD') },
      command: expect.stringContaining('ACL LOAD'),
    });
    await redis.call('ACL', 'DELUSER', 'flyball-service', 'flyball-daemon');
  });
});

test('the built program, without a terminal and without colour: marks, mends, commands', async () => {
  const shown = await cliProcess(['doctor'], {
    ...{ FLYBALL_REDIS_URL: server.url, FLYBALL_DATA_DIR: data },
  });
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(
    /^warn {2}daemon +no daemon watches checkout.*\n +→ Start flyball run.*\n +flyball run policies\/$/m,
  );
  expect(shown.stdout + shown.stderr).not.toContain('\x1b');
  expect(shown.stderr).toMatch(/^\d+ failed, \d+ to look at\.$|^All is well\.$/m);
});
