/** The data folder: made for its owner alone, kept out of a working copy's history, refused where nothing can be written. Stage: all that keep files. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FlyballError } from '../errors.js';
import { DEFAULT_DATA_DIR } from './locate.js';

const DEADLINE_MS = 10_000;
const WRITES = 'umask 077; mkdir -p -- "$0" && : >"$0/.writes" && rm -f -- "$0/.writes"';

/** The default folder lies in somebody's working copy; another may hold more than ours, and is left as it is. */
export function openDataDir(dataDir: string, deadlineMs = DEADLINE_MS): void {
  refuseSilent(dataDir, deadlineMs);
  makeFolder(dataDir);
  const file = join(dataDir, '.gitignore');
  if (basename(dataDir) === DEFAULT_DATA_DIR && !existsSync(file)) writeFileSync(file, '*\n');
}

/**
 * A file system that gives no answer (of a server that is away) holds whoever asks, and no deadline of this process's
 * own would end that: another process asks first. Any other fault is found again, and told, by who writes.
 */
function refuseSilent(dataDir: string, deadlineMs: number): void {
  const { error } = spawnSync('sh', ['-c', WRITES, dataDir], {
    ...{ timeout: deadlineMs, killSignal: 'SIGKILL', stdio: 'ignore' },
  });
  if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ETIMEDOUT') return;
  throw unusable(
    dataDir,
    `nothing could be written there within ${deadlineMs} ms: its file system does not answer`,
  );
}

/** One after the other: told to make all of a path at once, Node tries for ever where nothing can be made. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Another process was quicker.
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    // Its parent is there: it lies where the system keeps no files, as below /proc.
    if (code === 'ENOENT') throw unusable(path, `no folder can be made there (${message})`);
    throw error;
  }
}

function unusable(dataDir: string, why: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_DATA_DIR',
    `the data folder ${dataDir} cannot be used: ${why}. Set FLYBALL_DATA_DIR to a folder of a disk.`,
  );
}
