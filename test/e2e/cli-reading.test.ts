/** What all reading commands share: hostile data, usage errors, and the built program as its own process. */
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fleetKeys } from '../../src/redis/keys.js';
import { FIELD } from '../../src/redis/telemetry-fields.js';
import { cli, cliProcess, MAIN } from '../support/cli-run.js';
import { keys, readingRig } from '../support/reading-rig.js';
import { freePort } from '../support/redis-server.js';

const rig = readingRig();
const parse = (text: string) => JSON.parse(text);

describe('hostile data from Redis never reaches the terminal raw', { timeout: 120_000 }, () => {
  const evil = 'x\x1b]0;owned\x07\x1b[2Jy\u202ez';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
  const raw = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/;

  test('in reasons, holders, owners, names and faults, with and without --json', async () => {
    await cli(['pin', 'checkout', '--rate', '50', '--yes', '--reason', evil], { env: rig.env });
    await rig.redis.hset(keys.params, 'heldBy', evil);
    await rig.redis.set(keys.lease, `${evil}:7`);
    await rig.redis.hset(fleetKeys().limiters, evil, evil);
    await rig.telemetry({ [FIELD.denied(evil)]: 5, [FIELD.offered]: 9 });
    await rig.redis.set(
      keys.status,
      JSON.stringify({ atMs: 0, law: evil, file: evil, faults: [evil] }),
    );
    for (const args of [
      'status',
      'status checkout',
      'audit',
      'audit checkout',
      'audit --entries --diff',
      'audit checkout --episode 2',
      'audit --actor unverified',
      'explain checkout 2',
      'audit verify',
      'doctor',
    ]) {
      for (const json of ['', ' --json']) {
        const shown = await rig.run(args + json);
        expect(shown.stdout, args + json).not.toMatch(raw);
        expect(shown.stderr, args + json).not.toMatch(raw);
        if (json) parse(shown.stdout);
      }
    }
    expect((await rig.run('audit checkout --entries')).stdout).toContain('\\x1b]0;owned\\x07');
    const unknown = await cli(['status', evil], { env: rig.env });
    expect(unknown.code).toBe(64);
    expect(unknown.stderr).not.toMatch(raw);
  });
});

test('no command is a usage error with the help on stderr; --version goes to stdout', async () => {
  const bare = await cli([], { env: rig.env });
  expect(bare).toMatchObject({ code: 64, stdout: '', stderr: expect.stringMatching(/^Examples:/) });
  for (const command of ['pin', 'audit', 'trip', 'explain', 'init', 'check']) {
    expect(bare.stderr).toMatch(new RegExp(`^  ${command} `, 'm'));
  }
  expect(await rig.run('--version')).toMatchObject({
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
    const shown = await rig.run(args);
    expect(shown, args).toMatchObject({ code: 64, stdout: '' });
    expect(shown.stderr, args).toContain(said);
  }
});

// Each start of a process costs about a second of a busy machine: a few stand for all.
describe('the built program', { timeout: 180_000 }, () => {
  test('changes and shows with no daemon, no terminal, no colour', async () => {
    const pin = await cliProcess(['pin', 'checkout', '--rate', '80', '--yes'], rig.env);
    expect(pin).toMatchObject({ code: 0, stdout: expect.stringMatching(/^done {2}revision 2 /) });
    const [status, colour] = await Promise.all([
      cliProcess(['status', 'checkout'], rig.env),
      cliProcess(['status', 'checkout'], { ...rig.env, FORCE_COLOR: '1' }),
    ]);
    expect(status.stdout).toMatch(/rate +80\/s/);
    expect(status.stdout + pin.stdout + pin.stderr).not.toContain('\x1b');
    expect(colour.stdout).toContain('\x1b[');
  });

  test('exit codes: 64 usage, 75 Redis away with no password shown, 0 help on stdout', async () => {
    const port = await freePort();
    const [refused, away, help] = await Promise.all([
      cliProcess(['pin', 'checkout', '--rate', '80'], rig.env),
      cliProcess(['status'], { FLYBALL_REDIS_URL: `redis://:secret@127.0.0.1:${port}` }),
      cliProcess(['pin', '--help'], rig.env),
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
        JSON.stringify({ schema: 1, url: rig.server.url, socket: '', pid: 1 }),
      );
      expect((await cli(['status'], { env: { FLYBALL_DATA_DIR: dataDir } })).stdout).toMatch(
        /^checkout/m,
      );
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test('a reader that closes the pipe early is no fault', async () => {
    for (let i = 0; i < 3; i++) await rig.run('pin checkout --rate 80 --yes');
    const child = spawn(
      '/bin/sh',
      ['-c', `"${process.execPath}" "${MAIN}" audit checkout | head -n 1`],
      { env: { ...rig.env, PATH: process.env.PATH } },
    );
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    await new Promise((ok) => child.once('close', ok));
    expect(err).not.toMatch(/EPIPE|error:/);
  });

  test('a result that cannot be written does not pass for one that was', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'flyball-out-')), 'out');
    writeFileSync(file, '');
    // As a full disk: each write is refused.
    const readOnly = openSync(file, 'r');
    try {
      const child = spawn(process.execPath, [MAIN, 'status', '--json'], {
        env: { ...rig.env, PATH: process.env.PATH },
        stdio: ['ignore', readOnly, 'pipe'],
      });
      let err = '';
      child.stderr!.on('data', (chunk) => {
        err += chunk;
      });
      const code = await new Promise((ok) => child.once('close', ok));
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/^error: FLYBALL_E_CLI_OUTPUT: .*EBADF/),
      ]);
    } finally {
      closeSync(readOnly);
      rmSync(join(file, '..'), { recursive: true, force: true });
    }
  });
});
