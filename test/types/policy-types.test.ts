import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Errors that tsc finds in these files alone, under the project's own settings. */
function errorsIn(files: string[]): string[] {
  const dir = mkdtempSync(join(root, 'test/types/.check-'));
  const config = join(dir, 'tsconfig.json');
  const flyball = resolve(root, 'src/policy/author.ts');
  writeFileSync(
    config,
    JSON.stringify({
      extends: resolve(root, 'tsconfig.json'),
      compilerOptions: { paths: { flyball: [flyball] } },
      include: files,
    }),
  );
  const tsc = join(
    dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
    'bin/tsc',
  );
  try {
    execFileSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' });
    return [];
  } catch (error) {
    const { stdout = '' } = error as { stdout?: string };
    const found = stdout.split('\n').filter((line) => /error TS/.test(line));
    // A compiler that could not run has found no errors either.
    if (found.length === 0) throw error;
    return found;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('wrong names, units and fields in a policy are compile errors, and right ones are none', () => {
  expect(errorsIn([resolve(root, 'test/types/policy.ts')])).toEqual([]);
});

test('each marked line fails for itself: without its mark there are as many errors as marks', () => {
  const text = readFileSync(join(root, 'test/types/policy.ts'), 'utf8');
  const marks = text.match(/^\/\/ @ts-expect-error$/gm)!.length;
  const bare = join(root, 'test/types/.bare.ts');
  writeFileSync(bare, text.replace(/^\/\/ @ts-expect-error$/gm, ''));
  try {
    const lines = new Set(errorsIn([bare]).map((error) => /\((\d+),/.exec(error)?.[1]));
    expect(lines.size).toBe(marks);
  } finally {
    rmSync(bare);
  }
});

test('the policies that ship compile', () => {
  expect(errorsIn([resolve(root, 'policies/*.ts')])).toEqual([]);
});
