/** Installs the peers of bench/package.json beside the bench, once for each lock file. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runChild } from '../scripts/child.mjs';

const FOLDER = import.meta.dirname;
const STAMP = join(FOLDER, 'node_modules', '.installed');

export async function installPeers() {
  const lock = readFileSync(join(FOLDER, 'package-lock.json'));
  const hash = createHash('sha256').update(lock).digest('hex');
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === hash) return;
  process.stderr.write('bench: installing the peers into bench/node_modules (about 10 MB) …\n');
  const code = await runChild(['npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: FOLDER,
    quietStdout: true,
  });
  if (code !== 0) throw new Error(`bench: npm ci in bench/ ended with ${code}`);
  writeFileSync(STAMP, hash);
}
