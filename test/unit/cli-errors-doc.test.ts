/** docs/errors.md lists exactly the error codes that the sources can give, and docs/cli.md every command. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const CODE = /FLYBALL_E_[A-Z][A-Z_]*[A-Z]\b(?!_)/g;

function codes(folder: string): Set<string> {
  const found = new Set<string>();
  for (const name of readdirSync(join(root, folder), { recursive: true }) as string[]) {
    if (!/\.(ts|lua)$/.test(name) || name.endsWith('.gen.ts')) continue;
    const text = readFileSync(join(root, folder, name), 'utf8');
    for (const [code] of text.matchAll(CODE)) found.add(code);
  }
  return found;
}

test('every code of the sources is documented, and no other', () => {
  const doc = readFileSync(join(root, 'docs/errors.md'), 'utf8');
  const documented = [...new Set(doc.match(CODE) ?? [])].sort();
  expect(documented).toEqual([...new Set([...codes('src'), ...codes('lua')])].sort());
});

test('every command stands in docs/cli.md', async () => {
  const doc = readFileSync(join(root, 'docs/cli.md'), 'utf8');
  const program = createProgram(createIo(), await registersFor([]));
  expect(program.commands.map((command) => command.name())).toEqual([
    'run',
    'demo',
    'check',
    'init',
    'status',
    'audit',
    'explain',
    'rollback',
    'pin',
    'release',
    'freeze',
    'thaw',
    'trip',
    'reset',
    'doctor',
  ]);
  for (const command of program.commands) {
    expect(doc, command.name()).toMatch(new RegExp(`\`(flyball )?${command.name()}\\b`));
    expect(command.description(), command.name()).toMatch(/\.$/);
  }
});
