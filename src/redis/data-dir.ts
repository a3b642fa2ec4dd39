/** The data folder: made for its owner alone, and kept out of a working copy's history. Stage: all that keep files. */
import { existsSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FlyballError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import { DEFAULT_DATA_DIR } from './locate.js';

/** The default folder lies in somebody's working copy; another may hold more than ours, and is left as it is. */
export function openDataDir(dataDir: string, deadlineMs?: number): void {
  try {
    makeFolder(dataDir, { ownerOnly: true, ...(deadlineMs !== undefined && { deadlineMs }) });
  } catch (error) {
    throw explained(dataDir, error as NodeJS.ErrnoException);
  }
  const file = join(dataDir, '.gitignore');
  if (basename(dataDir) === DEFAULT_DATA_DIR && !existsSync(file)) writeFileSync(file, '*\n');
}

/** Of a place that no rights would mend; other errors are as they are. */
function explained(dataDir: string, error: NodeJS.ErrnoException): Error {
  const { code, message } = error;
  if (code !== 'ENOENT' && code !== 'ETIMEDOUT') return error;
  const why = code === 'ENOENT' ? `no folder can be made there (${message})` : message;
  return new FlyballError(
    'FLYBALL_E_DATA_DIR',
    `the data folder ${dataDir} cannot be used: ${why}. Set FLYBALL_DATA_DIR to a folder of a disk.`,
  );
}
