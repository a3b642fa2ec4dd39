import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { register as registerCheck } from '../../src/cli/check.js';
import { createIo } from '../../src/cli/output.js';

// Each file is a process; on a busy machine that takes a while.
vi.setConfig({ testTimeout: 180_000 });

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-check-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** One command line, as the program runs it; `--json` is a flag of the program. */
async function flyball(args: string[], env: NodeJS.ProcessEnv = {}) {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const io = createIo({ stdin: new PassThrough(), stdout, stderr, env });
  io.flags.json = args.includes('--json');
  const program = new Command('flyball').exitOverride();
  registerCheck(program, io);
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr() {} });
  let code: number;
  try {
    await program.parseAsync(
      args.filter((arg) => arg !== '--json'),
      { from: 'user' },
    );
    code = io.exitCode;
  } catch (error) {
    code = io.fail(error);
  }
  return { code, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') };
}

function write(name: string, text: string): string {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const good = (name: string) => `import { definePolicy } from 'flyball';
export default definePolicy({ limiter: { name: '${name}', rate: 100, capacity: 200 } });
`;

test('valid policies: a table, exit 0', async () => {
  const path = write('fine/shop.ts', good('shop'));
  const { code, out, err } = await flyball(['check', path]);
  expect(code).toBe(0);
  expect(out).toMatch(/shop\.ts +shop +recommend +fixed +100\/s +200 +no cap +[0-9a-f]{12}/);
  expect(err).toBe('1 valid policy.\n');
});

test('every fault of every file at once on stderr, exit 78; the valid ones are still shown', async () => {
  write('mixed/a.ts', good('shop'));
  write(
    'mixed/b.ts',
    'export default { limiter: { name: "b", rate: "10/s", burst: 3, capacity: 5 } };',
  );
  write('mixed/c.ts', 'export default {');
  const { code, out, err } = await flyball(['check', join(dir, 'mixed')]);
  expect(code).toBe(78);
  expect(out).toContain('a.ts');
  const lines = err.trim().split('\n');
  expect(lines).toEqual([
    expect.stringMatching(
      /^FLYBALL_E_POLICY_INVALID .*b\.ts:1: limiter\.rate is "10\/s", not a number/,
    ),
    expect.stringMatching(
      /^FLYBALL_E_POLICY_INVALID .*b\.ts:1: limiter\.burst is not our word\. Say capacity/,
    ),
    expect.stringMatching(/^FLYBALL_E_POLICY_INVALID .*c\.ts:1: is not TypeScript/),
    '1 valid policy, 3 faults.',
  ]);
});

test('--json: one object with all of it', async () => {
  const { code, out, err } = await flyball(['check', join(dir, 'mixed'), '--json']);
  expect(code).toBe(78);
  expect(err).toBe('');
  expect(JSON.parse(out)).toMatchObject({
    schema: 1,
    valid: false,
    policies: [
      {
        limiter: 'shop',
        mode: 'recommend',
        rate: 100,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ],
    faults: [
      {
        field: 'limiter.rate',
        line: 1,
        message: expect.any(String),
        file: expect.stringMatching(/b\.ts$/),
      },
      { field: 'limiter.burst' },
      { field: '' },
    ],
  });
});

test('--live with a fault says nothing of the signals that it could not read', async () => {
  const { code, out, err } = await flyball([
    'check',
    '--live',
    write('half.ts', 'export default {'),
  ]);
  expect(code).toBe(78);
  expect(out).toBe('');
  expect(err).not.toMatch(/No signal/);
  const none = await flyball(['check', '--live', write('none/shop.ts', good('shop'))]);
  expect(none.err).toMatch(/No signal is read outside the telemetry/);
});

test('a file that never returns is a fault after the deadline', async () => {
  const path = write('slow.ts', 'for (;;) {}');
  const { code, err } = await flyball(['check', path, '--deadline', '1500']);
  expect(code).toBe(78);
  expect(err).toContain('did not return within 1500 ms');
});

test('without paths: FLYBALL_POLICIES', async () => {
  const { code, out } = await flyball(['check'], { FLYBALL_POLICIES: join(dir, 'fine') });
  expect(code).toBe(0);
  expect(out).toContain('shop');
});

test('a deadline that is no time is a usage error', async () => {
  const { code } = await flyball(['check', dir, '--deadline', '5s']);
  expect(code).not.toBe(0);
});

test('limiters that add up to more than their downstream leaves: a warning, at exit 0', async () => {
  for (const [name, rate] of [
    ['orders', 100],
    ['refunds', 90],
  ] as const) {
    write(
      `downstream/${name}.ts`,
      `import { definePolicy, downstream } from 'flyball';
export default definePolicy({
  limiter: { name: '${name}', rate: ${rate}, capacity: 10, downstream: downstream('orders-db', { capacity: 200 }) },
});
`,
    );
  }
  const folder = join(dir, 'downstream');
  const { code, err } = await flyball(['check', folder]);
  expect(code).toBe(0);
  expect(err).toContain(
    'Warning: downstream orders-db: the rates of its limiters (orders 100, refunds 90) add up to 190',
  );
  const { warnings } = JSON.parse((await flyball(['check', folder, '--json'])).out);
  expect(warnings[0]).toContain('above the 160 tokens a second that it leaves');
});
