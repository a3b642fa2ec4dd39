/** The reading commands on a real Redis with every daemon dead, and the built program as its own process. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { policySchema } from '../../src/policy/schema.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { cli, cliProcess, MAIN, seedLimiter } from '../support/cli-run.js';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
let server: TestRedis;
let redis: Redis;
let env: NodeJS.ProcessEnv;
let dir: string;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  dir = mkdtempSync(join(tmpdir(), 'flyball-cli-'));
  const policy = join(dir, 'checkout.ts');
  writeFileSync(
    policy,
    `import { definePolicy } from 'flyball';
export default definePolicy({ limiter: { name: 'checkout', rate: 100, capacity: 200 } });`,
  );
  env = { FLYBALL_REDIS_URL: server.url, FLYBALL_POLICIES: policy };
});
afterAll(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  await redis.flushall();
  await seedLimiter(redis, checkout);
});

const run = (args: string, more: NodeJS.ProcessEnv = {}) =>
  cli(args.split(' '), { env: { ...env, ...more } });
const parse = (text: string) => JSON.parse(text);

/** Five whole seconds of telemetry that end now. */
async function telemetry(fields: Record<string, number>): Promise<void> {
  const [seconds] = await redis.time();
  for (let i = -1; i <= 6; i++) await redis.hset(keys.telemetry(Number(seconds) - i), fields);
}

