/** `npm run bench -- <name> [--only <part>] [--json]`: runs one bench; prints its figures, its targets, a line of JSON. */
import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import { ENFORCE_PARTS, enforceBench } from './enforce.mjs';
import { printBench } from './report.mjs';

const BENCHES = {
  audit: {
    about: 'a log of 100,000 entries: its first page, memory while it is exported and proven',
    parts: [],
    run: async () => (await import('./audit.mjs')).auditBench(),
  },
  decide: {
    about: 'what one turn of the control law costs, and a tick of 10,000 limiters',
    parts: [],
    run: async () => (await import('./decide.mjs')).decideBench(),
  },
  daemon: {
    about: 'a tick of 1,000 limiters: sense and estimate, the whole daemon, what reporting costs',
    parts: ['sense', 'whole', 'done'],
    flags: ['quick', 'full'],
    run: async (...args) => (await import('./daemon.mjs')).daemonBench(...args),
  },
  dashboard: {
    about: 'the overview of 1,000 limiters in a browser, and what one browser costs the daemon',
    parts: [],
    flags: ['quick'],
    run: async (...args) => (await import('./dashboard.mjs')).dashboardBench(...args),
  },
  enforce: {
    about: 'decisions against peers, a lone decision, CPU, memory, Fastify, blocks, a Cluster',
    parts: ENFORCE_PARTS,
    run: enforceBench,
  },
  protect: {
    about: 'goodput of a real service under 2, 4 and 10 times what it can do, beside other limits',
    parts: ['2x', '4x', '10x', 'half'],
    flags: ['quick', 'full'],
    run: async (...args) => (await import('./protect.mjs')).protectBench(...args),
  },
};

const names = Object.keys(BENCHES).join(', ');
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean' },
      only: { type: 'string', multiple: true },
      quick: { type: 'boolean' },
      full: { type: 'boolean' },
    },
  });
  await run(positionals, values);
} catch (error) {
  // Ended by Ctrl-C, with all that it started.
  if (error.signal !== undefined) process.exit(128 + constants.signals[error.signal]);
  const usage = error instanceof TypeError || error instanceof RangeError;
  if (!usage && !error.code?.startsWith?.('FLYBALL_')) throw error;
  process.stderr.write(`bench: ${error.message}\n`);
  process.exitCode = usage ? 64 : 1;
}

async function run([name, ...more], { json = false, only, ...flags }) {
  if (name === undefined) {
    for (const [each, { about, parts }] of Object.entries(BENCHES)) {
      const choice = parts.length > 0 ? ` (--only ${parts.join(', ')})` : '';
      process.stdout.write(`${each.padEnd(10)}${about}${choice}\n`);
    }
    process.stderr.write('Run one: npm run bench -- decide\n');
    return;
  }
  const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (bench === undefined || more.length > 0) {
    throw new RangeError(`one at a time. Benches: ${names}; options: --only <part>, --json.`);
  }
  const parts = only?.flatMap((each) => each.split(','));
  const unknown = parts?.filter((part) => !bench.parts.includes(part)) ?? [];
  if (unknown.length > 0) {
    const known = bench.parts.length > 0 ? bench.parts.join(', ') : 'none';
    throw new RangeError(`unknown part ${unknown.join(', ')}. Parts of ${name}: ${known}.`);
  }
  const foreign = Object.keys(flags).find((flag) => !bench.flags?.includes(flag));
  if (foreign !== undefined) throw new RangeError(`${name} has no --${foreign}.`);
  printBench(name, await bench.run(parts, flags), json);
}
