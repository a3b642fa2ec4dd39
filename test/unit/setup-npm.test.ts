/** Set-up of npm packages, and the tasks' manners: the version sentence, usage, clean stdout. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Machine, newMachine, runSetup } from '../support/setup-run.js';

const RUN = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url));

/** A machine with a Redis and an npm that writes down its arguments and installs what the lockfile says. */
function machineWithNpm(): Machine & { npm: string; npmCalls(): string } {
  const machine = newMachine();
  machine.program('redis-server', "echo 'Redis server v=7.2.4 sha=0'");
  const npm = join(machine.root, 'npm-cli.js');
  writeFileSync(
    npm,
    `const fs = require('fs');
     console.log('noise on stdout');
     fs.appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n');
     fs.mkdirSync('node_modules', { recursive: true });
     fs.copyFileSync('package-lock.json', 'node_modules/.package-lock.json');`,
  );
  const file = join(machine.root, 'npm-calls');
  return {
    ...machine,
    npm,
    npmCalls: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
  };
}

describe('npm packages', () => {
  test('missing: said with size and place, installed once, not again; stdout stays clean', async () => {
    const machine = machineWithNpm();
    rmSync(join(machine.root, 'node_modules'), { recursive: true });
    const env = { npm_execpath: machine.npm };
    const first = await runSetup(machine, { env });
    expect(first.stderr).toContain(`npm packages into ${machine.root}/node_modules, about 370 MB`);
    expect(first.stdout).not.toContain('noise');
    expect(first.status).toBe(0);
    expect(machine.npmCalls()).toMatch(/^ci --include=dev --include=optional .*\n$/);
    const second = await runSetup(machine, { env });
    expect(second.stderr).toBe('');
    expect(machine.npmCalls().split('\n')).toHaveLength(2);
  });

  test('a changed lockfile installs again', async () => {
    const machine = machineWithNpm();
    const env = { npm_execpath: machine.npm };
    await runSetup(machine, { env });
    expect(machine.npmCalls()).toBe('');
    const lock = { packages: { '': {}, 'node_modules/a': { version: '2.0.0' } } };
    writeFileSync(join(machine.root, 'package-lock.json'), JSON.stringify(lock));
    await runSetup(machine, { env });
    expect(machine.npmCalls()).toMatch(/^ci /);
  });

  test('a package for another system need not be there; one for this system must', async () => {
    const machine = machineWithNpm();
    const lock = (optional: object) =>
      JSON.stringify({
        packages: {
          'node_modules/a': { version: '1.0.0' },
          'node_modules/b': { version: '1.0.0', optional: true, ...optional },
        },
      });
    const env = { npm_execpath: machine.npm };
    writeFileSync(join(machine.root, 'package-lock.json'), lock({ os: ['sunos'] }));
    await runSetup(machine, { env });
    expect(machine.npmCalls()).toBe('');
    writeFileSync(join(machine.root, 'package-lock.json'), lock({ os: [process.platform] }));
    await runSetup(machine, { env });
    expect(machine.npmCalls()).toMatch(/^ci /);
  });

  test('--no-install: one sentence, exit 1, npm is not called', async () => {
    const machine = machineWithNpm();
    rmSync(join(machine.root, 'node_modules'), { recursive: true });
    const run = await runSetup(machine, { install: false, env: { npm_execpath: machine.npm } });
    expect(run.status).toBe(1);
    expect(run.stderr).toMatch(/--no-install forbids.*npm ci/);
    expect(machine.npmCalls()).toBe('');
  });

  test('an npm that fails: one sentence, exit 1', async () => {
    const machine = machineWithNpm();
    rmSync(join(machine.root, 'node_modules'), { recursive: true });
    writeFileSync(machine.npm, 'process.exit(7)');
    const run = await runSetup(machine, { env: { npm_execpath: machine.npm } });
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('`npm ci` failed (exit 7)');
  });
});

describe('run.mjs', () => {
  test('an old Node gets one sentence', () => {
    const old = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } })`;
    const run = spawnSync(process.execPath, ['--import', old, RUN, 'start'], { encoding: 'utf8' });
    expect(run.status).toBe(1);
    expect(run.stdout).toBe('');
    expect(run.stderr.split('\n')).toHaveLength(2);
    expect(run.stderr).toMatch(/needs Node 20\.19 or newer, and this is Node 18\.20\.4/);
  });

  test('an unknown task is a usage error', () => {
    const run = spawnSync(process.execPath, [RUN, 'fly'], { encoding: 'utf8' });
    expect(run.status).toBe(64);
    expect(run.stderr).toMatch(/start\|test\|bench\|soak/);
  });
});
