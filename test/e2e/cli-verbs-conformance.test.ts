/** What every command owes a person and a program, for each that is registered, with every daemon dead. Stage: tests. */
import type { Command } from 'commander';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { createIo } from '../../src/cli/output.js';
import { createProgram } from '../../src/cli/program.js';
import { registersFor } from '../../src/cli/registry.js';
import { FORMS, VERB_FORM } from '../support/cli-forms.js';
import { type ChangeRow, type LookRow, ROWS, type World } from '../support/cli-rows.js';
import { cli, mustRead, seedLimiter } from '../support/cli-run.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

const checkout = { name: 'checkout' };
let server: TestRedis;
let redis: Redis;
let world: World;
let commands: Map<string, Command>;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  world = { redis, env: { FLYBALL_REDIS_URL: server.url }, folder: tempFolder('conformance') };
  commands = new Map(leaves(createProgram(createIo(), await registersFor([])), ''));
});
afterAll(() => server.stop());
beforeEach(async () => {
  await redis.flushall();
  await seedLimiter(redis, checkout);
});

/** Those that do something by themselves. */
function leaves(parent: Command, path: string): [string, Command][] {
  return parent.commands.flatMap((command): [string, Command][] => {
    const at = `${path} ${command.name()}`.trim();
    const below = leaves(command, at);
    const acts = below.length === 0 || command.registeredArguments.length > 0;
    return [...(acts ? [[at, command] as [string, Command]] : []), ...below];
  });
}

const run = (
  path: string,
  args: string,
  options: { typed?: string; env?: NodeJS.ProcessEnv } = {},
) =>
  cli(
    `${path} ${args}`.split(' ').filter((word) => word !== ''),
    {
      ...options,
      env: { ...world.env, ...options.env },
    },
  );

/** Each key, to the byte. */
async function everything(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const key of (await redis.keys('*')).sort()) {
    found[key] = (await redis.dumpBuffer(key))?.toString('base64') ?? '';
  }
  return found;
}

async function ready(row: ChangeRow | LookRow): Promise<string> {
  await row.given?.(world);
  return typeof row.args === 'string' ? row.args : row.args(world);
}

/** Its JSON has the fields of its row, and the form of what it tells. */
function expectForm(path: string, row: ChangeRow | LookRow, stdout: string): void {
  const said = JSON.parse(stdout);
  expect(said.schema).toBe(1);
  for (const field of row.json) expect(said, field).toHaveProperty(field);
  const form = FORMS[path] ?? (row.json.includes('verb') ? VERB_FORM : undefined);
  expect(form?.safeParse(said).error?.issues ?? []).toEqual([]);
}