describe('status', () => {
  test('with no daemon: what is in force, its bounds, and that nobody watches', async () => {
    const shown = await run('status checkout');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^checkout {2}breaker closed {2}mode auto {2}revision 1$/m);
    expect(shown.stdout).toMatch(/rate +100\/s {2}of 20 … 400/);
    expect(shown.stdout).toMatch(/in-flight cap +24 {2}of 2 … 64/);
    expect(shown.stdout).toMatch(/binds now +unknown: no service has reported/);
    expect(shown.stdout).toMatch(/daemon +none.*the limits go to rate 100\/s, cap 24/);
    expect(shown.stdout).toMatch(/last change +r1 .*seed +params_created/);
  });

  test.each([
    [{ [FIELD.denied('in_flight')]: 40, [FIELD.denied('rate')]: 3 }, 'cap', /the in-flight cap/],
    [{ [FIELD.denied('rate')]: 40 }, 'rate', /the rate/],
    [{ [FIELD.denied('subject')]: 4 }, 'subject', /subjects' own buckets/],
    [{}, 'nothing', /binds now +nothing/],
  ])('what binds comes from what was denied: %j → %s', async (denied, binds, text) => {
    await telemetry({
      ...denied,
      [FIELD.offered]: 100,
      [FIELD.admitted]: 60,
      [FIELD.process('p1')]: 1,
    });
    expect((await run('status checkout')).stdout).toMatch(text);
    const [view] = parse((await run('status --json')).stdout).limiters;
    expect(view).toMatchObject({
      binds,
      traffic: { offeredPerSecond: 100, admittedPerSecond: 60 },
    });
  });

  test('processes that report no completions are counted', async () => {
    const fields: Record<string, number> = { [FIELD.offered]: 5 };
    for (const id of ['a', 'b', 'c', 'd', 'e']) fields[FIELD.process(id)] = 1;
    for (const id of ['a', 'b']) fields[FIELD.reportingProcess(id)] = 1;
    await telemetry(fields);
    expect((await run('status checkout')).stdout).toMatch(
      /completions +rate only: 3 of 5 SDK processes report no completions/,
    );
    // Live shares lead over telemetry, and a process that is gone does not count.
    const [seconds] = await redis.time();
    const now = Number(seconds) * 1e6;
    await redis.hset(
      keys.inFlight,
      'a',
      `3 12 1 ${now}`,
      'b',
      `1 12 1 ${now}`,
      'old',
      `1 0 0 ${now - 4e6}`,
    );
    expect((await run('status checkout')).stdout).not.toMatch(/rate only/);
  });

  test('holds with countdown and owner; an open breaker; the worst signal; a would-be value', async () => {
    await run('pin checkout --rate 50 --for 2h --yes');
    await run('trip checkout --hold --yes');
    const policy = policySchema.parse({
      limiter: { name: 'checkout', rate: 100, capacity: 200 },
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
      objective: { p95: { below: '250ms' }, errors: { below: '1%' } },
      mode: 'recommend',
    });
    await redis.set(keys.policy, JSON.stringify(policy));
    await redis.hset(keys.params, 'mode', 'recommend');
    const [seconds] = await redis.time();
    const signals = {
      p95: { value: 500, fresh: true, ageMs: 100, count: 40 },
      errors: { value: 0.005, fresh: false, ageMs: 9000, count: 2, reason: 'thin' },
    };
    await redis.set(
      keys.status,
      JSON.stringify({
        schema: 1,
        atMs: Number(seconds) * 1000 - 3000,
        owner: 'd',
        law: 'adaptive@1',
        file: 'drift',
        faults: ['policies/x.ts: no such field'],
        sample: { signals },
        wouldBe: { mode: 'recommend', state: 'closed', rate: 70, capacity: 200, inFlightMax: 9 },
      }),
    );
    const shown = (await run('status checkout')).stdout;
    expect(shown).toMatch(/^checkout {2}breaker open {2}mode recommend/m);
    expect(shown).toMatch(/rate +0\/s.*\(50\/s is stored\)/);
    expect(shown).toMatch(/binds now +the breaker/);
    expect(shown).toMatch(/worst signal +p95 500 ms, 2 × its setpoint 250 ms/);
    expect(shown).toMatch(/no evidence +errors: thin/);
    expect(shown).toMatch(/hold +pinned until .*\((1 h 59 min|2 h) left\) by .*\(unverified\)/);
    expect(shown).toMatch(/hold +open until a person ends it/);
    expect(shown).toMatch(/last tick [34] s ago/);
    expect(shown).toMatch(/would be +closed, rate 70\/s, cap 9 \(mode recommend/);
    expect(shown).toMatch(/differs from the adopted/);
    expect(shown).toMatch(/policy fault +policies\/x\.ts/);
    const [view] = parse((await run('status checkout --json')).stdout).limiters;
    expect(view).toMatchObject({
      limiter: 'checkout',
      managed: true,
      state: 'open',
      binds: 'breaker',
      target: { rate: 50 },
      inForce: { rate: 0 },
      holds: [
        { kind: 'pinned', leftMs: expect.any(Number) },
        { kind: 'open', untilMs: null },
      ],
      worst: { signal: 'p95', ratio: 2 },
      wouldBe: { rate: 70 },
      file: 'drift',
    });
  });

  test('what the law has learnt of its loop, and that defaults hold while it is too little', async () => {
    const tell = (terms: object) =>
      redis.set(keys.status, JSON.stringify({ law: 'adaptive@4', decision: { terms } }));
    await tell({ loopTrust: 0, loopChanges: 2 });
    expect((await run('status checkout')).stdout).toMatch(/loop +defaults: too few changes/);
    await tell({ loopTrust: 1, loopChanges: 20, loopDeadMs: 1445, loopGain: 0.8, loopFit: 0.6 });
    const shown = (await run('status checkout')).stdout.replace(/\s+/g, ' ');
    expect(shown).toContain('loop a change shows after 1.4 s, 10 % more limit is 8 % more signal');
    const [view] = parse((await run('status checkout --json')).stdout).limiters;
    expect(view.loop).toMatchObject({ deadMs: 1445, gain: 0.8, fit: 0.6, changes: 20, trust: 1 });
    expect(view.loop.follows).toEqual({ cut: 1, raise: 1, headroom: 1 });
  });

  test('a limiter whose autopilot is gone is shown gliding, with the values of the glide', async () => {
    await redis.hset(keys.params, { rate: 300, validUntil: Date.now() - 75_000 });
    const shown = await run('status checkout');
    expect(shown.stdout).toMatch(/closed, gliding/);
    expect(shown.stdout).toMatch(/rate +(19\d|20\d)[.\d]*\/s/);
    expect(shown.stdout).toMatch(/glide to their safe values \(rate 100\/s, cap 24\)/);
  });

  test('an open breaker and a hold: why, and the command that ends each', async () => {
    expect((await run('status checkout')).stdout).not.toMatch(/^ +next /m);
    await run('trip checkout --yes');
    await run('pin checkout --rate 80 --yes');
    const { stdout } = await run('status checkout');
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      /next flyball explain checkout 3 \(why\), flyball release checkout \(ends it\), flyball reset checkout \(ends it\)/,
    );
  });

  test('all limiters as a table; missing params are unmanaged; an empty Redis says what to do', async () => {
    await seedLimiter(redis, { name: 'search' });
    await redis.del(limiterKeys({ name: 'search' }).params);
    const table = await run('status');
    expect(table.stdout).toMatch(/^LIMITER +BREAKER +MODE/m);
    expect(table.stdout).toMatch(/^checkout +closed +auto +100\/s +24/m);
    expect(table.stdout).toMatch(/^search +unmanaged/m);
    expect((await run('status search')).stdout).toMatch(/unmanaged.*\n.*services use the numbers/);
    await redis.flushall();
    expect(await run('status')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/flyball run/),
    });
    expect(parse((await run('status --json')).stdout)).toMatchObject({ schema: 1, limiters: [] });
  });
});

