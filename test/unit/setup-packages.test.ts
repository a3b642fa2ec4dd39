/** Set-up of system packages: found, installed without a service, refused in one sentence. */

import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Machine, newMachine, runSetup } from '../support/setup-run.js';

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url));
const calls = (machine: Machine) =>
  existsSync(join(machine.root, 'calls')) ? readFileSync(join(machine.root, 'calls'), 'utf8') : '';
const enabled = (machine: Machine) =>
  readdirSync(join(machine.etc, 'systemd/system/multi-user.target.wants'));
const redis = (version: string) => `echo 'Redis server v=${version} sha=00000000:0'`;

describe('what is there is used', () => {
  test('a server on PATH: nothing is installed and nothing is said', async () => {
    const machine = newMachine();
    machine.withApt();
    machine.program('redis-server', redis('7.2.4'));
    const run = await runSetup(machine);
    const env = { FLYBALL_REDIS_SERVER: join(machine.bin, 'redis-server') };
    expect(run).toMatchObject({ status: 0, stderr: '', found: { env, missing: {} } });
    expect(calls(machine)).toBe('');
  });

  test('Valkey serves too', async () => {
    const machine = newMachine();
    machine.program('valkey-server', "echo 'Valkey server v=8.0.1 sha=0'");
    const { found } = await runSetup(machine);
    expect(found?.env.FLYBALL_REDIS_SERVER).toBe(join(machine.bin, 'valkey-server'));
  });

  test('one that is too old is named, and left as it is', async () => {
    const machine = newMachine();
    machine.withApt();
    machine.program('redis-server', redis('6.2.14'));
    const { found } = await runSetup(machine);
    expect(found?.missing['redis-server']).toMatch(
      /redis-server is 6\.2\.14.*needs 7\.0.*FLYBALL_REDIS_URL/,
    );
    expect(calls(machine)).toBe('');
  });

  test('FLYBALL_REDIS_SERVER that is no server is named', async () => {
    const machine = newMachine();
    const { found } = await runSetup(machine, { env: { FLYBALL_REDIS_SERVER: '/bin/true' } });
    expect(found?.missing['redis-server']).toMatch(/FLYBALL_REDIS_SERVER is \/bin\/true/);
  });
});

