/** The demo for real, short: every piece runs, Flyball does better than nothing, the audit log verifies. Stage: tests. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { createLog } from '../../src/log.js';
import { effectiveAtUs } from '../../src/redis/effective.js';
import { startEmbeddedRedis } from '../../src/redis/embedded.js';
import type { AuditRecord } from '../../src/view/entry.js';
import { check } from '../faults/checker.js';
import { watchLimiter } from '../support/fault-record.js';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const SECONDS = 20;

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

function flyball(args: string[], dataDir: string): Promise<Ended> {
  const { FLYBALL_REDIS_URL: _none, ...env } = process.env;
  return new Promise((ok) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...env, FLYBALL_DATA_DIR: dataDir }, maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) => ok({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
  });
}

/** Processes of this machine whose command line names the folder: what the demo started and left. */
function leftBehind(dataDir: string): Promise<string> {
  return new Promise((ok) =>
    execFile('ps', ['-eo', 'pid,args'], (_error, stdout) =>
      ok(
        stdout
          .split('\n')
          .filter((line) => line.includes(dataDir))
          .join('\n'),
      ),
    ),
  );
}

const FIGURES = [
  'offered',
  'good',
  'goodputPerSecond',
  'meanMs',
  'p50Ms',
  'p95Ms',
  'p99Ms',
  'errorRatio5xx',
  'dbWaitsMean',
  'dbWaitsMax',
  'secondsAtRateZero',
  'decisionP99Ms',
];
const PHASES = ['calm', 'surge', 'slowDatabase', 'upstreamFailure', 'calmAgain'];

describe('flyball demo', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'flyball-demo-'));
  const svg = join(dataDir, 'result.svg');
  let ended: Ended;
  let result: Record<string, Record<string, unknown>>;

  beforeAll(async () => {
    ended = await flyball(
      ['demo', '--seconds', String(SECONDS), '--seed', '5', '--json', '--svg', svg],
      dataDir,
    );
    if (ended.code === 0) result = JSON.parse(ended.stdout.trim().split('\n').at(-1)!);
  }, 300_000);

  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  test('it ran, and its last line is the result with exactly the promised keys', () => {
    expect(ended.stderr.split('\n').slice(-30).join('\n')).not.toContain('error:');
    expect(ended.code).toBe(0);
    expect(Object.keys(result)).toEqual(['knee', 'without', 'with', 'changes']);
    expect(Object.keys(result.knee!)).toEqual(PHASES);
    for (const play of [result.without!, result.with!]) {
      expect(Object.keys(play)).toEqual([...FIGURES, 'phases']);
      const phases = play.phases as Record<string, object>;
      expect(Object.keys(phases)).toEqual(PHASES);
      for (const phase of Object.values(phases)) expect(Object.keys(phase)).toEqual(FIGURES);
    }
  });

  test('one seed: both plays were offered the same orders', () => {
    expect(result.with!.offered).toBe(result.without!.offered);
    expect(Number(result.with!.offered)).toBeGreaterThan(0);
  });

  test('more good answers with Flyball than without', () => {
    expect(Number(result.with!.good)).toBeGreaterThan(Number(result.without!.good));
  });

  test('the audit log of the run verifies, on the data that is kept', async () => {
    const verify = await flyball(['demo', 'audit', 'verify', '--json'], dataDir);
    expect(verify.stderr).toBe('');
    expect(verify.code).toBe(0);
    expect((result.changes as unknown as unknown[]).length).toBeGreaterThan(0);
  });

  test('the checker of fault schedules finds every invariant held that entries and Redis can show', async () => {
    const log = createLog({ level: 'silent' });
    const kept = await startEmbeddedRedis({ dataDir: join(dataDir, 'demo'), log });
    const redis = new Redis(new URL(kept.url).pathname);
    try {
      const { limiter, look } = watchLimiter(() => redis, { name: 'checkout' });
      await look();
      const { params, nowUs } = await readParams(redis, { name: 'checkout' });
      limiter.end = { params: params!, effective: effectiveAtUs(params!, nowUs) };
      const { checks, entries, violations } = await check({
        ...{ limiters: [limiter], faults: [], deadlineMs: 100, onRedisError: 'local' },
        ...{ own: { rate: 0, capacity: 0 }, autopilotLost: null },
      });
      expect(violations).toEqual([]);
      expect(entries).toBeGreaterThan(3);
      for (const name of ['I1', 'I2', 'I13'] as const) {
        expect(checks[name].checked, name).toBeGreaterThan(0);
      }
      // Whether the law raised or the breaker tripped is up to the machine: what happened was looked at.
      const reasons = (result.changes as unknown as AuditRecord[]).map(({ reason }) => reason);
      expect(checks.I10.checked).toBe(reasons.filter((reason) => reason === 'law_raise').length);
      expect(checks.I4.checked).toBeGreaterThanOrEqual(
        reasons.filter((reason) => reason === 'breaker_trip').length,
      );
    } finally {
      redis.disconnect();
      await kept.release();
    }
  });

  test('the picture tells the result of this run', () => {
    expect(readFileSync(svg, 'utf8')).toContain(
      `${result.without!.good} without Flyball, ${result.with!.good} with it`,
    );
  });

  test('nothing that it started lives on', async () => {
    expect(await leftBehind(dataDir)).toBe('');
    expect(existsSync(join(dataDir, 'demo', 'redis.json'))).toBe(false);
  });
});

describe('flyball demo, called wrongly', () => {
  test.each([
    [['--seconds', '5'], '12 … 3600'],
    [['--secnds', '20'], "unknown option '--secnds'"],
    [['rollback', 'checkout', '7'], 'holds no finished demo'],
  ])('%j is refused and starts nothing', async (args, told) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'flyball-demo-'));
    const { code, stderr } = await flyball(['demo', ...args], dataDir);
    expect(stderr).toContain(told);
    expect(code).toBeGreaterThan(0);
    expect(existsSync(join(dataDir, 'demo'))).toBe(false);
    rmSync(dataDir, { recursive: true, force: true });
  });
});
