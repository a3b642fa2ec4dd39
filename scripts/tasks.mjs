/** The tasks of `run.mjs`: what each needs, and what it runs once that is there. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildIfStale } from './build.mjs';
import { runChild } from './child.mjs';
import { setUp } from './setup.mjs';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const bin = (path) => [process.execPath, join(ROOT, 'node_modules', path)];

const TASKS = { start, test, bench, soak };

export async function runTask([name, ...rest]) {
  const args = rest.filter((arg) => arg !== '--no-install');
  const task = TASKS[name];
  if (!task) {
    process.stderr.write(
      `usage: node scripts/run.mjs ${Object.keys(TASKS).join('|')} [--no-install] [args]\n`,
    );
    process.exitCode = 64;
    return;
  }
  const install = args.length === rest.length && process.env.FLYBALL_NO_INSTALL !== '1';
  try {
    process.exitCode = await task(args, await setUp({ root: ROOT, task: name, install }));
  } catch (error) {
    process.stderr.write(`flyball set-up: ${error.message}\n`);
    process.exitCode = 1;
  }
}

async function start(args, found) {
  needAll(found);
  const built = await buildIfStale(ROOT);
  if (built !== 0) return built;
  return runChild([process.execPath, join(ROOT, 'dist/cli/main.js'), 'demo', ...args], {
    env: taskEnvironment(found),
  });
}

async function bench(args, found) {
  needAll(found);
  const built = await buildIfStale(ROOT);
  if (built !== 0) return built;
  return runChild([process.execPath, join(ROOT, 'bench/index.mjs'), ...args], {
    env: taskEnvironment(found),
  });
}

/** Format and lint, types, build, then every suite; with arguments only Vitest, on the files they name. */
async function test(args, found) {
  const env = testEnvironment(found);
  const report = join(ROOT, '.flyball/test-report.json');
  rmSync(report, { force: true });
  mkdirSync(join(ROOT, '.flyball'), { recursive: true });
  const vitest = [...bin('vitest/vitest.mjs'), 'run'];
  const second = join(ROOT, 'test/support/second-try.ts');
  const reporters = [
    ...['default', 'json', second].map((name) => `--reporter=${name}`),
    `--outputFile.json=${report}`,
  ];
  const steps = [
    ...(args.length
      ? []
      : [[...bin('@biomejs/biome/bin/biome'), 'check', '--error-on-warnings', '.']]),
    ...(args.length ? [] : [[...bin('typescript/bin/tsc'), '-p', 'tsconfig.json']]),
    ...(args.length ? [] : [[...bin('typescript/bin/tsc'), '-p', 'src/dashboard/tsconfig.json']]),
  ];
  // All of them are run, so that one report shows every fault.
  let status = 0;
  for (const step of steps) status = (await runChild(step, { env, cwd: ROOT })) || status;
  status = (await buildIfStale(ROOT)) || status;
  status = (await runChild([...vitest, ...reporters, ...args], { env, cwd: ROOT })) || status;
  if (status === 0 && ranTests(report) === 0) {
    process.stderr.write('npm test: no test was run.\n');
    return 1;
  }
  return status;
}

async function soak(args, found) {
  needAll(found);
  const built = await buildIfStale(ROOT);
  if (built !== 0) return built;
  return runChild([process.execPath, join(ROOT, 'scripts/soak.mjs'), ...args], {
    env: testEnvironment(found),
    cwd: ROOT,
  });
}

/** Set-up's own switch is spent here: a daemon would take it for a setting it does not know. */
function taskEnvironment(found) {
  const { FLYBALL_NO_INSTALL: _spent, ...env } = process.env;
  return { ...env, ...found.env };
}

/** Tests start their own servers: a FLYBALL_ setting of the person's shell must not reach them. */
function testEnvironment(found) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('FLYBALL_'));
  const missing = Object.keys(found.missing).length
    ? { SUITE_MISSING: JSON.stringify(found.missing) }
    : {};
  return { ...Object.fromEntries(kept), ...found.env, ...missing, SUITE_BUILT: '1' };
}

function needAll(found) {
  const sentences = Object.values(found.missing);
  if (sentences.length) throw new Error(sentences.join('\n'));
}

function ranTests(report) {
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'));
    return numPassedTests + numFailedTests;
  } catch {
    return 0;
  }
}
