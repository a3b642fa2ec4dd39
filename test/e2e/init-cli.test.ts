/** `flyball init` in folders of all kinds: what it finds, asks, writes and prints; and what it never does. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { loadPolicies } from '../../src/policy/load.js';
import { cli, cliProcess } from '../support/cli-run.js';
import { ROOT } from '../support/source-tree.js';

// A policy is loaded in a process of its own; on a busy machine that takes a while.
vi.setConfig({ testTimeout: 180_000 });

const home = process.cwd();
const root = mkdtempSync(join(tmpdir(), 'flyball-init-'));
let folder: string;
let count = 0;
/** No server listens there: the guesses of `init` must not find the one of this machine. */
const NOWHERE = { FLYBALL_REDIS_URL: 'redis://127.0.0.1:1' };

beforeEach(() => {
  folder = join(root, `f${count++}`);
  mkdirSync(folder);
  process.chdir(folder);
});
afterEach(() => process.chdir(home));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const run = (args: string, env: NodeJS.ProcessEnv = {}, typed?: string) =>
  cli(args.trim().split(' '), {
    env: { ...NOWHERE, ...env },
    ...(typed === undefined ? {} : { typed }),
  });
const put = (file: string, text: string) => writeFileSync(join(folder, file), text);
const manifest = (value: object) => put('package.json', JSON.stringify(value));

describe('what is written', () => {
  test('an empty folder: a policy that passes check, its code to paste, three steps', async () => {
    const made = await run('init orders');
    expect(made).toMatchObject({ code: 0 });
    expect(made.stdout).toMatch(/^policies\/orders\.ts$/m);
    expect(made.stdout).toContain(`import { flyball } from 'flyball/http';`);
    expect(made.stdout).toContain(`createLimiter({ name: 'orders', rate: 100, capacity: 200 })`);
    expect(made.stderr).toMatch(/1\. .*\n +npm install flyball\n/);
    expect(made.stderr).toMatch(/2\. .*\n +flyball check policies\/orders\.ts --live\n/);
    expect(made.stderr).toMatch(/3\. .*\n +flyball run policies\n/);
    const { loaded, faults } = await loadPolicies('policies');
    expect(faults).toEqual([]);
    expect(loaded[0]!.policy).toMatchObject({ mode: 'recommend', limiter: { name: 'orders' } });
  });

  test('it never overwrites, and tells so before it asks or measures', async () => {
    mkdirSync('policies');
    put('policies/orders.ts', '// mine');
    const again = await run('init orders --fit 10m', {}, 'never\n');
    expect(again).toMatchObject({ code: 64, stdout: '' });
    expect(again.stderr).toContain('policies/orders.ts exists and is left as it is.');
    expect(readFileSync('policies/orders.ts', 'utf8')).toBe('// mine');
  });

  test('--dry-run writes nothing: stdout is the policy alone', async () => {
    const dry = await run('init orders --rate 50 --in-flight 12 --dry-run');
    expect(dry.code).toBe(0);
    expect(dry.stdout).toMatch(/^import \{ adaptive/);
    expect(dry.stdout).toMatch(/\}\);\n$/);
    expect(dry.stdout).toContain('rate: 50, // tokens per second, a request takes one; as given');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('--json: one object with what was found, the policy, the code and the steps', async () => {
    const { code, stdout } = await run('init orders --json --dry-run');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      ...{ schema: 1, file: 'policies/orders.ts', limiter: 'orders', written: false },
      policy: expect.stringContaining("name: 'orders'"),
      found: {
        framework: 'http',
        redis: { url: 'redis://127.0.0.1:1', from: 'FLYBALL_REDIS_URL', answers: false },
        database: null,
      },
      ...{ fit: null, paste: expect.stringContaining('createLimiter') },
      next: Array(3).fill({ why: expect.any(String), command: expect.any(String) }),
    });
  });

  test.each([
    [1, undefined],
    [3.7, 1],
    [100_000, 100_000],
  ])('rate %d, cap %s: valid, in auto too, with a database', async (rate, cap) => {
    put('.env', 'DATABASE_URL=postgres://u:secret@db/orders\n');
    const flags = `--rate ${rate}${cap === undefined ? '' : ` --in-flight ${cap}`}`;
    const made = await run(`init orders ${flags}`);
    expect(made.stdout + made.stderr).not.toContain('secret');
    const text = readFileSync('policies/orders.ts', 'utf8');
    expect(text).toContain("dbWait: postgres.waiting({ url: env('DATABASE_URL') })");
    expect(text).not.toContain('secret');
    writeFileSync('policies/orders.ts', text.replace("mode: 'recommend'", "mode: 'auto'"));
    expect((await loadPolicies('policies')).faults).toEqual([]);
  });

  test('what it writes and prints passes the compiler', async () => {
    const types = join(ROOT, 'test/types/.init');
    mkdirSync(types, { recursive: true });
    try {
      for (const database of ['postgres', 'mysql'] as const) {
        const made = await run(`init ${database} --in-flight 9 --dry-run`, {
          DB_URL: `${database}://db/orders`,
        });
        writeFileSync(join(types, `${database}.ts`), made.stdout);
      }
      const config = {
        extends: join(ROOT, 'tsconfig.json'),
        compilerOptions: { noEmit: true, paths: { flyball: [join(ROOT, 'src/index.ts')] } },
        include: ['*.ts'],
      };
      writeFileSync(join(types, 'tsconfig.json'), JSON.stringify(config));
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', types], {
        encoding: 'utf8',
      });
      expect(stdout).toBe('');
      expect(status).toBe(0);
    } finally {
      rmSync(types, { recursive: true, force: true });
    }
  });
});

