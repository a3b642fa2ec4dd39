/**
 * `npm run soak`: two ways to try for long what CI tries once.
 *
 *     --minutes N [--seed S]                  the property and fault suites again and again, each round on another
 *                                             seed, with the tests that take minutes (`*.long.test.ts`)
 *     --schedules N [--seed S] [--at-once K]  drawn schedules of faults on real processes, N of them from seed S on;
 *                                             a seed alone plays that one and prints its steps
 *
 * With `--json` the last line of stdout is one JSON object; schedules print a Markdown table without it.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `usage: npm run soak -- [--minutes 0.1 … 1440] [--seed integer]
       npm run soak -- --schedules 1 … 100000 [--seed integer] [--at-once 1 … 8] [--json]
`;
const root = fileURLToPath(new URL('..', import.meta.url));
const { minutes, schedules, seed, atOnce, form } = readArguments();
process.exitCode = await (schedules === null ? suites() : faults());

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string' },
        schedules: { type: 'string' },
        seed: { type: 'string' },
        'at-once': { type: 'string', default: '2' },
        json: { type: 'boolean' },
      },
    });
    // One seed alone, without a time: that schedule once more.
    const alone = values.seed !== undefined && values.minutes === undefined;
    const counted = values.schedules ?? (alone ? '1' : undefined);
    const found = {
      minutes: Number(values.minutes ?? 10),
      schedules: counted === undefined ? null : Number(counted),
      seed: Number(values.seed ?? 1),
      atOnce: Number(values['at-once']),
      form: values.json ? 'json' : 'table',
    };
    const whole = (n, most) => Number.isSafeInteger(n) && n >= 1 && n <= most;
    const good =
      found.minutes > 0 &&
      found.minutes <= 24 * 60 &&
      Number.isSafeInteger(found.seed) &&
      whole(found.atOnce, 8) &&
      (found.schedules === null || whole(found.schedules, 100_000)) &&
      !(values.schedules !== undefined && values.minutes !== undefined);
    if (good) return found;
    process.stderr.write(USAGE);
  } catch (error) {
    process.stderr.write(`${error.message}\n${USAGE}`);
  }
  process.exit(64);
}

/** Played by a process that reads the tests' own TypeScript. */
function faults() {
  const jiti = pathToFileURL(join(root, 'node_modules/jiti/lib/jiti-register.mjs')).href;
  const script = join(root, 'test/faults/fault-soak.ts');
  return run(['--import', jiti, script, ...[schedules, seed, atOnce, form].map(String)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

async function suites() {
  const folders = ['test/property/', 'test/lua/', 'test/faults/'].filter((path) =>
    existsSync(join(root, path)),
  );
  const endAt = performance.now() + minutes * 60_000;
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  let rounds = 0;
  let failedSeed = null;
  // At least one round: a soak that ran nothing must not count as passed.
  do {
    const own = seed + rounds;
    process.stderr.write(`soak: round ${rounds + 1}, seed ${own}\n`);
    const code = await run([vitest, 'run', '--reporter=dot', ...folders], {
      env: { ...process.env, SUITE_SEED: String(own), SUITE_LONG: '1' },
      stdio: ['ignore', process.stderr, 'inherit'],
    });
    if (code !== 0) failedSeed = own;
    rounds++;
  } while (failedSeed === null && performance.now() < endAt);
  const result = { schema: 1, suites: folders, rounds, firstSeed: seed, failedSeed };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  return failedSeed === null ? 0 : 1;
}

function run(args, options) {
  const child = spawn(process.execPath, args, { cwd: root, ...options });
  return new Promise((ok) => child.once('exit', (code) => ok(code ?? 1)));
}
