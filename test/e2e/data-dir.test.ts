/** The data folder: made for its owner alone; where nothing can be written, or nothing answers, that is said, and soon. */
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { prepareFolder } from '../../src/audit/export-folder.js';
import { openDataDir } from '../../src/redis/data-dir.js';
import { tempFolder } from '../support/temp-folder.js';

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('is made with all that leads to it, for its owner alone, and holds nothing of the try', () => {
  const dir = tempFolder('data');
  const deep = join(dir, '-a b', '.flyball');
  openDataDir(deep);
  openDataDir(deep);
  expect([mode(join(dir, '-a b')), mode(deep)]).toEqual(['700', '700']);
  expect(readdirSync(deep)).toEqual(['.gitignore']);
});

test.each(['/proc/flyball', '/proc/flyball/data', '/proc/self/fd/flyball'])(
  'where the system keeps no files, as in %s, it is refused, and no command waits for it',
  (path) => {
    expect(() => openDataDir(path)).toThrow(
      expect.objectContaining({
        code: 'FLYBALL_E_DATA_DIR',
        message: expect.stringMatching(/no folder can be made there.* Set FLYBALL_DATA_DIR/),
      }),
    );
  },
);

test('nor is a folder of the audit log there', async () => {
  await expect(prepareFolder('/proc/flyball/audit')).rejects.toMatchObject({
    ...{ code: 'FLYBALL_E_AUDIT_FOLDER', message: expect.stringContaining('/proc/flyball') },
  });
});

test('a folder whose file system does not answer is given up in time', () => {
  const dir = tempFolder('data');
  // Whoever opens it to write waits until somebody reads it.
  execFileSync('mkfifo', [join(dir, '.writes')]);
  expect(() => openDataDir(dir, 500)).toThrow(/within 500 ms: its file system does not answer/);
});

test('a file in its place is an error of the system, as before', () => {
  const file = join(tempFolder('data'), 'file');
  writeFileSync(file, '');
  expect(() => openDataDir(file)).toThrow(/EEXIST/);
  expect(() => openDataDir(join(file, 'data'))).toThrow(/ENOTDIR/);
});
