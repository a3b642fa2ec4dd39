/** A folder with all that leads to it, or an error, and soon: also where nothing can be made, and where nothing answers. Stage: all that keep files. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export interface FolderOptions {
  /** What is made is for its owner alone. */
  ownerOnly?: boolean;
  deadlineMs?: number;
}

const DEADLINE_MS = 10_000;
const WRITES = 'mkdir -p -- "$0" && : >"$0/.writes" && rm -f -- "$0/.writes"';

/** Throws as `mkdir` does, and with the code ETIMEDOUT when its file system gives no answer. */
export function makeFolder(path: string, options: FolderOptions = {}): void {
  const { ownerOnly = false, deadlineMs = DEADLINE_MS } = options;
  refuseSilent(path, ownerOnly, deadlineMs);
  makeEach(path, ownerOnly ? 0o700 : 0o777);
}

/**
 * A file system that gives no answer (of a server that is away) holds whoever asks, and no deadline of this process's
 * own would end that: another process asks first. Any other fault is found again by this one, which can tell it.
 */
function refuseSilent(path: string, ownerOnly: boolean, deadlineMs: number): void {
  const { error } = spawnSync('sh', ['-c', ownerOnly ? `umask 077; ${WRITES}` : WRITES, path], {
    ...{ timeout: deadlineMs, killSignal: 'SIGKILL', stdio: 'ignore' },
  });
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  if (code !== 'ETIMEDOUT') return;
  const why = `nothing could be written there within ${deadlineMs} ms: its file system does not answer`;
  throw Object.assign(new Error(why), { code });
}

/** One after the other: told to make all of a path at once, Node tries for ever where nothing can be made, as below /proc. */
function makeEach(path: string, mode: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeEach(parent, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process was quicker.
    if (code !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}
