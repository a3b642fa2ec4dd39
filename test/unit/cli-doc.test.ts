/** docs/cli.md names every command and every flag of it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';
import { filesUnder } from '../support/source-tree.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
test('every command and every flag of it stands in docs/cli.md', async () => {
  const doc = readFileSync(join(root, 'docs/cli.md'), 'utf8');
  const program = createProgram(createIo(), await registersFor([]));
  expect(program.commands.map((command) => command.name())).toEqual([
    'run',
    'demo',
    'check',
    'plan',
    'apply',
    'policy',
    'simulate',
    'backtest',
    'init',
    'status',
    'signals',
    'tail',
    'top',
    'audit',
    'explain',
    'report',
    'debug',
    'rollback',
    'pin',
    'release',
    'freeze',
    'thaw',
    'bounds',
    'rollout',
    'promote',
    'approve',
    'tune',
    'size',
    'trip',
    'reset',
    'subject',
    'functions',
    'notify',
    'token',
    'doctor',
    'completion',
    '__complete',
  ]);
  for (const command of program.commands) {
    expect(doc, command.name()).toMatch(new RegExp(`\`(flyball )?${command.name()}\\b`));
    expect(command.description(), command.name()).toMatch(/\.$/);
    for (const option of [...command.options, ...command.commands.flatMap((c) => c.options)]) {
      expect(doc, `${command.name()} ${option.long}`).toMatch(new RegExp(`[ \`]${option.long}\\b`));
    }
  }
});

test('each command that a document shows is one, with each of its flags', async () => {
  const program = createProgram(createIo(), await registersFor([]));
  const documents = [
    ...['README', 'ARCHITECTURE', 'CONTRIBUTING'].flatMap((name) => filesUnder(`${name}.md`, /./)),
    ...['docs', 'deploy', 'examples'].flatMap((folder) => filesUnder(folder, /\.md$/)),
  ];
  const shown = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:^|[`$] ?|npx )flyball ([a-z][^`\n]*)/gm)].map((found) => ({
      path,
      // The demo takes any command after its name; what follows is a comment, or another program's.
      line: found[1]!.replace(/^demo (?=[a-z])/, '').split(/ #|[|;&>]| {3}/)[0]!,
    })),
  );
  expect(shown.length).toBeGreaterThan(200);
  const wrong = shown.flatMap(({ path, line }) => {
    const words = line.split(/\s+/);
    const command = program.commands.find((one) => one.name() === words[0]);
    if (command === undefined) return [`${path}: flyball ${line}`];
    const under = command.commands.find((one) => one.name() === words[1]);
    const known = [program, command, ...(under ? [under] : [])].flatMap((one) => one.options);
    const flags = line.match(/(?<=^|[\s[(])--[a-z][a-z0-9-]*/g) ?? [];
    return flags
      .filter((flag) => flag !== '--help' && !known.some(({ long }) => long === flag))
      .map((flag) => `${path}: flyball ${line.trim()}: ${flag}`);
  });
  expect(wrong).toEqual([]);
});
