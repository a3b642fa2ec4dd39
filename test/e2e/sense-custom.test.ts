import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { fileWithCode } from '../../src/policy/code.js';
import { loadPolicies } from '../../src/policy/load.js';
import { policySchema } from '../../src/policy/schema.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen } from '../../src/sense/source.js';
import { createSource, type SourcedSignal, sourceKey } from '../../src/sense/sources.js';

let dir: string;
const ending: (() => unknown)[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-custom-'));
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
  rmSync(dir, { recursive: true, force: true });
});

/** Writes a policy with these signals, loads it as the daemon does, and gives its source. */
async function loaded(signals: string) {
  const path = join(dir, 'checkout.ts');
  writeFileSync(
    path,
    `import { custom, definePolicy } from 'flyball';
import { spawn } from 'node:child_process';
import { writeFileSync, existsSync } from 'node:fs';
let calls = 0;
export default definePolicy({
  limiter: { name: 'checkout', rate: 100, capacity: 200 },
  signals: { ${signals} },
});`,
  );
  const { loaded: policies, faults } = await loadPolicies(path, { deadlineMs: 50_000 });
  expect(faults).toEqual([]);
  // As it comes back from Redis: only what JSON keeps.
  const policy = policySchema.parse(JSON.parse(policies[0]!.json));
  const found = policy.signals as Record<string, SourcedSignal>;
  const open = (policyFile: (code: string) => string | null) => {
    const source = createSource(Object.values(found)[0]!, {
      env: { ...process.env, DEPTH: '42' },
      clock: systemClock,
      log: pino({ level: 'silent' }),
      policyFile,
    });
    ending.push(() => source.close());
    const look = async (): Promise<Record<string, Seen | Missing>> => {
      const seen = await source.look(Object.values(found));
      return Object.fromEntries(
        Object.entries(found).map(([name, signal]) => [name, seen.get(signal)!]),
      );
    };
    return { look, close: () => source.close() };
  };
  return { path, found, open, ...open((code) => fileWithCode([{ file: path, policy }], code)) };
}

type Loaded = Awaited<ReturnType<typeof loaded>>;

