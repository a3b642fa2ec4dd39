import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { systemClock } from '../../src/clock.js';
import { watchClocks } from '../../src/daemon/clock-watch.js';
import { createLog } from '../../src/log.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { createMetrics } from '../../src/report/metrics.js';
import type { LimiterStatus } from '../../src/report/status.js';
import { createTelemetrySource } from '../../src/sense/telemetry.js';
import { type DaemonSetup, policyText, until } from '../support/daemon.js';
import { daemonBench } from '../support/daemon-bench.js';
import type { TestRedis } from '../support/redis-server.js';

const SHIFT = new URL('../support/shifted-clock.mjs', import.meta.url).href;
const MINUTE = 60_000;
const address = { name: 'checkout' };

let server: TestRedis;
let daemons: DaemonSetup;
let dir: string;
let shiftFile: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-clock-'));
  shiftFile = join(dir, 'shift-ms');
});
afterAll(() => rmSync(dir, { recursive: true }));
daemonBench((bench) => {
  ({ server, setup: daemons } = bench);
  daemons.write('checkout.ts', policyText());
});

const decides = (reason: string | undefined) => reason !== undefined && reason !== 'clock_skew';

/** The wall clock of a process started with `shifted` is off by so many ms from now on. */
const shift = (ms: number) => writeFileSync(shiftFile, String(ms));
const shifted = () => ({ NODE_OPTIONS: `--import=${SHIFT}`, CLOCK_SHIFT_FILE: shiftFile });

async function status(): Promise<LimiterStatus | null> {
  const text = await server.client().get(limiterKeys(address).status);
  return text === null ? null : (JSON.parse(text) as LimiterStatus);
}

test('more than five minutes apart, run refuses to start: 78, and a sentence that says what to do', async () => {
  shift(-6 * MINUTE);
  const daemon = daemons.start(shifted());
  expect(await daemon.exited).toEqual({ code: 78, signal: null });
  expect(daemon.stderr()).toMatch(
    /FLYBALL_E_CONFIG_CLOCK_SKEW: Redis's clock is 6 min ahead of this machine's.*Run NTP/,
  );
  // Nothing was adopted.
  expect(await server.client().keys('*')).toEqual([]);
});

test('a running daemon holds while the clocks are minutes apart, and goes on by itself', async () => {
  shift(0);
  const daemon = daemons.start(shifted());
  await until('a tick', async () => decides((await status())?.decision.reason));
  shift(10 * MINUTE);
  await daemon.line('clock_skew', ({ level }) => level === 'error');
  const held = await until('a hold', async () => {
    const now = await status();
    return now?.decision.reason === 'clock_skew' && now;
  });
  expect(held.decision).toMatchObject({ change: false, rate: 100, verdicts: [], terms: {} });
  expect(held.decision.sentence).toMatch(/10 min behind this daemon's: nothing is decided/);
  expect(held.clocks!.redisMs! / MINUTE).toBeCloseTo(-10, 1);
  // Its word still counts: the limits hold, and do not glide.
  const [validUntil, rate] = await server
    .client()
    .hmget(limiterKeys(address).params, 'validUntil', 'rate');
  expect(Number(validUntil)).toBeGreaterThan(Date.now());
  expect(rate).toBe('100');
  const metrics = await (await fetch(`${await daemon.http()}/metrics`)).text();
  expect(
    Number(/flyball_daemon_clock_skew_seconds\{of="redis"\} (\S+)/.exec(metrics)![1]),
  ).toBeCloseTo(-600, -1);

  shift(0);
  await daemon.line('clocks_agree');
  await until('decisions', async () => decides((await status())?.decision.reason));
  const notes = await readEntries(server.client(), address, { limit: 20, kind: 'note' });
  expect(notes.entries.filter(({ body }) => body?.reason === 'clock_skew')).toHaveLength(1);
  daemon.signal('SIGTERM');
  expect((await daemon.exited).code).toBe(0);
});

test('from a second on people are told; it decides all the same', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'info' });
  const told = Object.assign(Object.create(log), {
    warn: (fields: Record<string, unknown>, text: string) => lines.push({ ...fields, text }),
    info: (fields: Record<string, unknown>, text: string) => lines.push({ ...fields, text }),
  });
  let aheadMs = -3000;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
  const redis = server.client();
  const clocks = await watchClocks({ redis, clock, log: told, metrics: createMetrics('test') });
  try {
    expect(clocks.heldFor).toBeNull();
    expect(clocks.skewMs).toBeGreaterThan(2000);
    expect(lines).toEqual([
      expect.objectContaining({
        event: 'clock_skew',
        text: expect.stringMatching(/[23].* s ahead of/),
      }),
    ]);
    // The clock is put right: the next turn sees it.
    aheadMs = 20_000;
    clocks.notice(Date.now());
    await expect.poll(() => clocks.skewMs).toBeLessThan(-19_000);
    aheadMs = 0;
    clocks.notice(Date.now());
    await expect.poll(() => lines.at(-1)).toMatchObject({ event: 'clocks_agree' });
  } finally {
    clocks.close();
  }
});

test('services say how far their clocks are off; when most are, the limiter holds', async () => {
  const redis = server.client();
  const telemetry = createTelemetrySource({ redis, address, clock: systemClock });
  await telemetry.read();
  shift(-400_000);
  const off = service(shifted());
  try {
    const reading = await until('the report of one that is off', async () => {
      const { reading } = await telemetry.read();
      return reading.kind === 'telemetry' && reading;
    });
    expect(reading.clockSkewMs! / 1000).toBeCloseTo(400, -1);
    expect(reading.clocksFar).toBe(true);
    // Two more with clocks that are right: it is the one that is wrong, and nobody holds for it.
    const right = [service({}), service({})];
    try {
      const mixed = await until('the report of all three', async () => {
        const { reading } = await telemetry.read();
        return (
          reading.kind === 'telemetry' && reading.processes === 3 && !reading.clocksFar && reading
        );
      });
      expect(mixed.clockSkewMs ?? 400_000).toBeGreaterThan(390_000);
    } finally {
      for (const each of right) each.kill();
    }
  } finally {
    off.kill();
  }
});

/** A service that reports; ended by its caller. */
function service(env: NodeJS.ProcessEnv) {
  const script = `
    const { createLimiter } = await import(${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)});
    const limiter = createLimiter({ name: 'checkout', rate: 100, capacity: 100, url: ${JSON.stringify(server.url)} });
    setInterval(async () => (await limiter.take()).done('ok'), 50);`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH, ...env },
  });
}
