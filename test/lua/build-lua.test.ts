/** The build of the scripts reads their headers, refuses bodies that stray from them, and its result is fresh. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const { generate } = (await import(join(ROOT, 'scripts/build-lua.mjs'))) as {
  generate(folder?: string): string;
};

const folder = mkdtempSync(join(tmpdir(), 'flyball-lua-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HEADER = `-- one: does one thing.
-- KEYS:
--   params   the params
-- ARGV:
--   nowUs    the time
-- RETURNS: 1
-- TIME: never
-- COMPLEXITY: O(1)
`;
const BODY = "return redis.call('GET', KEYS[1] .. ARGV[1])\n";

function build(text: string, parts: Record<string, string> = {}): string {
  const place = mkdtempSync(join(folder, 'x'));
  mkdirSync(join(place, 'lib'));
  writeFileSync(join(place, 'one.lua'), text);
  for (const [name, part] of Object.entries(parts)) writeFileSync(join(place, 'lib', name), part);
  return generate(place);
}

test('the generated module is fresh', () => {
  expect(readFileSync(join(ROOT, 'src/redis/scripts.gen.ts'), 'utf8')).toBe(generate());
});

test('a script becomes a typed constant with its hash; includes stand where they are named', () => {
  const text = build(`${HEADER}if true then\n  --- @include lib/x.lua\nend\n${BODY}`, {
    'x.lua': '-- x: a part.\nlocal x = 1 -- a comment\n',
  });
  expect(text).toContain('export type OneKeys = [params: string];');
  expect(text).toContain('export const oneScript: Script<OneKeys, OneArgs>');
  expect(text).toContain('if true then\\n\\\n  local x = 1\\n\\\nend');
  expect(text).toMatch(/sha: '[0-9a-f]{40}'/);
});

test.each([
  [
    'a section that is missing',
    HEADER.replace('-- TIME: never\n', '') + BODY,
    'the header has no TIME',
  ],
  ['a section that is empty', HEADER.replace('RETURNS: 1', 'RETURNS:') + BODY, 'RETURNS is empty'],
  ['no purpose', HEADER.replace('one: does', 'does') + BODY, 'the header begins with "one: "'],
  [
    'a key that is not declared',
    `${HEADER}${BODY}local k = KEYS[2]\n`,
    'uses KEYS[2], which the header does not declare',
  ],
  ['an argument that is not declared', `${HEADER}${BODY}local a = ARGV[3]\n`, 'uses ARGV[3]'],
  [
    'a declared argument that is not used',
    HEADER + BODY.replace(' .. ARGV[1]', ''),
    'declares nowUs, but the body never uses ARGV[1]',
  ],
  [
    'a walk over keys that do not repeat',
    `${HEADER}${BODY}for i = 1, #KEYS do end\n`,
    'walks over KEYS',
  ],
  [
    'a repeated name that is never walked',
    HEADER.replace('nowUs ', 'now... ') + BODY,
    'never walks over ARGV',
  ],
  [
    'a line that cannot be read',
    HEADER.replace('--   params   the', '--   params the') + BODY,
    'KEYS: cannot read',
  ],
  ['redis.log', `${HEADER}${BODY}redis.log(1, 'x')\n`, 'uses redis.log'],
  ['the KEYS command', `${HEADER}${BODY}redis.call('keys', '*')\n`, 'uses the KEYS command'],
  ['a loop without a bound', `${HEADER}${BODY}while true do end\n`, 'a loop without a bound'],
  ['a time that the header denies', `${HEADER}${BODY}redis.call('TIME')\n`, 'TIME says "never"'],
  [
    'an include that is missing',
    `${HEADER}--- @include lib/none.lua\n${BODY}`,
    'includes lib/none.lua, which does not exist',
  ],
])('%s fails the build', (_what, text, fault) => {
  expect(() => build(text)).toThrow(fault);
});

test('an include twice, or without its purpose, fails the build; all faults are told at once', () => {
  const twice = '--- @include lib/x.lua\n--- @include lib/x.lua\n';
  const text = `${HEADER.replace('-- TIME: never\n', '')}${twice}${BODY}`;
  const fail = () => build(text, { 'x.lua': 'local function x() end\n' });
  for (const fault of [
    'no TIME',
    'includes lib/x.lua twice',
    'does not begin with "-- name: purpose"',
  ]) {
    expect(fail).toThrow(fault);
  }
});
