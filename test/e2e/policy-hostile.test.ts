/** Policy files that attack their reader: forged answers, memory without bound, endless texts, words of the prototype. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadPolicies } from '../../src/policy/load.js';

const GOOD = `limiter: { name: 'x', rate: 10, capacity: 10 }`;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flyball-hostile-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function load(text: string, deadlineMs = 60_000) {
  const file = join(folder, 'policy.ts');
  writeFileSync(file, text);
  return loadPolicies([file], { deadlineMs });
}

test('an answer that the file forges is none: its reader goes on', async () => {
  for (const forged of [
    `{ kind: 'faults' }`,
    `{ kind: 'faults', faults: [null, 7] }`,
    `null`,
    `7`,
  ]) {
    const { loaded, faults } = await load(`process.send(${forged}); process.exit(0);`);
    expect(loaded).toEqual([]);
    expect(faults).toMatchObject([
      { field: '', message: expect.stringMatching(/^ended its process/) },
    ]);
  }
});

test('a file that says again and again that it has started gets no more time', async () => {
  const again = `setInterval(() => process.send('started'), 20); await new Promise(() => {});`;
  const { faults } = await load(`${again} export default {};`, 2000);
  expect(faults[0]!.message).toContain('did not return within 2000 ms');
});

test('memory outside the heap is bounded too', async () => {
  const { faults } = await load(
    `const all = []; for (;;) all.push(Buffer.alloc(5e7, 1)); export default {};`,
  );
  expect(faults[0]!.message).toContain('ended its process (SIGKILL)');
});

test('a policy that was given counts, though its process does not end by itself', async () => {
  const { loaded } = await load(
    `process.on('exit', () => { for (;;); }); export default { ${GOOD} };`,
  );
  expect(loaded).toHaveLength(1);
});

test('what it throws is told in a line, whatever it is', async () => {
  const long = await load(`throw new Error('x'.repeat(100_000));`);
  expect(long.faults[0]!.message.length).toBeLessThan(500);
  for (const odd of [
    'null',
    '{ toString() { throw 1; } }',
    'Object.assign(new Error(), { message: { a: 1 }, stack: 7 })',
  ]) {
    const { faults } = await load(`throw ${odd};`);
    expect(faults).toHaveLength(1);
    expect(faults[0]!.message).not.toMatch(/is not a function|Cannot read/);
  }
});

test('words of the prototype are fields like any other that is not allowed', async () => {
  const { faults } = await load(
    `export default { ${GOOD}, ['constructor']: 1, ['toString']: 2, ['__proto__']: { valueOf: 3 } };`,
  );
  expect(faults.map((fault) => fault.field).sort()).toEqual([
    '__proto__',
    'constructor',
    'toString',
  ]);
  for (const { message } of faults) expect(message).toMatch(/^is not a field\. Allowed: /);
});
