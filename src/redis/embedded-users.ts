/** Who uses the embedded Redis of a folder: one file a user, holding its process's identity. Stage: embedded Redis. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, ownIdentity, type ProcessIdentity } from './process-identity.js';

const USERS_FOLDER = 'users';
let count = 0;

/** @returns the file that stands for this use; remove it to end the use */
export function addUser(dataDir: string): string {
  const folder = join(dataDir, USERS_FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${process.pid}-${++count}`);
  writeFileSync(path, JSON.stringify(ownIdentity()), { mode: 0o600 });
  return path;
}

/** Users whose process runs; the files of those that were killed are removed on the way. */
export function livingUsers(dataDir: string): number {
  const folder = join(dataDir, USERS_FOLDER);
  let living = 0;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    let identity: ProcessIdentity | null = null;
    try {
      identity = JSON.parse(readFileSync(path, 'utf8'));
    } catch {
      // Cut short by a full disk or a kill: whoever wrote it has not begun to use the server.
    }
    if (identity && isAlive(identity)) living++;
    else rmSync(path, { force: true });
  }
  return living;
}