describe('what it finds', () => {
  test.each([
    ['express', { express: '5' }, 'flyball/express', 'app.use(flyball(limiter));'],
    ['fastify', { fastify: '5' }, 'flyball/fastify', 'app.register(flyball, { limiter });'],
    ['hono', { hono: '4' }, 'flyball/hono', 'app.use(flyball(limiter));'],
    ['koa', { koa: '3' }, 'flyball/http', 'if (await guard(ctx.req, ctx.res)) return next();'],
    ['nest', { express: '5', '@nestjs/core': '11' }, 'flyball/http', '(go) => go && next(), next)'],
  ])(
    '%s, by package.json, in ES modules and CommonJS',
    async (framework, dependencies, from, code) => {
      manifest({ name: '@acme/Orders API', type: 'module', dependencies });
      const esm = JSON.parse((await run('init --yes --dry-run --json')).stdout);
      expect(esm).toMatchObject({ limiter: 'orders-api', found: { framework } });
      expect(esm.paste).toContain(`import { flyball } from '${from}';`);
      expect(esm.paste).toContain(code);
      manifest({ name: 'orders', dependencies: { ...dependencies, flyball: '1' } });
      const cjs = JSON.parse((await run('init --yes --dry-run --json')).stdout);
      expect(cjs.paste).toContain(`const { flyball } = require('${from}');`);
      expect(cjs.paste).not.toMatch(/^import |^await /m);
      expect(cjs.next[0].command).toBe('npm ls flyball');
    },
  );

  test('a guess that does not answer is not given to run: it brings a Redis of its own', async () => {
    const guessed = await run('init orders --json', { FLYBALL_REDIS_URL: '' });
    const { found, next } = JSON.parse(guessed.stdout);
    expect(found.redis.from).toBe('localhost');
    const url = found.redis.answers ? 'FLYBALL_REDIS_URL="redis://127.0.0.1:6379" ' : '';
    expect(next[2].command).toBe(`${url}flyball run policies`);
  });

  test('a compose file names Redis and the database, by the port that is published', async () => {
    put(
      'compose.yaml',
      `services:
  cache:
    ports:
      - "1:6379"
    image: docker.io/valkey/valkey:8-alpine
  orders-db:
    image: 'mariadb:11'
volumes:
  data:
`,
    );
    const { found, next, policy } = JSON.parse(
      (await run('init orders --dry-run --json', { FLYBALL_REDIS_URL: '' })).stdout,
    );
    // It may be that a Redis answers on this machine's own port: that is the better guess then.
    expect([found.redis.from, found.redis.answers]).toEqual(
      found.redis.answers ? ['localhost', true] : ['compose.yaml', false],
    );
    expect(found.database).toEqual({
      ...{ kind: 'mysql', variable: 'DATABASE_URL', from: 'compose.yaml (orders-db)' },
    });
    expect(policy).toContain("mysql.waiting({ url: env('DATABASE_URL') })");
    expect(next[0].command).toBe('npm install flyball mysql2');
    expect(next[2].command).toMatch(
      /^FLYBALL_REDIS_URL="redis:\/\/127\.0\.0\.1:\d+" flyball run policies$/,
    );
  });

  test('REDIS_URL of another is handed on by its name, without its password', async () => {
    const env = { FLYBALL_REDIS_URL: '', REDIS_URL: 'redis://:hush@127.0.0.1:1/2' };
    const { stdout, stderr } = await run('init orders --dry-run --json', env);
    const { next, found } = JSON.parse(stdout);
    if (!found.redis.answers)
      expect(next[2].command).toBe('FLYBALL_REDIS_URL="$REDIS_URL" flyball run policies');
    expect(stdout + stderr).not.toContain('hush');
  });

  test('--database: another variable, none, and what is no variable', async () => {
    const env = { DATABASE_URL: 'postgres://db/a', ORDERS: 'mysql://db/b' };
    const kind = async (flag: string) =>
      JSON.parse((await run(`init orders --dry-run --json ${flag}`, env)).stdout).found?.database;
    expect(await kind('')).toMatchObject({ kind: 'postgres', variable: 'DATABASE_URL' });
    expect(await kind('--database ORDERS')).toMatchObject({ kind: 'mysql', variable: 'ORDERS' });
    expect(await kind('--database none')).toBeNull();
    for (const [flag, said] of [
      ['NOT_SET', 'this variable is not set here'],
      ['FLYBALL_REDIS_URL', 'begins with neither postgres:// nor mysql://'],
      ['postgres://u:secret@db/x', 'is not the name of an environment variable'],
    ] as const) {
      const shown = await run(`init orders --dry-run --database ${flag}`, env);
      expect(shown, flag).toMatchObject({ code: 64, stdout: '' });
      expect(shown.stderr, flag).toContain(said);
      expect(shown.stderr).not.toContain('secret');
    }
  });
});

