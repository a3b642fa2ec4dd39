/** `npm run build`: the generated scripts module, then `dist`; the tasks skip it when no source has changed. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDashboard } from './build-dashboard.mjs';
import { runChild } from './child.mjs';

const INPUTS = [
  'src',
  'lua',
  'scripts/build-lua.mjs',
  'scripts/build-dashboard.mjs',
  'tsconfig.json',
  'tsconfig.build.json',
  'package.json',
];
const STAMP = '.build-hash';
const node = process.execPath;

/** @returns {Promise<number>} exit code */
export async function build(root) {
  // Taken before: a source that changes meanwhile makes the result stale, not fresh.
  const hash = inputHash(root);
  const staging = join(root, '.flyball', `build-${process.pid}`);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  try {
    const lua = [node, join(root, 'scripts/build-lua.mjs')];
    const generated = await runChild(lua, { cwd: root, quietStdout: true });
    if (generated !== 0) return generated;
    mkdirSync(staging, { recursive: true });
    const compile = [node, tsc, '-p', 'tsconfig.build.json', '--outDir', staging];
    const compiled = await runChild(compile, { cwd: root, quietStdout: true });
    // Ended by a signal, or stopped before it wrote: then what there is stays. 2: written, with faults of types.
    if (compiled !== 0 && compiled !== 2) return compiled;
    await buildDashboard(root, join(staging, 'dashboard'));
    publish(staging, join(root, 'dist'));
    if (compiled === 0) writeFileSync(join(root, 'dist', STAMP), hash);
    return compiled;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** @returns {Promise<number>} exit code; 0 when there was nothing to do */
export async function buildIfStale(root) {
  const stamp = join(root, 'dist', STAMP);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === inputHash(root)) return 0;
  return build(root);
}

/** Each file is replaced whole, so that a process started meanwhile never reads half of one. */
function publish(staging, dist) {
  const built = new Set(files(staging).map((file) => relative(staging, file)));
  for (const name of built) {
    const from = join(staging, name);
    const to = join(dist, name);
    if (existsSync(to) && readFileSync(to).equals(readFileSync(from))) continue;
    mkdirSync(dirname(to), { recursive: true });
    if (name === join('cli', 'main.js')) chmodSync(from, 0o755);
    renameSync(from, to);
  }
  for (const file of existsSync(dist) ? files(dist) : []) {
    const name = relative(dist, file);
    if (!built.has(name) && name !== STAMP) rmSync(file);
  }
}

function inputHash(root) {
  const hash = createHash('sha256');
  for (const input of INPUTS) {
    const path = join(root, input);
    // The generated module follows from the others.
    for (const file of files(path).filter((name) => !name.includes('.gen.'))) {
      hash
        .update(`${relative(root, file)}\0`)
        .update(readFileSync(file))
        .update('\0');
    }
  }
  return hash.digest('hex');
}

/** All files under a folder, or the one file; sorted, so that the hash does not depend on the disk. */
function files(path) {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => files(join(path, name)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await build(fileURLToPath(new URL('..', import.meta.url)));
}
