/** npm packages: are those of the lockfile there, and `npm ci` when not. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runChild } from './child.mjs';

const STAMP = '.flyball/npm-ci';

/**
 * True when what is installed is what the lockfile says, by our stamp or by npm's own record (a person ran
 * `npm ci`). npm writes its record last, so an install that was cut short does not count.
 */
export function npmInstalled(root) {
  const record = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(record)) return false;
  const stamp = join(root, STAMP);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash(root)) return true;
  const wanted = Object.entries(read(join(root, 'package-lock.json')).packages);
  const have = read(record).packages;
  return wanted
    .filter(([path, entry]) => path !== '' && (!entry.optional || forThisMachine(entry)))
    .every(([path, entry]) => have[path]?.version === entry.version);
}

/** Installs exactly the lockfile, with development and optional packages whatever the person's npm settings say. */
export async function installNpm(root) {
  const npm = process.env.npm_execpath;
  const command = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const args = [
    'ci',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  const status = await runChild([...command, ...args], { cwd: root, quietStdout: true });
  if (status !== 0) {
    throw new Error(`\`npm ci\` failed (exit ${status}): mend what it says above, then try again.`);
  }
  mkdirSync(join(root, '.flyball'), { recursive: true });
  writeFileSync(join(root, STAMP), lockHash(root));
}

function lockHash(root) {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
}

function forThisMachine({ os, cpu, libc }) {
  const glibc = Boolean(process.report.getReport().header.glibcVersionRuntime);
  return (
    (!os || os.includes(process.platform)) &&
    (!cpu || cpu.includes(process.arch)) &&
    (!libc || process.platform !== 'linux' || libc.includes(glibc ? 'glibc' : 'musl'))
  );
}

function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