describe('how it asks', () => {
  test('without a name and a terminal it asks for a name; --yes takes the folder’s', async () => {
    manifest({ name: 'orders' });
    const refused = await run('init');
    expect(refused).toMatchObject({ code: 64, stdout: '' });
    expect(refused.stderr).toContain('Write flyball init orders, or add --yes');
    expect((await run('init --yes')).stdout).toMatch(/^policies\/orders\.ts$/m);
  });

  test.each([
    ['init orders --rate 0.5', '--rate: "0.5" is not within 1 … 100000 per second.'],
    ['init orders --in-flight 200000', '--in-flight 200000 is not within 1 … 100000.'],
    ['init orders --fit 2h', '--fit: "2h" is more than 1h. Write 10m.'],
    ['init orders --fit 5', '"5" has no unit'],
    ['init orders --framework expres', 'Allowed choices are express, fastify'],
    ['init orders --metrics http://h/metrics', '--metrics is a page to measure by. Add --fit 10m.'],
    ['init orders --fit 1s', 'there is nothing to measure'],
    ['init Orders', 'is not allowed. Use 1 to 64 of a-z'],
  ])('%s is answered with the mend', async (args, said) => {
    const shown = await run(args);
    expect(shown).toMatchObject({ code: 64, stdout: '' });
    expect(shown.stderr).toContain(said);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('the built program, in an empty folder, without a terminal and without colour', async () => {
    const made = await cliProcess(['init', 'orders', '--dir', join(folder, 'mine')], NOWHERE);
    expect(made).toMatchObject({ code: 0 });
    expect(made.stdout + made.stderr).not.toContain('\x1b');
    expect(readdirSync(join(folder, 'mine'))).toEqual(['orders.ts']);
  });
});
