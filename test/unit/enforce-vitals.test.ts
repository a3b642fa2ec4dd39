import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { containerFiles } from '../../src/enforce/container-files.js';
import { createVitals } from '../../src/enforce/vitals.js';
import { until } from '../support/sdk-params.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-cgroup-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A machine's files, and which group the process is in. */
function machine(self: string, files: Record<string, string>) {
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  };
  write('self', self);
  for (const [name, text] of Object.entries(files)) write(`cgroup/${name}`, text);
  return { files: containerFiles(join(dir, 'cgroup'), join(dir, 'self')), write };
}

const found = (files: ReturnType<typeof containerFiles>) => [
  files.cores(),
  files.cpuMs(),
  files.memoryLimit(),
  files.memoryUsed(),
];

test('cgroup version 2: quota over period, usage, and memory without the cache that gives way', () => {
  const { files } = machine('0::/\n', {
    'cgroup.controllers': 'cpu memory',
    'cpu.max': '150000 100000\n',
    'cpu.stat': 'usage_usec 2500000\nuser_usec 1\n',
    'memory.max': '1000000\n',
    'memory.current': '600000\n',
    'memory.stat': 'anon 1\ninactive_file 200000\nactive_file 7\n',
  });
  expect(found(files)).toEqual([1.5, 2500, 1_000_000, 400_000]);
});

test('the tightest limit on the way up binds, and the usage is that of its group', () => {
  const { files } = machine('0::/pods/one/app\n', {
    'cgroup.controllers': '',
    'pods/cpu.max': '400000 100000',
    'pods/one/cpu.max': '50000 100000',
    'pods/one/cpu.stat': 'usage_usec 7000\n',
    'pods/one/app/cpu.max': 'max 100000',
    'pods/one/app/cpu.stat': 'usage_usec 1000\n',
    'pods/one/app/memory.max': 'max',
  });
  expect(found(files)).toEqual([0.5, 7, null, null]);
});

test('cgroup version 1, and its way to say that there is no limit', () => {
  const self = '12:memory:/app\n5:cpu,cpuacct:/app\n';
  const { files, write } = machine(self, {
    'cpu/app/cpu.cfs_quota_us': '200000\n',
    'cpu/app/cpu.cfs_period_us': '100000\n',
    'cpuacct/app/cpuacct.usage': '3000000000\n',
    'memory/app/memory.limit_in_bytes': '1000000\n',
    'memory/app/memory.usage_in_bytes': '500000\n',
    'memory/app/memory.stat': 'total_inactive_file 100000\n',
  });
  expect(found(files)).toEqual([2, 3000, 1_000_000, 400_000]);
  write('cgroup/cpu/app/cpu.cfs_quota_us', '-1\n');
  write('cgroup/memory/app/memory.limit_in_bytes', '9223372036854771712\n');
  const again = containerFiles(join(dir, 'cgroup'), join(dir, 'self'));
  expect(found(again)).toEqual([null, null, null, null]);
});

test('no cgroup at all, and files of no sense, set no limit', () => {
  expect(found(containerFiles(join(dir, 'nowhere'), join(dir, 'nothing')))).toEqual([
    null,
    null,
    null,
    null,
  ]);
  const { files } = machine('0::/../../etc\n', {
    'cgroup.controllers': '',
    'cpu.max': 'garbage',
    'memory.max': '-5',
  });
  expect(found(files)).toEqual([null, null, null, null]);
});

test('shares are of what may be used since the last look; within a second the answer is the same', () => {
  let usedMs = 1000;
  const vitals = createVitals({
    cores: () => 2,
    cpuMs: () => usedMs,
    memoryLimit: () => 1000,
    memoryUsed: () => 250,
  });
  expect(vitals.take(0)).toBeNull();
  usedMs += 500;
  const first = vitals.take(1000);
  expect(first).toMatchObject({ cpu: 0.25, memory: 0.25 });
  expect(first!.loopDelayMs).toBeGreaterThanOrEqual(0);
  expect(vitals.take(1500)).toBe(first);
  usedMs += 4000;
  // More than allowed for a while: a container may burst.
  expect(vitals.take(2000)).toMatchObject({ cpu: 2 });
});

test('without limits it is the process against the machine', async () => {
  const vitals = createVitals(containerFiles(join(dir, 'nowhere'), join(dir, 'nothing')));
  vitals.take(0);
  let seen = vitals.take(1000)!;
  let atMs = 1000;
  // A loop that stands still is seen at the first beat after it.
  await until('the delay of the loop', async () => {
    await new Promise((ok) => setTimeout(ok, 60));
    const untilMs = performance.now() + 150;
    while (performance.now() < untilMs);
    await new Promise((ok) => setTimeout(ok, 60));
    atMs += 1000;
    seen = vitals.take(atMs)!;
    return seen.loopDelayMs > 50;
  });
  expect(seen.cpu).toBeGreaterThan(0);
  expect(seen.memory).toBeCloseTo(process.memoryUsage.rss() / totalmem(), 1);
});