describe('audit and explain', () => {
  test('entries newest first, with limit, since and JSON', async () => {
    await run('pin checkout --rate 80 --yes --reason why-not');
    await run('release checkout --yes');
    const shown = (await run('audit checkout')).stdout;
    expect(shown.match(/^r\d+/gm)).toEqual(['r3', 'r2', 'r1']);
    expect(shown).toMatch(/^r2 .*\(unverified\) {2}pin {2}rate 100 → 80\/s$/m);
    expect(shown).toMatch(/Reason: why-not/);
    const json = parse((await run('audit checkout --json --limit 2')).stdout);
    expect(json).toMatchObject({
      schema: 1,
      more: true,
      entries: [
        { revision: 3 },
        { revision: 2, reason: 'pin', hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
    });
    expect(parse((await run('audit checkout --json --since 1h')).stdout).entries).toHaveLength(3);
    expect(parse((await run('audit checkout --json --since 2090-01-01')).stdout).entries).toEqual(
      [],
    );
    expect((await run('audit --limit x')).code).toBe(64);
  });

  test('verify passes on a whole chain, and exits 1 naming the entry that was edited', async () => {
    await run('pin checkout --rate 80 --yes');
    await run('release checkout --yes');
    const good = await run('audit verify');
    expect(good).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok {2}checkout: consistent/),
    });
    const head = parse((await run('audit verify checkout --json')).stdout).limiters[0].head;
    expect((await run(`audit verify checkout --anchor ${head}`)).stdout).toMatch(/proven/);
    const [, [id, fields] = ['', []]] = await redis.xrange(keys.audit, '-', '+');
    await redis.xdel(keys.audit, id);
    const bad = await run('audit verify checkout');
    expect(bad).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^broken .*missing or was changed/),
    });
    expect(parse((await run('audit verify --json')).stdout)).toMatchObject({ ok: false });
    expect(fields.length).toBeGreaterThan(0);
  });

  test('an entry that cannot be read stands in its place; audit and rollback go past it', async () => {
    await run('pin checkout --rate 80 --yes');
    await run('release checkout --yes');
    const rows = await redis.xrange(keys.audit, '-', '+');
    await redis.del(keys.audit);
    for (const [i, [id, fields]] of rows.entries()) {
      if (i === 1) fields[fields.indexOf('body') + 1] = '{';
      await redis.xadd(keys.audit, id, ...fields);
    }
    const broken = rows[1]![0];
    const shown = (await run('audit checkout')).stdout;
    expect(shown.match(/^r\d+/gm)).toEqual(['r3', 'r2', 'r1']);
    expect(shown).toContain(`unreadable  entry ${broken} cannot be read`);
    expect(parse((await run('audit checkout --json')).stdout)).toMatchObject({
      entries: [{ revision: 3 }, { revision: 1 }],
      unreadable: [{ limiter: 'checkout', id: broken, revision: 2 }],
    });
    expect((await run('rollback checkout 1 --yes')).code).toBe(0);
    expect(await run('rollback checkout 2 --yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('FLYBALL_E_AUDIT_BROKEN'),
    });
    expect((await run('audit verify')).stdout).toContain(broken);
  });

  test("explain of a person's verb says who wrote it; of an unknown revision what to do", async () => {
    await run('pin checkout --rate 80 --yes');
    const shown = await run('explain checkout 2');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(
      /not a decision {2}No law took it: .*\(unverified\) wrote it \(pin\)/,
    );
    expect(parse((await run('explain checkout 2 --json')).stdout)).toMatchObject({
      schema: 1,
      verdict: 'not_a_decision',
      entry: { revision: 2 },
    });
    expect(await run('explain checkout 9')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/AUDIT_NO_REVISION/),
    });
  });
});

