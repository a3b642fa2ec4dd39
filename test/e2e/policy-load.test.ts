import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createPolicyFiles } from '../../src/daemon/policy-files.js';
import { formatFault } from '../../src/errors.js';
import { createLog } from '../../src/log.js';
import { type LoadOptions, loadPolicies as load } from '../../src/policy/load.js';
import { createMetrics } from '../../src/report/metrics.js';

// Each file is a process; on a busy machine that takes a while.
vi.setConfig({ testTimeout: 240_000 });
const loadPolicies = (paths: string | readonly string[], options: LoadOptions = {}) =>
  load(paths, { deadlineMs: 60_000, ...options });

// Outside the repository: `import 'flyball'` must not depend on what is installed beside the file.
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-policies-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const GOOD = `
import { definePolicy, env, postgres, telemetry } from 'flyball';
const rate: number = 100;
export default definePolicy({
  limiter: { name: 'sample', rate, capacity: 200 },
  signals: { p95: telemetry.latency('p95'), dbWait: postgres.waiting({ url: env('DATABASE_URL') }) },
  objective: { p95: { below: '250ms' } },
});
`;

function write(name: string, text: string): string {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** Faults of one file, as a person reads them, without the folder. */
async function faultsOf(name: string, text: string): Promise<string[]> {
  const path = write(name, text);
  const { loaded, faults } = await loadPolicies(path);
  expect(loaded).toEqual([]);
  return faults.map((fault) => formatFault(fault).replaceAll(`${dir}/`, ''));
}

test('a file anywhere gives plain data, its canonical JSON and hash; env stays a reference', async () => {
  const path = write('good.ts', GOOD.replace('sample', 'good'));
  process.env.DATABASE_URL = 'postgres://secret@host/db';
  const { loaded, faults } = await loadPolicies(path);
  delete process.env.DATABASE_URL;
  expect(faults).toEqual([]);
  const [{ policy, hash, json }] = loaded as [(typeof loaded)[0]];
  expect(policy.limiter).toMatchObject({ name: 'good', rate: 100, capacity: 200 });
  expect(policy.signals.p95).toEqual({ source: 'telemetry', stat: 'latency', of: 0.95 });
  expect(policy.objective.p95!.below).toBe(250);
  expect(JSON.parse(json)).toEqual(policy);
  expect(json).toContain('{"env":"DATABASE_URL"}');
  expect(json).not.toContain('secret');
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
});

test('C85: a syntax error names file and line', async () => {
  expect(await faultsOf('syntax.ts', `${GOOD}\nconst broken = ;\n`)).toEqual([
    expect.stringMatching(
      /^FLYBALL_E_POLICY_INVALID syntax\.ts:10: is not TypeScript: Unexpected token/,
    ),
  ]);
});

test('C85: a half-written file', async () => {
  expect(await faultsOf('half.ts', GOOD.slice(0, GOOD.length - 30))).toEqual([
    expect.stringMatching(
      /^FLYBALL_E_POLICY_INVALID half\.ts:\d+: is not TypeScript: .*half-written/,
    ),
  ]);
});

test('C85: an empty file, and one that exports nothing', async () => {
  const said = 'FLYBALL_E_POLICY_INVALID';
  expect(await faultsOf('empty.ts', ' \n')).toEqual([
    `${said} empty.ts: the file is empty. Write: export default definePolicy({ … })`,
  ]);
  expect(await faultsOf('none.ts', 'export const policy = {};')).toEqual([
    `${said} none.ts: the file has no default export. Write: export default definePolicy({ … })`,
  ]);
});

test('C85: the wrong type: a number, list, function, promise', async () => {
  const values = ['5', '[]', '() => ({})', 'Promise.resolve({})'];
  for (const [i, value] of values.entries()) write(`type/${i}.ts`, `export default ${value};`);
  const { loaded, faults } = await loadPolicies(join(dir, 'type'));
  expect(loaded).toEqual([]);
  expect(faults.map(({ file }) => file)).toEqual(
    values.map((_value, i) => join(dir, `type/${i}.ts`)),
  );
  for (const { message } of faults) expect(message).toMatch(/not a policy|plain data/);
});

test('C85: a field of the wrong type names file, line and field', async () => {
  const text = GOOD.replace('const rate: number = 100', "const rate = 'ten'");
  expect(await faultsOf('field.ts', text)).toEqual([
    expect.stringMatching(
      /^FLYBALL_E_POLICY_INVALID field\.ts:5: limiter\.rate is "ten", not a number/,
    ),
  ]);
  const bounds = GOOD.replace(
    'objective:',
    'bounds: {\n    rate: { min: 500, max: 900 } },\n  objective:',
  );
  expect(await faultsOf('line.ts', bounds)).toEqual([
    'FLYBALL_E_POLICY_INVALID line.ts:8: bounds.rate.min is 500 but limiter.rate is 100. Raise rate or lower min.',
  ]);
});

test('C85: a file that throws names its line and what it said', async () => {
  expect(
    await faultsOf(
      'throws.ts',
      GOOD.replace('const rate', "throw new Error('no luck');\nconst rate"),
    ),
  ).toEqual(['FLYBALL_E_POLICY_INVALID throws.ts:3: throws when it is loaded: no luck.']);
  expect(await faultsOf('rejects.ts', `await Promise.reject('flat');\n${GOOD}`)).toEqual([
    'FLYBALL_E_POLICY_INVALID rejects.ts: throws when it is loaded: flat.',
  ]);
  expect(await faultsOf('import.ts', `import './nowhere.js';\n${GOOD}`)).toEqual([
    expect.stringMatching(/throws when it is loaded: Cannot find module '\.\/nowhere\.js'/),
  ]);
  const misspelt = `import { telemetri } from 'flyball';\ntelemetri.latency('p95');\n${GOOD}`;
  expect(await faultsOf('misspelt.ts', misspelt)).toEqual([
    expect.stringMatching(/reading 'latency'.*'flyball' exports: .*definePolicy, .*telemetry, /),
  ]);
  expect(await faultsOf('bare.ts', GOOD.replace(/^import.*$/m, ''))).toEqual([
    expect.stringMatching(
      /definePolicy is not defined\. Write above it: import \{ definePolicy \} from/,
    ),
  ]);
  expect(await faultsOf('policy.yaml', 'limiter: { name: x }')).toEqual([
    expect.stringMatching(/is no TypeScript file\. A policy is a \.ts file/),
  ]);
});

test('C85: files that never return: one loops, one waits, one blocks', async () => {
  write('stuck/a.ts', `while (true) {}\n${GOOD}`);
  write('stuck/b.ts', `await new Promise((ok) => setTimeout(ok, 1e9));\n${GOOD}`);
  write(
    'stuck/c.ts',
    `import { execSync } from 'node:child_process'; execSync('sleep 20');\n${GOOD}`,
  );
  const { loaded, faults } = await loadPolicies(join(dir, 'stuck'), { deadlineMs: 3000 });
  expect(faults.map(({ file }) => file.slice(-4))).toEqual(['a.ts', 'b.ts', 'c.ts']);
  for (const { message } of faults) expect(message).toMatch(/^did not return within 3000 ms\./);
  expect(loaded).toEqual([]);
});

test('C85: a file that ends its process, or eats all memory, ends only that', async () => {
  expect(await faultsOf('exits.ts', `process.exit(0);\n${GOOD}`)).toEqual([
    expect.stringMatching(/ended its process \(exit code 0\) before it gave a policy/),
  ]);
  expect(
    await faultsOf(
      'hungry.ts',
      `const a: number[][] = [];\nfor (;;) a.push(new Array(1e6).fill(7));\n${GOOD}`,
    ),
  ).toEqual([expect.stringMatching(/ended its process \(.*\) before it gave a policy/)]);
});

test('what is no plain data is named by its field', async () => {
  const text = GOOD.replace("'250ms'", '() => 250').replace(
    'capacity: 200',
    'capacity: 200, routes: new Set()',
  );
  expect(await faultsOf('code.ts', text)).toEqual([
    expect.stringMatching(/limiter\.routes is an instance of Set: a policy is plain data/),
    expect.stringMatching(/objective\.p95\.below is a function: a policy is plain data/),
  ]);
});

test('what a file prints does not reach its reader, and a timer it leaves open does not hold it', async () => {
  const path = write(
    'noisy.ts',
    `console.log('x'.repeat(1e6)); setInterval(() => {}, 1000);${GOOD.replace('sample', 'noisy')}`,
  );
  const { loaded, faults } = await loadPolicies(path);
  expect(faults).toEqual([]);
  expect(loaded).toHaveLength(1);
});

test('C87: two files for one limiter: both are named, neither is used, the rest still loads', async () => {
  write('two/a.ts', GOOD.replace('sample', 'twice'));
  write('two/b.ts', GOOD.replace('sample', 'twice'));
  write('two/c.ts', GOOD.replace('sample', 'once'));
  const { loaded, faults } = await loadPolicies(join(dir, 'two'));
  expect(loaded.map(({ policy }) => policy.limiter.name)).toEqual(['once']);
  expect(faults.map((fault) => formatFault(fault).replaceAll(`${dir}/`, ''))).toEqual([
    'FLYBALL_E_POLICY_INVALID two/a.ts: limiter.name is "twice", and so is that of two/b.ts. One limiter has one policy: rename or remove one.',
    'FLYBALL_E_POLICY_INVALID two/b.ts: limiter.name is "twice", and so is that of two/a.ts. One limiter has one policy: rename or remove one.',
  ]);
});

test('a pipe or a folder with the name of a policy is a fault, and nobody waits for it', async () => {
  const folder = join(dir, 'odd');
  mkdirSync(join(folder, 'inner.ts'), { recursive: true });
  execFileSync('mkfifo', [join(folder, 'pipe.ts')]);
  write('odd/good.ts', GOOD);
  const { loaded, faults } = await loadPolicies(folder);
  expect(loaded).toHaveLength(1);
  expect(faults.map(({ file, message }) => [file.split('/').at(-1), message])).toEqual([
    ['inner.ts', 'is no file of text.'],
    ['pipe.ts', 'is no file of text.'],
  ]);
  const files = createPolicyFiles({
    ...{ paths: [folder], deadlineMs: 60_000 },
    ...{ log: createLog({ level: 'silent' }), metrics: createMetrics('test') },
  });
  expect(await files.load()).toHaveLength(1);
  expect(await files.poll()).toEqual([]);
});

test('faults of all files at once; a folder gives its own policy files, each once', async () => {
  write('many/good.ts', GOOD.replace('sample', 'fine'));
  write('many/bad.ts', 'export default { limiter: {} };');
  write('many/worse.ts', 'export default 5;');
  write('many/notes.md', 'not a policy');
  write('many/types.d.ts', 'export {};');
  write('many/.hidden.ts', 'throw 1;');
  write('many/below/other.ts', 'throw 1;');
  symlinkSync(join(dir, 'many/good.ts'), join(dir, 'many/same.ts'));
  const { loaded, faults } = await loadPolicies([
    join(dir, 'many'),
    join(dir, 'many/good.ts'),
    join(dir, 'gone'),
  ]);
  expect(loaded.map(({ policy }) => policy.limiter.name)).toEqual(['fine']);
  const files = faults.map((fault) => `${fault.file.replace(`${dir}/`, '')} ${fault.field}`);
  expect(files).toEqual([
    'gone ',
    'many/bad.ts limiter.name',
    'many/bad.ts limiter.rate',
    'many/bad.ts limiter.capacity',
    'many/worse.ts ',
  ]);
  mkdirSync(join(dir, 'void'));
  expect((await loadPolicies(join(dir, 'void'))).faults[0]!.message).toMatch(
    /holds no policy files.*flyball init/,
  );
});

test('a changed file is read anew', async () => {
  const path = write('changes.ts', GOOD.replace('sample', 'before'));
  const before = await loadPolicies(path);
  write('changes.ts', GOOD.replace('sample', 'after'));
  const after = await loadPolicies(path);
  expect(before.loaded[0]!.policy.limiter.name).toBe('before');
  expect(after.loaded[0]!.policy.limiter.name).toBe('after');
  expect(after.loaded[0]!.hash).not.toBe(before.loaded[0]!.hash);
});
