import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openToAll } from '../../src/demo/postgres-binaries.js';
import { tempFolder } from '../support/temp-folder.js';

test('what was installed under umask 077 can be run by the account of the server, and still written by its owner alone', () => {
  const dir = tempFolder('binaries');
  const bin = join(dir, 'native', 'bin');
  mkdirSync(bin, { recursive: true });
  const [program, library] = [join(bin, 'postgres'), join(dir, 'native', 'libpq.so.5')];
  for (const file of [program, library]) writeFileSync(file, '');
  chmodSync(program, 0o700);
  chmodSync(library, 0o600);
  for (const folder of [bin, join(dir, 'native')]) chmodSync(folder, 0o700);
  // A link is not followed: it may lead out of the copy.
  const outside = join(dir, 'outside');
  writeFileSync(outside, '');
  chmodSync(outside, 0o600);
  symlinkSync(outside, join(bin, 'link'));

  openToAll(join(dir, 'native'));
  const modes = [bin, program, library, outside].map((path) => statSync(path).mode & 0o777);
  expect(modes).toEqual([0o755, 0o755, 0o644, 0o600]);
});