/** Its process has to start; what is tested begins when it has. */
async function started({ look }: Pick<Loaded, 'look'>): Promise<Record<string, Seen | Missing>> {
  for (;;) {
    const seen = await look();
    const first = Object.values(seen)[0]!;
    if (first.kind === 'value' || first.reason !== 'not_started') return seen;
    await setTimeout(20);
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('numbers come from functions of the file in a process of its own; what is none, throws or is late is missing alone', async () => {
  const from = await loaded(`
    good: custom(() => 7),
    depth: custom(async ({ env }) => Number(env.DEPTH)),
    wait: custom(() => 0.25, { unit: 'seconds' }),
    pid: custom(() => process.pid),
    calls: custom(() => ++calls),
    text: custom(() => 'seven' as never),
    none: custom(() => undefined as never),
    nan: custom(() => Number.NaN),
    below: custom(() => -1),
    huge: custom(() => 1 / 0),
    throws: custom(() => { throw new TypeError('no such queue'); }),
    odd: custom(() => { throw Object.create(null); }),
    rejects: custom(async () => { throw new Error('x'.repeat(5000)); }),
    late: custom(() => new Promise<number>(() => {}), { deadlineMs: 100 }),`);
  // The policy holds a reference: the name, and a hash of the file's text.
  expect(from.found.depth).toEqual({
    source: 'custom',
    stat: 'function',
    function: 'depth',
    code: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  expect(new Set(Object.values(from.found).map((signal) => sourceKey(signal, {}))).size).toBe(1);

  const seen = await started(from);
  expect(seen.depth).toMatchObject({ kind: 'value', value: 42, count: 1 });
  expect(seen.wait).toMatchObject({ value: 250 });
  const { value: pid } = seen.pid as Seen;
  expect(pid).not.toBe(process.pid);
  const why = Object.fromEntries(
    Object.entries(seen).map(([name, each]) => [
      name,
      each.kind === 'missing' ? `${each.reason}: ${each.detail}` : 'a value',
    ]),
  );
  expect(why).toMatchObject({
    good: 'a value',
    text: 'error: the function failed: it gave string, not a number',
    none: 'error: the function failed: it gave undefined, not a number',
    nan: 'not_finite: it gives NaN',
    below: expect.stringContaining('not_finite: it gives -1'),
    huge: 'not_finite: it gives Infinity',
    throws: 'error: the function failed: TypeError: no such queue',
    odd: 'error: the function failed: something that cannot be shown',
    late: 'timeout: the function did not answer within 100 ms',
  });
  expect(why.rejects!.length).toBeLessThan(300);

  const later = await from.look();
  // It is the same process, and keeps what it remembers.
  expect(later.pid).toMatchObject({ value: pid });
  expect((later.calls as Seen).value).toBe((seen.calls as Seen).value + 1);
  await from.close();
  await expect.poll(() => isThere(pid)).toBe(false);
});

test('one that blocks its process is killed, and another process begins', async () => {
  const mark = join(dir, 'mark');
  const from = await loaded(`
    depth: custom(() => {
      if (!existsSync(${JSON.stringify(mark)})) {
        writeFileSync(${JSON.stringify(mark)}, String(process.pid));
        for (;;);
      }
      return 5;
    }),`);
  const reasons = new Set<string>();
  await expect
    .poll(
      async () => {
        const { depth } = await from.look();
        if (depth!.kind === 'missing') reasons.add(depth!.reason);
        return depth!.kind;
      },
      { timeout: 50_000 },
    )
    .toBe('value');
  expect(reasons).toContain('timeout');
  expect(isThere(Number(readFileSync(mark, 'utf8')))).toBe(false);
});

test('what a function sends on our channel, prints or breaks in its process is no harm', async () => {
  const from = await loaded(`
    good: custom(() => 7),
    nothing: custom(() => {
      for (const odd of [null, 'x', { kind: 'results', id: 1 }]) process.send!(odd);
      return 1;
    }),
    forged: custom(() => {
      for (let id = 0; id < 50; id++) process.send!({ kind: 'results', id, results: null });
      return 2;
    }),
    prints: custom(() => { process.stdout.write('x'.repeat(1e6)); console.error('y'); return 3; }),
    big: custom(() => 5n as never),
    twice: custom(() => Promise.resolve(Promise.resolve(4))),
    symbol: custom(() => { throw Symbol('no'); }),`);
  const seen = await started(from);
  expect(seen).toMatchObject({
    good: { value: 7 },
    nothing: { value: 1 },
    forged: { value: 2 },
    prints: { value: 3 },
    big: { reason: 'error', detail: expect.stringContaining('bigint') },
    twice: { value: 4 },
    symbol: { reason: 'error', detail: expect.stringContaining('Symbol(no)') },
  });
});

test('processes that a function starts end with its own', async () => {
  const from = await loaded(`
    started: custom(() => spawn('sleep', ['600'], { stdio: 'ignore' }).pid!),
    ends: custom(() => { setTimeout(() => process.exit(3), 10); return 1; }),`);
  const seen = await started(from);
  const ofFirst = (seen.started as Seen).value;
  // Its own process ends by itself: the group has no leader any more.
  await expect.poll(() => isThere(ofFirst), { timeout: 20_000 }).toBe(false);
  await from.close();
});

test('one that takes all memory is missing, and its process ends', async () => {
  const from = await loaded(`
    leak: custom(() => {
      const kept: number[][] = [];
      for (;;) kept.push(new Array(1e6).fill(1));
    }),`);
  expect((await started(from)).leak).toMatchObject({ kind: 'missing' });
  await expect
    .poll(async () => (await from.look()).leak, { timeout: 40_000 })
    .toMatchObject({ detail: expect.stringMatching(/its process ended|blocked its process/) });
});

test('without the file, or with another version of it, it is missing and says what to do', async () => {
  const { path, open } = await loaded('depth: custom(() => 1)');
  expect((await open(() => null).look()).depth).toMatchObject({
    reason: 'error',
    detail: expect.stringContaining('no policy file with it'),
  });
  writeFileSync(path, `${readFileSync(path, 'utf8')}\n// more`);
  const changed = open(() => path);
  await expect
    .poll(async () => (await changed.look()).depth, { timeout: 40_000 })
    .toMatchObject({ reason: 'error', detail: expect.stringContaining('not the text any more') });
});
