/** Daemons that export audit logs: killed in the middle of a line, on a full disk, two to one folder. Nothing is lost, nothing is there twice. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { change, files, keyPair, proof } from '../support/audit-rig.js';
import { type DaemonSetup, policyText, type TestDaemon, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import { tempFolder } from '../support/temp-folder.js';

vi.setConfig({ testTimeout: 120_000 });
const { audit } = limiterKeys({ name: 'checkout' });
const pair = keyPair();
let redis: Redis;
let setup: DaemonSetup;
let folder: string;

daemonBench((bench) => {
  ({ redis, setup } = bench);
  setup.write('checkout.ts', policyText());
  folder = join(setup.dir, 'audit');
  writeFileSync(join(setup.dir, 'audit.key'), pair.secret);
});

function start(name: string): TestDaemon {
  return setup.start({
    FLYBALL_NAME: name,
    FLYBALL_AUDIT_FILE: folder,
    FLYBALL_AUDIT_KEY_FILE: join(setup.dir, 'audit.key'),
  });
}

/** All that Redis holds is in the folder, once. */
async function exported() {
  return until('all entries are exported', async () => {
    const entries = await redis.xlen(audit);
    const report = await proof(folder, pair.open).catch(() => null);
    if (report === null) return false;
    const { fault, torn, limiters } = report;
    const whole = fault === undefined && torn === undefined && limiters[0]?.verdict !== 'broken';
    return whole && limiters[0]?.entries === entries && limiters[0];
  });
}

async function adopted() {
  await until('the policy is adopted', async () => (await redis.exists(audit)) === 1);
}

test('C93: killed with -9 while it writes, again and again: the next one goes on, and the log is whole', async () => {
  let daemon = start('a');
  await adopted();
  for (let round = 0; round < 3; round++) {
    // Large entries, so that the kill may well fall into a line.
    for (let i = 0; i < 30; i++) await change(redis, { text: 'x'.repeat(60_000) });
    // A first line, the adoption, and a large one at least: first lines come whole, under another name until then.
    await until('it has begun to write', () => exportedLines() > 3 + round * 30);
    daemon.signal('SIGKILL');
    await daemon.exited;
    if (round === 0) {
      // As a kill in the middle of a write leaves it.
      const file = join(folder, files(folder).at(-1)!);
      const text = readFileSync(file);
      writeFileSync(file, text.subarray(0, text.length - 1000));
    }
    // The lease of the dead one lapses first.
    daemon = start('a');
  }
  const mended = daemon.line('audit_exporting');
  await mended;
  expect(await exported()).toMatchObject({ repeated: 0, gaps: [] });
});

function exportedLines(): number {
  if (!existsSync(folder)) return 0;
  return files(folder).reduce(
    (n, file) => n + readFileSync(join(folder, file), 'utf8').split('\n').length,
    0,
  );
}

interface Disk {
  fill(daemon: TestDaemon): void;
  free(daemon: TestDaemon): void;
}

/** The kernel takes a part of a write and refuses the rest, for this process alone. */
const limited: Disk = {
  fill: ({ pid }) => execFileSync('prlimit', ['--pid', String(pid), '--fsize=100000:unlimited']),
  free: ({ pid }) => execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited']),
};

/** A file system of its own that is really full. */
const small: Disk = {
  fill() {
    execFileSync('mount', ['-o', 'remount,size=160k', folder]);
  },
  free() {
    execFileSync('mount', ['-o', 'remount,size=16m', folder]);
  },
};

/** Only root may. */
function mountSmall(at: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', at]).status === 0;
}

function mayMount(): boolean {
  const at = tempFolder('mount');
  return mountSmall(at) && spawnSync('umount', [at]).status === 0;
}

const DISKS: [string, Disk][] = [['a limit of its files', limited]];
if (mayMount()) DISKS.push(['a small file system', small]);

afterEach(() => {
  // None is mounted there, most often.
  spawnSync('umount', ['--lazy', folder]);
});

test.each(DISKS)(
  'a full disk (%s): told in log, health and metrics, tried again, and nothing lost once there is room',
  async (_, disk) => {
    if (disk === small) {
      mkdirSync(folder);
      expect(mountSmall(folder)).toBe(true);
    }
    const daemon = start('a');
    await adopted();
    await exported();
    disk.fill(daemon);
    for (let i = 0; i < 6; i++) await change(redis, { text: 'x'.repeat(50_000) });
    const { msg } = await daemon.line('audit_export_failed');
    expect(msg).toContain('Redis holds them meanwhile');
    expect(msg).toContain(disk === small ? 'ENOSPC' : 'EFBIG');
    const http = await daemon.http();
    const health = async () => (await fetch(`${http}/healthz?verbose`)).text();
    expect(
      await until('health says so', async () => /\[-] audit export: file: .+/.exec(await health())),
    ).toBeTruthy();
    const metrics = await (await fetch(`${http}/metrics`)).text();
    expect(metrics).toMatch(/audit_export_failures_total\{exporter="file"\} [1-9]/);
    disk.free(daemon);
    await daemon.line('audit_export_recovered');
    expect(await exported()).toMatchObject({ gaps: [], repeated: 0 });
    expect(await health()).toContain('[+] audit export ok');
  },
);

test('two daemons, one folder: one exports, the other goes on when it is gone; a clean stop leaves a signed head', async () => {
  const daemons = [start('a'), start('b')];
  await adopted();
  const writing = await until('one exports', () =>
    daemons.find(({ lines }) => lines.some(({ event }) => event === 'audit_exporting')),
  );
  const other = daemons.find((daemon) => daemon !== writing)!;
  await change(redis);
  await exported();
  expect(other.lines.some(({ event }) => event === 'audit_exporting')).toBe(false);
  writing.signal('SIGTERM');
  expect(await writing.exited).toMatchObject({ code: 0 });
  await other.line('audit_exporting');
  await change(redis);
  await exported();
  other.signal('SIGTERM');
  await other.exited;
  expect(await exported()).toMatchObject({
    verdict: 'proven',
    proven: { since: 0 },
    repeated: 0,
    gaps: [],
  });
});

test('a place that cannot be used stops the start, and names the setting', async () => {
  const file = join(setup.dir, 'audit.key');
  for (const [env, text] of [
    [{ FLYBALL_AUDIT_FILE: file }, 'FLYBALL_E_AUDIT_FOLDER'],
    [{ FLYBALL_AUDIT_KEY_FILE: join(setup.dir, 'none') }, 'FLYBALL_E_AUDIT_KEY'],
    [
      { FLYBALL_AUDIT_KEEP: '500', FLYBALL_AUDIT_KEEP_MOST: '400' },
      'FLYBALL_AUDIT_KEEP_MOST is 400',
    ],
  ] as const) {
    const daemon = setup.start(env);
    expect(await daemon.exited, daemon.stderr()).toMatchObject({ code: 78 });
    expect(daemon.stderr()).toContain(text);
  }
});
