/** One process at a time in a folder, also after a holder was killed. Stage: embedded Redis, audit. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { FlyballError } from '../errors.js';
import { isAlive, ownIdentity, type ProcessIdentity } from './process-identity.js';

const LOCK = /^lock\.(\d+)$/;
const RETRY_MS = 20;

/**
 * Runs `job` while no other process runs one in this folder. The lock is the file `lock.<n>` with the highest n: it
 * holds its holder's identity, or `{}` once released. Who finds the holder gone makes `lock.<n+1>`, which only one
 * can, since a link never replaces a file; only then are older ones removed. Replacing a dead holder's file in
 * place would let two who saw it dead both go on.
 */
export async function withFolderLock<T>(
  folder: string,
  deadlineMs: number,
  job: () => Promise<T>,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  let mine = tryLock(folder);
  while (mine === null) {
    if (performance.now() > giveUpAt) {
      const holder = holderOf(folder, highest(folder));
      throw new FlyballError(
        'FLYBALL_E_DATA_DIR_BUSY',
        `${folder} has been locked by process ${holder?.pid ?? '?'} for more than ${deadlineMs} ms. Wait for it, or end it.`,
      );
    }
    await new Promise((ok) => setTimeout(ok, RETRY_MS));
    mine = tryLock(folder);
  }
  try {
    return await job();
  } finally {
    release(folder, mine);
  }
}

export interface FolderHold {
  release(): void;
}

/** Holds the folder until released, or this process has ended; null: another process of this machine does. */
export function holdFolder(folder: string): FolderHold | null {
  const mine = tryLock(folder);
  return mine === null ? null : { release: () => release(folder, mine) };
}

/** The lock that is now ours: its number, and the file by which we know it again. */
interface Lock {
  n: number;
  ino: number;
  dev: number;
}

/** Locks of this process that it could not release, for their folder was away: where it is back, they hold nobody. */
const left = new Set<string>();
const idOf = ({ dev, ino }: Pick<Lock, 'dev' | 'ino'>) => `${dev}:${ino}`;

/** Null while another holds it. */
function tryLock(folder: string): Lock | null {
  const last = highest(folder);
  const holder = last === 0 ? null : holderOf(folder, last);
  if (holder && isAlive(holder) && !isLeft(folder, last)) return null;
  const next = last + 1;
  const draft = join(folder, `lock-draft.${process.pid}`);
  writeFileSync(draft, JSON.stringify(ownIdentity()), { mode: 0o600 });
  const { ino, dev } = statSync(draft);
  try {
    linkSync(draft, join(folder, `lock.${next}`));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  // Between our look and our link others may have taken and removed this very number: then a higher one exists.
  if (highest(folder) !== next) {
    rmSync(join(folder, `lock.${next}`), { force: true });
    return null;
  }
  for (const older of numbers(folder).filter((n) => n < next)) {
    rmSync(join(folder, `lock.${older}`), { force: true });
  }
  return { n: next, ino, dev };
}

function isLeft(folder: string, n: number): boolean {
  const found = statSync(join(folder, `lock.${n}`), { throwIfNoEntry: false });
  return found !== undefined && left.has(idOf(found));
}

/** The file stays as the highest number, emptied; in a folder that was put in place of ours the lock is another's. */
function release(folder: string, mine: Lock): void {
  let file: number | null = null;
  try {
    file = openSync(join(folder, `lock.${mine.n}`), 'r+');
    const { ino, dev } = fstatSync(file);
    if (ino === mine.ino && dev === mine.dev) {
      ftruncateSync(file);
      writeSync(file, '{}', 0);
      return;
    }
    left.add(idOf(mine));
  } catch {
    // A folder that is away, or a full disk: our identity stays, and is found dead once this process has ended.
    left.add(idOf(mine));
  } finally {
    if (file !== null) closeSync(file);
  }
}

function holderOf(folder: string, n: number): ProcessIdentity | null {
  try {
    const holder = JSON.parse(readFileSync(join(folder, `lock.${n}`), 'utf8'));
    return typeof holder.pid === 'number' ? holder : null;
  } catch {
    return null;
  }
}

function numbers(folder: string): number[] {
  return readdirSync(folder).flatMap((name) => {
    const match = LOCK.exec(name);
    return match ? [Number(match[1])] : [];
  });
}

function highest(folder: string): number {
  return Math.max(0, ...numbers(folder));
}
