/** `flyball check --types`: a type error that no value shows is told with file, line and column. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { checkTypes } from '../../src/cli/check-types.js';
import { cli } from '../support/cli-run.js';

vi.setConfig({ testTimeout: 240_000 });
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'flyball-types-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const limiter = "{ name: 'shop', rate, capacity: 200 }";
const policy = (rate: string) =>
  `import { definePolicy } from 'flyball';\nconst rate: number = ${rate};\nexport default definePolicy({ limiter: ${limiter} });\n`;

test('C87: what loads well and is wrong by its type is a fault with --types alone; what is right is none', async () => {
  writeFileSync(join(folder, 'shop.ts'), policy("Date.now() > 0 ? 100 : 'x'"));
  const env = { FLYBALL_POLICY_DEADLINE_MS: '120000' };
  expect(await cli(['check', folder], { env })).toMatchObject({ code: 0 });
  const checked = await cli(['check', folder, '--types', '--json'], { env });
  expect(checked.code).toBe(78);
  expect(JSON.parse(checked.stdout)).toMatchObject({
    valid: false,
    policies: [{ limiter: 'shop' }],
    faults: [
      {
        file: expect.stringMatching(/shop\.ts$/),
        line: 2,
        message: expect.stringMatching(/^does not type-check \(TS2322, column 7\): Type /),
      },
    ],
  });
});

test('a file without a fault has none, and neither has a helper of somebody else', async () => {
  mkdirSync(join(folder, 'fine'));
  writeFileSync(join(folder, 'fine/shop.ts'), `import './helper.ts';\n${policy('100')}`);
  writeFileSync(join(folder, 'fine/helper.ts'), "export const wrong: number = 'x';\n");
  expect(await checkTypes([join(folder, 'fine/shop.ts')])).toEqual([]);
  expect(await checkTypes([join(folder, 'fine/other.js')])).toEqual([]);
});