describe('hostile data from Redis never reaches the terminal raw', { timeout: 120_000 }, () => {
  const evil = 'x\x1b]0;owned\x07\x1b[2Jy\u202ez';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
  const raw = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/;

  test('in reasons, holders, owners, names and faults, with and without --json', async () => {
    await cli(['pin', 'checkout', '--rate', '50', '--yes', '--reason', evil], { env });
    await redis.hset(keys.params, 'heldBy', evil);
    await redis.set(keys.lease, `${evil}:7`);
    await redis.hset(fleetKeys().limiters, evil, evil);
    await telemetry({ [FIELD.denied(evil)]: 5, [FIELD.offered]: 9 });
    await redis.set(
      keys.status,
      JSON.stringify({ atMs: 0, law: evil, file: evil, faults: [evil] }),
    );
    for (const args of [
      'status',
      'status checkout',
      'audit',
      'audit checkout',
      'explain checkout 2',
      'audit verify',
      'doctor',
    ]) {
      for (const json of ['', ' --json']) {
        const shown = await run(args + json);
        expect(shown.stdout, args + json).not.toMatch(raw);
        expect(shown.stderr, args + json).not.toMatch(raw);
        if (json) parse(shown.stdout);
      }
    }
    expect((await run('audit checkout')).stdout).toContain('\\x1b]0;owned\\x07');
    const unknown = await cli(['status', evil], { env });
    expect(unknown.code).toBe(64);
    expect(unknown.stderr).not.toMatch(raw);
  });
});

test('no command is a usage error with the help on stderr; --version goes to stdout', async () => {
  const bare = await cli([], { env });
  expect(bare).toMatchObject({ code: 64, stdout: '', stderr: expect.stringMatching(/^Examples:/) });
  for (const command of ['pin', 'audit', 'trip', 'explain', 'init', 'check']) {
    expect(bare.stderr).toMatch(new RegExp(`^  ${command} `, 'm'));
  }
  expect(await run('--version')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+/),
  });
});

test('a wrong word is answered with what is allowed, and with the help of its command', async () => {
  for (const [args, said] of [
    ['pin', "missing required argument 'limiter'. See flyball pin --help."],
    ['pin checkout', 'give --rate, --in-flight or both. To hold what is in force: flyball freeze'],
    ['pin checkout --rate -5', '--rate: "-5" is not a number ≥ 0.'],
    ['explain checkout x', 'revision: "x" is not a revision. Revisions are whole numbers from 1'],
    ['audit --limit 0', '--limit: "0" is not a whole number ≥ 1.'],
    ['init orders --in-flight 0', '--in-flight: "0" is not a whole number ≥ 1.'],
    ['pinn', "unknown command 'pinn' (Did you mean pin?) See flyball --help."],
  ] as const) {
    const shown = await run(args);
    expect(shown, args).toMatchObject({ code: 64, stdout: '' });
    expect(shown.stderr, args).toContain(said);
  }
});

