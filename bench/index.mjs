/** `npm run bench -- <name> [--json]`: runs one bench and prints its figures, its targets, and one line of JSON. */
import { printBench } from './report.mjs';

/** Each loads only when it is run: a bench may need peers that are installed then. */
const BENCHES = {
  decide: {
    about: 'what one turn of the control law costs, and a tick of 10,000 limiters',
    run: async () => (await import('./decide.mjs')).decideBench(),
  },
  enforce: {
    about: 'decisions against peers, a lone decision, CPU, memory, Fastify',
    run: async () => (await import('./enforce.mjs')).enforceBench(),
  },
};

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith('-'));
const unknown = [
  ...args.filter((arg) => arg.startsWith('-') && arg !== '--json'),
  ...names.filter((name) => !Object.hasOwn(BENCHES, name)),
];

if (unknown.length > 0 || names.length > 1) {
  process.stderr.write(
    `bench: ${unknown.length > 0 ? `unknown: ${unknown.join(', ')}` : 'one at a time'}. Benches: ${Object.keys(BENCHES).join(', ')}; option: --json.\n`,
  );
  process.exitCode = 64;
} else if (names.length === 0) {
  for (const [name, { about }] of Object.entries(BENCHES)) {
    process.stdout.write(`${name.padEnd(10)}${about}\n`);
  }
  process.stderr.write('Run one: npm run bench -- decide\n');
} else {
  const [name] = names;
  const result = await BENCHES[name].run();
  printBench(name, result, args.includes('--json'));
}
