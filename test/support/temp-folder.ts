/** Folders that a test file may fill; they are gone when it has ended. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];
// Registered by the test file that imports this, before its own: it runs last.
afterAll(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

/** @param name what it is for: `lock` gives `/tmp/flyball-lock-…` */
export function tempFolder(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `flyball-${name}-`));
  made.push(path);
  return path;
}
