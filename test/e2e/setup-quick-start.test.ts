/** The README's first screen, typed as it stands: init, run, a service, a request, status. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { readRedisFile } from '../../src/redis/locate.js';
import { serversOf } from '../support/embedded.js';
import { freePort } from '../support/redis-server.js';
import { ROOT } from '../support/source-tree.js';

const dir = mkdtempSync(join(tmpdir(), 'flyball-start-'));
const started: ChildProcess[] = [];

afterEach(async () => {
  for (const child of started.splice(0).reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const gone = new Promise((ok) => child.once('exit', ok));
    child.kill('SIGTERM');
    await gone;
  }
  const left = serversOf(dir);
  for (const pid of left) process.kill(pid, 'SIGKILL');
  rmSync(dir, { recursive: true, force: true });
  // The last daemon to stop gracefully stops the embedded Redis.
  expect(left).toEqual([]);
});

test('the quick start of the README works as it stands', { timeout: 180_000 }, async () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const [, service] = /```js\n([\s\S]*?)```/.exec(readme)!;
  const commands = [...readme.matchAll(/^npx flyball (.*?) {2,}#/gm)].map(([, line]) => line!);
  expect(commands.map((line) => line.split(' ')[0])).toEqual(['init', 'run', 'status']);
  expect(service!.trim().split('\n').length).toBeLessThanOrEqual(10);

  // As `npm install flyball ioredis express` would leave it.
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(ROOT, join(dir, 'node_modules/flyball'));
  for (const name of ['express', 'ioredis']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name));
  }
  writeFileSync(join(dir, 'server.mjs'), service!);
  const main = join(ROOT, 'dist/cli/main.js');
  const [init, run, status] = commands.map((line) => line.split(' '));
  const port = await freePort();
  const env = { ...process.env, PORT: String(port), FLYBALL_HTTP_PORT: '0' };
  const once = (args: string[]) =>
    spawnSync(process.execPath, [main, ...args], { cwd: dir, env, encoding: 'utf8' });
  const start = (...args: string[]) => {
    const child = spawn(process.execPath, args, {
      cwd: dir,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    started.push(child);
  };

  expect(once(init!)).toMatchObject({ status: 0 });
  start(main, ...run!);
  // The service finds the embedded Redis by this file.
  await expect.poll(() => readRedisFile(join(dir, '.flyball')), { timeout: 30_000 }).not.toBeNull();
  start('server.mjs');
  const page = () => fetch(`http://127.0.0.1:${port}/hello`).catch(() => null);
  await expect.poll(async () => (await page())?.status, { timeout: 30_000 }).toBe(200);
  const managed = () => JSON.parse(once([...status!, '--json']).stdout || '{}');
  await expect.poll(managed, { timeout: 30_000 }).not.toHaveProperty('error');
  const answer = await page();
  expect(answer?.headers.get('ratelimit-policy')).toContain('"api"');
  expect(await answer?.json()).toEqual({ hello: 'world' });
});
