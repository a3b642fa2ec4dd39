/** The embedded Redis on a bad night: killed under a running daemon, stopped in its tracks, its files in the way. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { verifyAudit } from '../../src/actuate/audit.js';
import { connect } from '../../src/redis/connect.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { readRedisFile } from '../../src/redis/locate.js';
import type { RedisClient } from '../../src/redis/run-script.js';
import { cli } from '../support/cli-run.js';
import { type DaemonSetup, daemonSetup, policyText, until } from '../support/daemon.js';
import { serversOf } from '../support/embedded.js';

const keys = limiterKeys({ name: 'checkout' });
let setup: DaemonSetup;
let dataDir: string;
let redis: RedisClient | undefined;

beforeEach(() => {
  setup = daemonSetup(null);
  dataDir = join(setup.dir, 'data');
  setup.write('checkout.ts', policyText());
});
afterEach(async () => {
  redis?.disconnect();
  redis = undefined;
  for (const pid of serversOf(dataDir)) {
    process.kill(pid, 'SIGCONT');
    process.kill(pid, 'SIGKILL');
  }
  await setup.close();
});

const start = (env: NodeJS.ProcessEnv = {}) => setup.start({ FLYBALL_DATA_DIR: dataDir, ...env });

test('killed under a running daemon, it is started again with its data, and the limits go on', async () => {
  const [one, two] = [start(), start()];
  await Promise.all([one.line('started'), two.line('started')]);
  const env = { FLYBALL_DATA_DIR: dataDir };
  expect((await cli(['pin', 'checkout', '--rate', '33', '--yes'], { env })).code).toBe(0);
  // The log is written to disk each second.
  await new Promise((ok) => setTimeout(ok, 2000));
  const { pid, url } = readRedisFile(dataDir)!;
  process.kill(pid, 'SIGKILL');
  const again = await until('another server', () => {
    const file = readRedisFile(dataDir);
    return file !== null && file.pid !== pid && file;
  });
  expect(again.url).toBe(url);
  expect(serversOf(dataDir)).toEqual([again.pid]);
  redis = connect({ url, name: 'cli' });
  redis.on('error', () => {});
  const client = redis;
  expect(await client.hget(keys.params, 'rate')).toBe('33');
  const word = Number(await client.hget(keys.params, 'validUntil'));
  await until('a beat', async () => Number(await client.hget(keys.params, 'validUntil')) > word);
  expect((await verifyAudit(client, { name: 'checkout' })).verdict).toBe('consistent');
});

test('one that is stopped in its tracks is waited for, never ended: its users live', async () => {
  const daemon = start();
  await daemon.line('started');
  const { pid } = readRedisFile(dataDir)!;
  const stat = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  process.kill(pid, 'SIGSTOP');
  const other = start();
  await new Promise((ok) => setTimeout(ok, 9000));
  process.kill(pid, 'SIGCONT');
  await other.line('started');
  expect(readRedisFile(dataDir)!.pid).toBe(pid);
  expect(execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })).toBe(stat);
});

test('a folder in the place of a file is an error that names it', async () => {
  mkdirSync(join(dataDir, 'server.json'), { recursive: true });
  const daemon = start();
  expect((await daemon.exited).code).toBe(78);
  expect(daemon.stderr()).toMatch(/FLYBALL_E_DATA_DIR.*server\.json/);
});

test('a data folder where none can be is an error at once', async () => {
  const daemon = start({ FLYBALL_DATA_DIR: '/proc/flyball/data' });
  expect((await daemon.exited).code).toBe(78);
  expect(daemon.stderr()).toMatch(/FLYBALL_E_DATA_DIR.*\/proc\/flyball/);
});

test('a redis.json that is not whole is told from one that is not there by nobody: both are said', async () => {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(join(dataDir, 'redis.json'), '{{{');
  const { code, stderr } = await cli(['status'], { env: { FLYBALL_DATA_DIR: dataDir } });
  expect(code).toBe(78);
  expect(stderr).toContain('redis.json is not there, or not whole');
});
