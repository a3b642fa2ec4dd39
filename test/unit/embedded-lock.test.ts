/** The folder lock: one at a time, dead holders passed over, a living one waited for and named. */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { holdFolder, withFolderLock } from '../../src/redis/folder-lock.js';
import { identityOf, isAlive, ownIdentity } from '../../src/redis/process-identity.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = () => tempFolder('lock');
const turn = () => new Promise((ok) => setImmediate(ok));

test('many that ask at once run one after another, over a dead holder', async () => {
  const dir = folder();
  writeFileSync(join(dir, 'lock.5'), JSON.stringify({ pid: process.pid, start: 'long gone' }));
  writeFileSync(join(dir, 'lock.4'), '');
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 20 }, () =>
      withFolderLock(dir, 20_000, async () => {
        most = Math.max(most, ++inside);
        await turn();
        inside--;
      }),
    ),
  );
  expect(most).toBe(1);
  expect(readdirSync(dir)).toEqual(['lock.25']);
});

test('what is let go of is the lock of the folder that was held, not of one put in its place', () => {
  const dir = join(folder(), 'held');
  mkdirSync(dir);
  const first = holdFolder(dir);
  renameSync(dir, `${dir}-moved`);
  mkdirSync(dir);
  const second = holdFolder(dir);
  const held = readFileSync(join(dir, 'lock.1'), 'utf8');
  first!.release();
  expect(readFileSync(join(dir, 'lock.1'), 'utf8')).toBe(held);
  expect(holdFolder(dir)).toBeNull();
  second!.release();
  expect(readFileSync(join(dir, 'lock.1'), 'utf8')).toBe('{}');
  holdFolder(dir)!.release();
});

test('a job that throws gives the lock back', async () => {
  const dir = folder();
  const failing = withFolderLock(dir, 1_000, () => Promise.reject(new Error('job')));
  await expect(failing).rejects.toThrow('job');
  expect(await withFolderLock(dir, 1_000, async () => 'next')).toBe('next');
});

test('a living holder is waited for, then named', async () => {
  const dir = folder();
  writeFileSync(join(dir, 'lock.1'), JSON.stringify(ownIdentity()));
  const second = withFolderLock(dir, 60, async () => 'never');
  await expect(second).rejects.toMatchObject({ code: 'FLYBALL_E_DATA_DIR_BUSY' });
  await expect(second).rejects.toThrow(`process ${process.pid}`);
});

test('an identity is of one process, not of whoever has its pid', () => {
  expect(isAlive(ownIdentity())).toBe(true);
  expect(isAlive({ ...ownIdentity(), start: 'other' })).toBe(false);
  expect(identityOf(2 ** 22 + 1)).toBeNull();
});