// Moves of the cursor, as the question needs them, are no colour.
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`);
const named = <K extends string>(kind: K) =>
  Object.entries(ROWS).filter(([, row]) => row.kind === kind) as [
    string,
    Extract<(typeof ROWS)[string], { kind: K }>,
  ][];

test('every command has a row in test/support/cli-rows.ts, and every row a command', () => {
  expect(Object.keys(ROWS).sort()).toEqual([...commands.keys()].sort());
});

describe.each(Object.entries(ROWS))('%s', (path, row) => {
  test('--help shows examples', async () => {
    const help = await run(path, '--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    if (path.startsWith('__')) return;
    expect(help.stdout).toMatch(new RegExp(`Examples:\\n( .*)?flyball ${path.split(' ')[0]}`));
    expect(help.stdout).toMatch(/Usage: flyball /);
  });

  test('an option that it does not have: exit 64, a code, and where to look; as JSON too', async () => {
    const wrong = await run(path, `--dry-rum ${row.required ?? ''}`);
    expect(wrong.code).toBe(64);
    expect(wrong.stderr).toMatch(/^error: FLYBALL_E_CLI_[A-Z]+: .*--dry-rum/);
    const takesDryRun = commands.get(path)!.options.some(({ long }) => long === '--dry-run');
    if (takesDryRun) expect(wrong.stderr).toContain('Did you mean --dry-run?');
    const json = await run(path, `--dry-rum --json ${row.required ?? ''}`);
    expect(json.code).toBe(64);
    expect(JSON.parse(json.stdout)).toEqual({
      schema: 1,
      error: { code: expect.stringMatching(/^FLYBALL_E_CLI_/), message: expect.any(String) },
    });
  });

  test('a wrong call: exit 64 and what to do about it', async () => {
    const [args, says] = row.wrong;
    if (row.kind !== 'apart') await row.given?.(world);
    const before = await everything();
    const wrong = await run(path, args);
    expect(wrong.stderr).toMatch(says);
    expect(wrong.code).toBe(64);
    expect(wrong.stdout).toBe('');
    expect(await everything()).toEqual(before);
  });
});

describe.each(named('change'))('%s changes what is in force', (path, row) => {
  test('without a terminal it needs --yes; --dry-run shows and writes nothing', async () => {
    const args = await ready(row);
    const before = await everything();
    for (const flags of ['', ' --json']) {
      const refused = await run(path, `${args}${flags}`);
      expect(refused.code).toBe(64);
      expect(refused.stderr).toContain('FLYBALL_E_CLI_CONFIRM');
    }
    const dry = await run(path, `${args} --dry-run`);
    expect(dry.code).toBe(0);
    expect(dry.stdout).not.toBe('');
    const json = await run(path, `${args} --dry-run --json`);
    expect(json.code).toBe(0);
    expectForm(path, row, json.stdout);
    expect(json.stdout).toContain('dry_run');
    expect(await everything()).toEqual(before);
  });

  test('at a terminal it shows, asks once, and takes anything but yes for no', async () => {
    const args = await ready(row);
    const before = await everything();
    for (const typed of ['\n', 'maybe\n']) {
      const no = await run(path, args, { typed });
      expect(no.code).toBe(1);
      expect(no.stderr.match(/\[y\/N\]/g)).toHaveLength(1);
      expect(no.stderr).toContain('checkout');
    }
    expect(await everything()).toEqual(before);
    const yes = await run(path, `${args} --reason INC-118`, { typed: 'y\n' });
    expect(yes.stderr.match(/\[y\/N\]/g)).toHaveLength(1);
    expect(yes.code).toBe(0);
    const { entries } = await readEntries(redis, checkout, { actor: 'person', limit: 1 });
    expect(entries[0]!.body).toMatchObject({
      actor: { kind: 'person', name: expect.stringMatching(/.+@.+ \(unverified\)/) },
      detail: { why: 'INC-118' },
    });
  });

  test('with --yes it is one revision with one entry, and its JSON says so', async () => {
    const args = await ready(row);
    const { revision } = await mustRead(redis, checkout);
    const done = await run(path, `${args} --yes --json`);
    expect(done.code).toBe(0);
    expectForm(path, row, done.stdout);
    expect((await mustRead(redis, checkout)).revision).toBe(revision + 1);
    const { entries } = await readEntries(redis, checkout, { revision: revision + 1 });
    expect(entries).toHaveLength(1);
    expect((await verifyAudit(redis, checkout)).verdict).not.toBe('broken');
  });

  test('NO_COLOR: no escape to a terminal; without it, some', async () => {
    const args = await ready(row);
    const plain = await run(path, args, { typed: 'n\n' });
    expect(plain.stdout + plain.stderr).not.toMatch(COLOUR);
    const bright = await run(path, args, { typed: 'n\n', env: { NO_COLOR: '', TERM: 'xterm' } });
    expect(bright.stdout + bright.stderr).toMatch(COLOUR);
  });
});

describe.each(named('look'))('%s shows', (path, row) => {
  test('the same to people and programs, writes nothing, and no escape under NO_COLOR', async () => {
    const args = await ready(row);
    const before = await everything();
    const shown = await run(path, args);
    expect(shown.code).toBe(row.code ?? 0);
    expect(shown.stdout).not.toBe('');
    expect(shown.stdout).not.toMatch(COLOUR);
    const json = await run(path, `${args} --json`);
    expect(json.code).toBe(row.code ?? 0);
    expectForm(path, row, json.stdout);
    expect(await everything()).toEqual(before);
  });

  test('at a terminal: no escape under NO_COLOR, and none in JSON at all', async () => {
    const args = await ready(row);
    const { stdout, stderr } = await run(path, args, { typed: '\n' });
    expect(stdout).not.toBe('');
    expect(stdout + stderr).not.toMatch(COLOUR);
    const bright = { NO_COLOR: '', TERM: 'xterm', FORCE_COLOR: '1' };
    const json = await run(path, `${args} --json`, { typed: '\n', env: bright });
    expectForm(path, row, json.stdout);
    expect(json.stdout).not.toMatch(COLOUR);
  });
});
