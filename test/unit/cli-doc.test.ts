/** docs/cli.md names every command and every flag of it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';

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