describe('on Debian', () => {
  test('it says what, where, how large; installs; no service runs or is enabled; stdout stays clean', async () => {
    const machine = newMachine();
    machine.withApt();
    const run = await runSetup(machine);
    expect(run.stderr).toMatch(
      /installs: redis-server for the whole system by apt-get, about 8 MB/,
    );
    expect(run.stdout).not.toContain('noise');
    expect(run.found?.missing).toEqual({});
    expect(run.found?.env.FLYBALL_REDIS_SERVER).toBe(join(machine.bin, 'redis-server'));
    expect(calls(machine)).toContain('policy 101');
    expect(calls(machine)).toContain('systemctl disable redis-server.service');
    expect(existsSync(join(machine.root, 'running'))).toBe(false);
    expect(enabled(machine)).toEqual([]);
    expect(existsSync(machine.policy)).toBe(false);
  });

  test('the policy denies only the service of this package', async () => {
    const machine = newMachine();
    machine.withApt({
      during: '$APT_INSTALL_POLICY nginx start; echo nginx $? >>$APT_INSTALL_ETC/other',
    });
    await runSetup(machine);
    expect(readFileSync(join(machine.etc, 'other'), 'utf8')).toBe('nginx 0\n');
  });

  test('a service that was enabled before stays enabled', async () => {
    const machine = newMachine();
    machine.withApt();
    const wants = join(machine.etc, 'systemd/system/multi-user.target.wants');
    symlinkSync('/lib/redis-server.service', join(wants, 'redis-server.service'));
    await runSetup(machine);
    expect(enabled(machine)).toEqual(['redis-server.service']);
  });

  test("another's policy-rc.d is left byte for byte; a service that it let start is stopped", async () => {
    const machine = newMachine();
    machine.withApt();
    writeFileSync(machine.policy, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const run = await runSetup(machine);
    expect(run.found?.missing).toEqual({});
    expect(readFileSync(machine.policy, 'utf8')).toBe('#!/bin/sh\nexit 0\n');
    expect(existsSync(join(machine.root, 'running'))).toBe(false);
    expect(enabled(machine)).toEqual([]);
  });

  test('a failed install says so, after the lists were updated, and leaves no policy', async () => {
    const machine = newMachine();
    machine.withApt({ fails: true });
    const run = await runSetup(machine);
    expect(run.found?.missing['redis-server']).toMatch(
      /redis-server failed \(exit 100\).*sudo apt-get install/,
    );
    expect(calls(machine)).toMatch(/install(.|\n)*update(.|\n)*install/);
    expect(existsSync(machine.policy)).toBe(false);
  });

  test('an older version than needed is not installed', async () => {
    const machine = newMachine();
    machine.withApt({ version: '6.0.16' });
    const { found } = await runSetup(machine);
    expect(found?.missing['redis-server']).toMatch(/redis-server is 6\.0\.16, and 7\.0 or newer/);
    expect(calls(machine)).toBe('');
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s while it installs: no policy is left',
    async (signal) => {
      const machine = newMachine();
      machine.withApt({ during: 'touch $APT_INSTALL_ETC/begun; sleep 0.3; exit 1' });
      const gone = await interrupted(machine, signal);
      expect(gone).not.toBe(0);
      expect(existsSync(machine.policy)).toBe(false);
    },
  );

  test('SIGKILL leaves a policy that allows everything, and the next set-up removes it', async () => {
    const machine = newMachine();
    machine.withApt({ during: 'touch $APT_INSTALL_ETC/begun; sleep 0.3; exit 1' });
    await interrupted(machine, 'SIGKILL');
    expect(spawnSync(machine.policy, ['redis-server', 'start']).status).toBe(0);
    machine.withApt();
    await runSetup(machine);
    expect(existsSync(machine.policy)).toBe(false);
  });
});

describe('where it may not', () => {
  test('--no-install: one sentence, nothing is called', async () => {
    const machine = newMachine();
    machine.withApt();
    const { found } = await runSetup(machine, { install: false });
    expect(found?.missing['redis-server']).toMatch(
      /--no-install.*sudo apt-get install redis-server/,
    );
    expect(calls(machine)).toBe('');
  });

  test('no package manager: one sentence', async () => {
    const { found } = await runSetup(newMachine());
    expect(found?.missing['redis-server']).toMatch(/redis-server 7\.0 or newer.*Install it/);
  });

  test('neither root nor sudo without a password: one sentence', async () => {
    const machine = newMachine();
    machine.withApt();
    machine.program('sudo', 'exit 1');
    const { found } = await runSetup(machine, { uid: 1000 });
    expect(found?.missing['redis-server']).toMatch(/neither root nor has sudo/);
    expect(calls(machine)).toBe('');
  });

  test('sudo without a password installs', async () => {
    const machine = newMachine();
    machine.withApt();
    machine.program(
      'sudo',
      `echo sudo "$@" >>${machine.root}/calls\nshift\n[ "$1" = true ] || exec "$@"`,
    );
    const { found } = await runSetup(machine, { uid: 1000 });
    expect(found?.missing).toEqual({});
    expect(calls(machine)).toMatch(/sudo -n sh .*apt-install\.sh redis-server/);
  });

  test.each([
    ['dnf', 'install -y redis'],
    ['apk', 'add redis'],
  ])('%s is asked in its own words', async (tool, words) => {
    const machine = newMachine();
    machine.program(
      tool,
      `echo "$@" >>${machine.root}/calls\nprintf '#!/bin/sh\\n${redis('7.4.0').replaceAll("'", '')}\\n' >${machine.bin}/redis-server\nchmod 755 ${machine.bin}/redis-server`,
    );
    const { found } = await runSetup(machine);
    expect(found?.missing).toEqual({});
    expect(calls(machine)).toBe(`${words}\n`);
  });

  test('Homebrew does not run as root', async () => {
    const machine = newMachine();
    machine.program('brew', `echo "$@" >>${machine.root}/calls`);
    const { found } = await runSetup(machine);
    expect(found?.missing['redis-server']).toMatch(/brew refuses to run as root/);
    expect(calls(machine)).toBe('');
  });
});

/** Signals the shell that installs while apt-get runs; resolves to its exit code once all has ended. */
async function interrupted(machine: Machine, signal: NodeJS.Signals): Promise<number | null> {
  mkdirSync(machine.etc, { recursive: true });
  const child = spawn('sh', [join(SCRIPTS, 'apt-install.sh'), 'redis-server'], {
    env: machine.env,
    stdio: 'ignore',
  });
  const gone = new Promise<number | null>((ok) => child.once('exit', ok));
  await expect.poll(() => existsSync(join(machine.etc, 'begun')), { timeout: 20_000 }).toBe(true);
  expect(existsSync(machine.policy)).toBe(true);
  child.kill(signal);
  return gone;
}
