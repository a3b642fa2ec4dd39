/**
 * `npm run soak -- [--minutes N] [--seed S]`: the property and fault suites again and again, each round on another
 * seed, until the time is up or a round fails. The last line of stdout is one JSON object.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
  },
});
const minutes = Number(values.minutes);
const firstSeed = Number(values.seed);
if (!(minutes > 0 && minutes <= 24 * 60) || !Number.isSafeInteger(firstSeed)) {
  process.stderr.write('usage: npm run soak -- [--minutes 0.1 … 1440] [--seed integer]\n');
  process.exit(64);
}

const suites = ['test/property/', 'test/lua/', 'test/faults/'].filter((path) =>
  existsSync(join(root, path)),
);
const endAt = performance.now() + minutes * 60_000;
let rounds = 0;
let failedSeed = null;
// At least one round: a soak that ran nothing must not count as passed.
do {
  const seed = firstSeed + rounds;
  process.stderr.write(`soak: round ${rounds + 1}, seed ${seed}\n`);
  if ((await round(seed)) !== 0) failedSeed = seed;
  rounds++;
} while (failedSeed === null && performance.now() < endAt);

process.stdout.write(`${JSON.stringify({ schema: 1, suites, rounds, firstSeed, failedSeed })}\n`);
process.exitCode = failedSeed === null ? 0 : 1;

function round(seed) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--reporter=dot', ...suites], {
    cwd: root,
    env: { ...process.env, SUITE_SEED: String(seed) },
    stdio: ['ignore', process.stderr, 'inherit'],
  });
  return new Promise((ok) => child.once('exit', (code) => ok(code ?? 1)));
}
