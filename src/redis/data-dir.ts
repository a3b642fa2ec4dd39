/** The data folder: made for its owner alone, and kept out of a working copy's history. Stage: all that keep files. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DEFAULT_DATA_DIR } from './locate.js';

/** The default folder lies in somebody's working copy; another may hold more than ours, and is left as it is. */
export function openDataDir(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, '.gitignore');
  if (basename(dataDir) === DEFAULT_DATA_DIR && !existsSync(file)) writeFileSync(file, '*\n');
}
