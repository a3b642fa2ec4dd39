/** `flyball audit --follow` as its own process: entries as they come, through a restart of Redis, until Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import { cli, MAIN, seedLimiter } from '../support/cli-run.js';
import { readingRig } from '../support/reading-rig.js';

const rig = readingRig();
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await new Promise((done) => child.once('close', done));
    }
  }
});

function follow(...args: string[]) {
  const child = spawn(process.execPath, [MAIN, 'audit', ...args, '--follow'], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...rig.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const seen = { out: '', err: '' };
  child.stdout.on('data', (chunk) => {
    seen.out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    seen.err += chunk;
  });
  const closed = new Promise<number | null>((done) => child.once('close', (code) => done(code)));
  return { child, seen, closed };
}

async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const pin = (rate: number, limiter = 'checkout') =>
  cli(['pin', limiter, '--rate', String(rate), '--yes'], { env: rig.env });

test('what stands, then what comes, also of limiters that come; Ctrl-C ends it with 130', {
  timeout: 90_000,
}, async () => {
  await pin(80);
  const { child, seen, closed } = follow();
  await until(() => seen.err.includes('Ctrl-C ends it'), 'the start');
  expect(seen.out.match(/^r\d+/gm)).toEqual(['r1', 'r2']);
  await pin(70);
  await until(() => seen.out.includes('80 → 70/s'), 'the new entry');
  await seedLimiter(rig.redis, { name: 'search' });
  await until(() => / {2}search {2}/.test(seen.out), 'the new limiter');
  expect(seen.out.match(/^r\d+/gm)).toEqual(['r1', 'r2', 'r3', 'r1']);
  child.kill('SIGINT');
  expect(await closed).toBe(130);
});

test('a restart of Redis is told and passed; one entry a line with --json, chosen by who', {
  timeout: 120_000,
}, async () => {
  const { child, seen, closed } = follow('checkout', '--json', '--actor', 'person');
  await until(() => seen.err.includes('Ctrl-C ends it'), 'the start');
  expect(seen.out).toBe('');
  await rig.server.kill();
  await until(() => seen.err.includes('Redis does not answer'), 'the outage');
  await rig.server.restart();
  await until(() => seen.err.includes('Redis is back'), 'the return');
  await seedLimiter(rig.redis, { name: 'checkout' });
  await pin(60);
  await until(() => seen.out.includes('\n'), 'the entry');
  const [line, rest] = seen.out.split('\n');
  expect(JSON.parse(line!)).toMatchObject({ schema: 1, limiter: 'checkout', reason: 'pin' });
  expect(rest).toBe('');
  child.kill('SIGTERM');
  expect(await closed).toBe(130);
});
