import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { cli, MAIN } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText, until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { startTraffic, type Traffic } from '../support/traffic.js';

let server: TestRedis;
let daemons: DaemonSetup;
let traffic: Traffic | null = null;
beforeAll(async () => {
  server = await startRedis();
  daemons = daemonSetup(server.url);
});
afterAll(async () => {
  await daemons.close();
  await server.stop();
});
beforeEach(() => server.client().flushall());
afterEach(async () => {
  await traffic?.stop();
  traffic = null;
});

const SIGNALS = `
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    dbWait: { source: 'telemetry', stat: 'dbWait', of: 0.95 },
    errors: { source: 'telemetry', stat: 'errorRatio' },
    locks: { source: 'postgres', stat: 'waiting', url: { env: 'NO_SUCH_VARIABLE' } },
  },
  objective: { p95: { below: '5s' }, locks: { below: 5 } },
  breaker: { on: 'errors', above: '50%' },
  onMissing: 'glide',
  control: { law: 'adaptive' },`;

const run = (...args: string[]) =>
  cli([...args], { env: { FLYBALL_REDIS_URL: server.url, PATH: process.env.PATH } });

interface Shown {
  limiters: {
    limiter: string;
    from: string;
    owner: string | null;
    held: string | null;
    signals: Signal[];
  }[];
}
interface Signal {
  signal: string;
  value: number | null;
  verdict: string;
  follows: string;
  reason: string | null;
  detail: string | null;
  [field: string]: unknown;
}

async function shown(...args: string[]) {
  const { code, stdout } = await run('signals', '--json', ...args);
  const told = JSON.parse(stdout) as Shown;
  const [one] = told.limiters;
  const signal = (name: string) => one!.signals.find((each) => each.signal === name)!;
  return { code, one: one!, signal, count: told.limiters.length };
}

test('as its daemon sees them: reading, verdict, what follows and why; 1 while one is missing', async () => {
  daemons.write('checkout.ts', policyText(SIGNALS));
  const daemon = daemons.start();
  traffic = startTraffic(server, 'checkout', 20);
  await until('a fresh p95', async () => {
    const text = await server.client().get(limiterKeys({ name: 'checkout' }).status);
    return text?.includes('"p95":{"value":') && text.includes('"fresh":true');
  });
  const { code, one, signal } = await until('a shown p95', async () => {
    const now = await shown('checkout');
    return now.one.from === 'daemon' && now.signal('p95').verdict === 'fresh' && now;
  });
  expect(code).toBe(1);
  expect(one.owner).toMatch(/:\d+:[0-9a-f]{8}$/);
  expect(signal('p95')).toMatchObject({
    ...{ source: 'telemetry', unit: 'ms', setpoint: 5000, side: 'below' },
    ...{ follows: 'may raise', reason: null },
  });
  expect(signal('p95').value).toBeGreaterThan(15);
  expect(signal('p95').count).toBeGreaterThan(0);
  expect(signal('dbWait')).toMatchObject({ setpoint: null, follows: 'shown only' });
  expect(signal('errors').tripsAbove).toBe(0.5);
  expect(signal('locks')).toMatchObject({
    ...{ verdict: 'missing', reason: 'error', value: null, follows: 'holds, glides after 60 s' },
    detail: expect.stringContaining('NO_SUCH_VARIABLE is not set'),
  });

  const { stdout } = await run('signals');
  expect(stdout).toMatch(/^checkout {2}as .* saw them \d+ m?s ago\n/);
  expect(stdout).toMatch(/\np95 +\d+(\.\d+)? ms +below 5000 ms +/);
  expect(stdout).toMatch(
    /\nlocks +– +below 5 .* missing +holds, glides after 60 s +error: the environment/,
  );
  daemon.signal('SIGTERM');
  await daemon.exited;

  // Nobody leads it any more: it reads the sources itself, and says so.
  await server.client().del(limiterKeys({ name: 'checkout' }).status);
  const alone = await shown('checkout');
  expect(alone.one).toMatchObject({ from: 'here', owner: null });
  expect(alone.signal('p95').value).toBeGreaterThan(15);
});

test('a policy file is read before it is adopted; thin evidence and no traffic are no fault: 0', async () => {
  const file = join(daemons.dir, 'shop.mjs');
  writeFileSync(
    file,
    `export default { limiter: { name: 'shop', rate: 10, capacity: 10 },
      signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
      objective: { p95: { below: '5s' } } };`,
  );
  traffic = startTraffic(server, 'shop', 5);
  await until('a flush', async () => (await server.client().keys('flyball:{shop}:t:*')).length > 0);
  const { code, one, signal } = await until('a reading', async () => {
    const now = await shown(file);
    return now.signal('p95').verdict === 'fresh' && now;
  });
  expect(code).toBe(0);
  expect(one).toMatchObject({ limiter: 'shop', from: 'here' });
  expect(signal('p95').follows).toBe('may raise');
  const none = await run('signals');
  expect(none).toMatchObject({ code: 0, stdout: '' });
  expect(none.stderr).toMatch(/No limiter has an adopted policy/);
  expect((await run('signals', 'nobody')).code).toBe(64);
});

test('the functions of a policy file are called before it is adopted', async () => {
  const file = join(daemons.dir, 'depths.ts');
  writeFileSync(
    file,
    `import { custom, definePolicy } from 'flyball';
    export default definePolicy({
      limiter: { name: 'depths', rate: 10, capacity: 10 },
      signals: { depth: custom(() => 42) },
      objective: { depth: { below: 1000 } },
    });`,
  );
  // On a busy machine reading the file or starting its process may take longer than the command waits.
  const { code, stdout } = await until('an answer', async () => {
    const now = await run('signals', file);
    return / 42 /.test(now.stdout) && now;
  });
  expect(stdout).toMatch(/^depths {2}read here and now/);
  expect(stdout).toMatch(/\ndepth +42 +below 1000 /);
  expect(code).toBe(0);
});

test('--watch shows them again each second, and Ctrl-C ends it', async () => {
  const file = join(daemons.dir, 'watch.mjs');
  writeFileSync(
    file,
    `export default { limiter: { name: 'watched', rate: 10, capacity: 10 },
      signals: { locks: { source: 'postgres', stat: 'waiting', url: { env: 'NO_SUCH_VARIABLE' } } } };`,
  );
  const child = spawn(process.execPath, [MAIN, 'signals', file, '--watch', '--json'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, FLYBALL_REDIS_URL: server.url },
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  const ended = new Promise<number | null>((ok) => child.once('close', ok));
  await until('two lines', () => out.split('\n').length > 2);
  child.kill('SIGINT');
  expect(await ended).toBe(130);
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Shown & { schema: number });
  expect(lines.length).toBeGreaterThan(1);
  expect(lines[0]).toMatchObject({ schema: 1, limiters: [{ limiter: 'watched', from: 'here' }] });
});