describe('doctor', { timeout: 120_000 }, () => {
  test('finds a missing append-only file and a missing daemon, and still passes', async () => {
    const shown = await run('doctor');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^ok {4}redis +answers at redis:\/\/127\.0\.0\.1:\d+/m);
    expect(shown.stdout).toMatch(/^ok {4}version +Redis 7/m);
    expect(shown.stdout).toMatch(/^warn {2}persistence .*\n +→ Set appendonly yes/m);
    expect(shown.stdout).toMatch(/^ok {4}scripts +6 scripts load/m);
    expect(shown.stdout).toMatch(/^ok {4}rights/m);
    expect(shown.stdout).toMatch(/^warn {2}daemon +no daemon watches checkout/m);
    expect(parse((await run('doctor --json')).stdout)).toMatchObject({
      schema: 1,
      ok: true,
      failed: 0,
    });
  });

  test('eviction of params, rights that are missing and missing params fail, each with its mend', async () => {
    await redis.config('SET', 'maxmemory', '200mb');
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await redis.acl(
      'SETUSER',
      'reader',
      'on',
      '>pw',
      '~*',
      '&*',
      '+@read',
      '+@connection',
      '+info',
      '+time',
      '+eval',
      '+evalsha',
    );
    await redis.del(keys.params);
    const url = server.url.replace('//', '//reader:pw@');
    const shown = await run('doctor', { FLYBALL_REDIS_URL: url });
    expect(shown.code).toBe(1);
    expect(shown.stdout).not.toContain(':pw@');
    expect(shown.stdout).toMatch(/^fail {2}eviction +maxmemory-policy allkeys-lru can evict/m);
    expect(shown.stdout).toMatch(
      /^fail {2}rights +this user may not .*HSET.*\n +→ Use the daemon user/m,
    );
    expect(shown.stdout).toMatch(/^skip {2}scripts/m);
    expect(shown.stdout).toMatch(
      /^fail {2}limiter checkout +registered, but its params are missing/m,
    );
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    await redis.config('SET', 'maxmemory', '0');
  });

  test('Redis that does not answer is a finding with a mend, and policies are still read', async () => {
    const port = await freePort();
    const shown = await run('doctor --json', {
      FLYBALL_REDIS_URL: `redis://u:secret@127.0.0.1:${port}`,
    });
    expect(shown.code).toBe(1);
    const json = parse(shown.stdout);
    expect(json.findings.find((f: { check: string }) => f.check === 'redis')).toMatchObject({
      status: 'fail',
      mend: expect.any(String),
    });
    expect(shown.stdout + shown.stderr).not.toContain('secret');
  });
});

// Each start of a process costs about a second of a busy machine: a few stand for all.
describe('the built program', { timeout: 180_000 }, () => {
  test('changes and shows with no daemon, no terminal, no colour', async () => {
    const pin = await cliProcess(['pin', 'checkout', '--rate', '80', '--yes'], env);
    expect(pin).toMatchObject({ code: 0, stdout: expect.stringMatching(/^done {2}revision 2 /) });
    const [status, colour] = await Promise.all([
      cliProcess(['status', 'checkout'], env),
      cliProcess(['status', 'checkout'], { ...env, FORCE_COLOR: '1' }),
    ]);
    expect(status.stdout).toMatch(/rate +80\/s/);
    expect(status.stdout + pin.stdout + pin.stderr).not.toContain('\x1b');
    expect(colour.stdout).toContain('\x1b[');
  });

  test('exit codes: 64 usage, 75 Redis away with no password shown, 0 help on stdout', async () => {
    const port = await freePort();
    const [refused, away, help] = await Promise.all([
      cliProcess(['pin', 'checkout', '--rate', '80'], env),
      cliProcess(['status'], { FLYBALL_REDIS_URL: `redis://:secret@127.0.0.1:${port}` }),
      cliProcess(['pin', '--help'], env),
    ]);
    expect(refused).toMatchObject({ code: 64, stdout: '' });
    expect(away).toMatchObject({
      code: 75,
      stdout: '',
      stderr: expect.stringMatching(/FLYBALL_E_REDIS_UNREACHABLE: .*127\.0\.0\.1/),
    });
    expect(away.stderr).not.toContain('secret');
    expect(help).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^Examples:\n/),
    });
  });

  test('without FLYBALL_REDIS_URL it finds the Redis of the data folder', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'flyball-cli-'));
    try {
      const none = await cli(['status'], { env: { FLYBALL_DATA_DIR: dataDir } });
      expect(none).toMatchObject({
        code: 78,
        stderr: expect.stringMatching(/FLYBALL_E_REDIS_NOT_CONFIGURED.*FLYBALL_REDIS_URL/),
      });
      writeFileSync(
        join(dataDir, 'redis.json'),
        JSON.stringify({ schema: 1, url: server.url, socket: '', pid: 1 }),
      );
      expect((await cli(['status'], { env: { FLYBALL_DATA_DIR: dataDir } })).stdout).toMatch(
        /^checkout/m,
      );
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test('a reader that closes the pipe early is no fault', async () => {
    for (let i = 0; i < 3; i++) await run('pin checkout --rate 80 --yes');
    const child = spawn(
      '/bin/sh',
      ['-c', `"${process.execPath}" "${MAIN}" audit checkout | head -n 1`],
      { env: { ...env, PATH: process.env.PATH } },
    );
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    await new Promise((ok) => child.once('close', ok));
    expect(err).not.toMatch(/EPIPE|error:/);
  });
});
