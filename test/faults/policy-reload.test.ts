/** C85 and its kinds under a running daemon: swaps, deletions, folders that go and come, reload by apply; nothing leaks. */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli } from '../support/cli-run.js';
import { policyText, type TestDaemon, until } from '../support/daemon.js';
import { ownBench } from '../support/daemon-bench.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
vi.setConfig({ testTimeout: 240_000 });
const owned = (owner: string) => policyText(`owner: '${owner}',`);

/** A Redis of its own, and daemons on it: these tests mostly wait, and so run side by side. */
async function open(context: TestContext) {
  const bench = await ownBench(context);
  const { redis, setup } = bench;
  const params = async () => (await readParams(redis, address)).params!;
  /** As the file of that owner is adopted, by whatever revision. */
  const adopted = (owner: string) =>
    until(`the policy of ${owner}`, async () => {
      const text = await redis.get(keys.policy);
      return text !== null && JSON.parse(text).owner === owner;
    });
  const file = (state: string) =>
    until(`its file is ${state}`, async () => {
      const text = await redis.get(keys.status);
      return text !== null && JSON.parse(text).file === state;
    });

  /** As a kubelet writes it: all files of a version in a folder, one link to that, swapped as a whole. */
  const configMap = (version: number, text: string) => {
    const folder = join(setup.policies, `..v${version}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'checkout.ts'), text);
    symlinkSync(`..v${version}`, join(setup.policies, '..data_tmp'));
    renameSync(join(setup.policies, '..data_tmp'), join(setup.policies, '..data'));
    if (version === 1) symlinkSync('..data/checkout.ts', join(setup.policies, 'checkout.ts'));
    else rmSync(join(setup.policies, `..v${version - 1}`), { recursive: true });
  };
  return { ...bench, params, adopted, file, configMap };
}

test.concurrent('C85: a ConfigMap’s swap is noticed by content; a broken one is a fault of the file, not a file that is gone', async (context) => {
  const { setup, params, adopted, configMap } = await open(context);
  configMap(1, owned('a'));
  const daemon = setup.start();
  await daemon.line('lease_taken');
  await adopted('a');
  configMap(2, owned('b'));
  await adopted('b');
  const { revision } = await params();
  configMap(3, 'export default {');
  const fault = await daemon.line('policy_fault');
  expect(fault.file).toMatch(/policies\/checkout\.ts$/);
  expect(daemon.lines.filter((line) => line.event === 'policy_file_gone')).toEqual([]);
  expect((await params()).revision).toBe(revision);
  // The same content under another version changes nothing.
  configMap(4, owned('b'));
  await daemon.line('policies_read', (line) => line.changed === 0);
  expect((await params()).revision).toBe(revision);
});

test.concurrent('C85: deleted and written again, the folder gone and back: what was adopted stays until a file says otherwise', async (context) => {
  const { redis, setup, params, adopted, file } = await open(context);
  setup.write('checkout.ts', owned('a'));
  const daemon = setup.start();
  await daemon.line('lease_taken');
  await adopted('a');
  rmSync(join(setup.policies, 'checkout.ts'));
  await daemon.line('policy_file_gone');
  await file('none');
  setup.write('checkout.ts', owned('a'));
  await file('same');
  expect((await params()).revision).toBe(1);
  rmSync(setup.policies, { recursive: true });
  await daemon.line('policy_fault', (line) => /does not exist/.test(String(line.msg)));
  await file('none');
  mkdirSync(setup.policies);
  setup.write('checkout.ts', owned('b'));
  await adopted('b');
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
});

test.concurrent('FLYBALL_RELOAD=apply: a changed file is pending until a person applies it; a new limiter begins', async (context) => {
  const { server, redis, setup, params, adopted, file } = await open(context);
  setup.write('checkout.ts', owned('a'));
  const daemon = setup.start({ FLYBALL_RELOAD: 'apply' });
  await daemon.line('lease_taken');
  await adopted('a');
  setup.write('checkout.ts', owned('b'));
  await daemon.line('policy_pending');
  await file('pending');
  setup.write(
    'search.ts',
    policyText('', "name: 'search', rate: 50, capacity: 50, inFlightMax: 9"),
  );
  await until(
    'search',
    async () => (await redis.exists(limiterKeys({ name: 'search' }).params)) === 1,
  );
  expect((await params()).revision).toBe(1);
  const env = { FLYBALL_REDIS_URL: server.url, FLYBALL_POLICY_DEADLINE_MS: '120000' };
  const applied = await cli(['apply', join(setup.policies, 'checkout.ts'), '--yes'], { env });
  expect(applied).toMatchObject({ code: 0 });
  await file('same');
  await adopted('b');
});

/** `npm run soak` takes its time. */
const LONG = process.env.SUITE_LONG !== undefined;
const RELOADS = LONG ? 1000 : 12;
const KEPT_SOURCES = 20;

test.concurrent(
  'C85: reload after reload leaves no process, no descriptor and no memory behind',
  async (context) => {
    const { redis, setup, adopted } = await open(context);
    setup.write('checkout.ts', owned('o0'));
    const daemon = setup.start();
    await daemon.line('lease_taken');
    const reload = async (i: number) => {
      setup.write('checkout.ts', owned(`o${i}`));
      await adopted(`o${i}`);
    };
    for (let i = 1; i <= 3; i++) await reload(i);
    const before = await quiet(daemon, Number.POSITIVE_INFINITY);
    for (let i = 4; i < 4 + RELOADS; i++) await reload(i);
    // What a reload that has just ended still holds is given back; what leaks never is.
    const after = await quiet(daemon, before.descriptors + 2);
    expect(after.residentMb).toBeLessThan(before.residentMb + 60);
    expect(await redis.xlen(keys.sources)).toBe(Math.min(KEPT_SOURCES, 4 + RELOADS));
  },
  LONG ? 3_600_000 : undefined,
);

/** Once nothing that was started for a reload runs any more, and so few descriptors are open. */
async function quiet({ pid }: TestDaemon, most: number) {
  const children = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
  await until('no process of a reload', () => children() === '');
  await until(`${most} descriptors at most`, () => descriptors() <= most);
  const [, pages] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ').map(Number);
  return { descriptors: descriptors(), residentMb: (pages! * 4096) / 1e6 };
}
