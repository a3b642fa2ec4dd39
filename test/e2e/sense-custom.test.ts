import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { loadPolicies } from '../../src/policy/load.js';
import { policySchema } from '../../src/policy/schema.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen, Source } from '../../src/sense/source.js';
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
async function loaded(signals: string, options: { file?: string | null } = {}) {
  const path = join(dir, 'checkout.ts');
  writeFileSync(
    path,
    `import { custom, definePolicy } from 'flyball';
import { writeFileSync, readFileSync, existsSync } from 'node:fs';
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
  const asked: string[] = [];
  const source: Source = createSource(Object.values(found)[0]!, {
    env: { ...process.env, DEPTH: '42' },
    clock: systemClock,
    log: pino({ level: 'silent' }),
    policyFile: (code) => {
      asked.push(code);
      return options.file === undefined ? path : options.file;
    },
  });
  ending.push(() => source.close());
  return {
    path,
    policy,
    asked,
    source,
    async look(): Promise<Record<string, Seen | Missing>> {
      const look = await source.look(Object.values(found));
      return Object.fromEntries(
        Object.entries(found).map(([name, signal]) => [name, look.get(signal)!]),
      );
    },
  };
}

type Loaded = Awaited<ReturnType<typeof loaded>>;

/** Its process has to start; what is tested begins when it has. */
async function started({ look }: Loaded): Promise<Record<string, Seen | Missing>> {
  for (;;) {
    const seen = await look();
    const first = Object.values(seen)[0]!;
    if (first.kind === 'value' || first.reason !== 'not_started') return seen;
    await setTimeout(20);
  }
}

test('numbers come from functions of the file, in a process of its own, with the daemon’s environment', async () => {
  const from = await loaded(`
    depth: custom(async ({ env }) => Number(env.DEPTH)),
    wait: custom(() => 0.25, { unit: 'seconds' }),
    pid: custom(() => process.pid),
    calls: custom(() => ++calls),`);
  const seen = await started(from);
  expect(seen.depth).toMatchObject({ kind: 'value', value: 42, count: 1 });
  expect(seen.wait).toMatchObject({ value: 250 });
  expect((seen.pid as Seen).value).not.toBe(process.pid);
  const later = await from.look();
  // It is the same process, and keeps what it remembers.
  expect(later.pid).toMatchObject({ value: (seen.pid as Seen).value });
  expect((later.calls as Seen).value).toBe((seen.calls as Seen).value + 1);
});

test('the policy holds a reference: the name and a hash of the file, which a changed function changes', async () => {
  const one = await loaded('depth: custom(() => 1)');
  const { depth } = one.policy.signals;
  expect(depth).toEqual({
    source: 'custom',
    stat: 'function',
    function: 'depth',
    code: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  const other = await loaded('depth: custom(() => 2)');
  expect(other.policy.signals.depth).not.toEqual(depth);
  const keys = [one, other].map(({ policy }) =>
    sourceKey(policy.signals.depth as SourcedSignal, {}),
  );
  expect(keys[0]).not.toBe(keys[1]);
});

test('what is no number, throws or is late is missing, and the others are not', async () => {
  const from = await loaded(`
    good: custom(() => 7),
    text: custom(() => 'seven' as never),
    none: custom(() => undefined as never),
    nan: custom(() => Number.NaN),
    below: custom(() => -1),
    huge: custom(() => 1 / 0),
    throws: custom(() => { throw new TypeError('no such queue'); }),
    odd: custom(() => { throw Object.create(null); }),
    rejects: custom(async () => { throw new Error('x'.repeat(5000)); }),
    late: custom(() => new Promise<number>(() => {}), { deadlineMs: 100 }),`);
  const seen = await started(from);
  expect(seen.good).toMatchObject({ value: 7 });
  const why = Object.fromEntries(
    Object.entries(seen).map(([name, each]) => [
      name,
      each.kind === 'missing' ? `${each.reason}: ${each.detail}` : 'a value',
    ]),
  );
  expect(why).toMatchObject({
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
  expect((await from.look()).good).toMatchObject({ value: 7 });
});

test('one that blocks its process is killed, and another process begins', async () => {
  const from = await loaded(`
    depth: custom(() => {
      const mark = ${JSON.stringify(join(dir, 'mark'))};
      if (!existsSync(mark)) {
        writeFileSync(mark, String(process.pid));
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
      { timeout: 40_000 },
    )
    .toBe('value');
  expect(reasons).toContain('timeout');
  const blocked = Number(readFileSync(join(dir, 'mark'), 'utf8'));
  expect(() => process.kill(blocked, 0)).toThrow(/ESRCH/);
});

test('one that takes all memory or ends its process is missing, and harms nobody', async () => {
  const from = await loaded(`
    leak: custom(() => {
      const kept: number[][] = [];
      for (;;) kept.push(new Array(1e6).fill(1));
    }),`);
  expect((await started(from)).leak).toMatchObject({ kind: 'missing' });
  const exits = await loaded('ends: custom(() => process.exit(0))');
  await expect
    .poll(async () => (await exits.look()).ends, { timeout: 20_000 })
    .toMatchObject({
      reason: 'error',
      detail: expect.stringContaining('its process ended (exit code 0)'),
    });
});

test('without the file, or with another version of it, it is missing and says what to do', async () => {
  const nowhere = await loaded('depth: custom(() => 1)', { file: null });
  expect((await nowhere.look()).depth).toMatchObject({
    reason: 'error',
    detail: expect.stringContaining('no policy file with it'),
  });
  expect(nowhere.asked[0]).toMatch(/^[0-9a-f]{16}$/);
  const changed = await loaded('depth: custom(() => 1)');
  writeFileSync(changed.path, `${readFileSync(changed.path, 'utf8')}\n// more`);
  await expect
    .poll(async () => (await changed.look()).depth, { timeout: 20_000 })
    .toMatchObject({ reason: 'error', detail: expect.stringContaining('not the text any more') });
});

test('closing ends the process', async () => {
  const from = await loaded('pid: custom(() => process.pid)');
  const { pid } = await started(from);
  await from.source.close();
  const { value } = pid as Seen;
  await expect
    .poll(
      () => {
        try {
          process.kill(value, 0);
          return 'there';
        } catch {
          return 'gone';
        }
      },
      { timeout: 20_000 },
    )
    .toBe('gone');
});
