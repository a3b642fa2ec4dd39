/** TLS, Sentinel and Cluster as settings: what is read, what is refused, and what each fault says. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { awaitRedis, connect, type RedisClient } from '../../src/redis/connect.js';
import { cli } from '../support/cli-run.js';
import { freePort } from '../support/redis-server.js';
import {
  type Certificates,
  makeCertificates,
  startTlsRedis,
  startTlsSentinel,
  type TestTlsRedis,
  TLS_NAME,
} from '../support/redis-tls.js';
import { until } from '../support/sdk-params.js';
import { tempFolder } from '../support/temp-folder.js';

let files: Certificates;
let redis: TestTlsRedis;
const open: RedisClient[] = [];

beforeAll(async () => {
  files = makeCertificates();
  redis = await startTlsRedis(files);
});
afterEach(() => {
  for (const client of open.splice(0)) client.disconnect();
});
afterAll(async () => {
  await redis.server.stop();
});

const tlsEnv = () => ({
  FLYBALL_REDIS_URL: `rediss://127.0.0.1:${redis.tlsPort}`,
  FLYBALL_REDIS_TLS_CA: files.ca,
  FLYBALL_REDIS_TLS_CERT: files.cert,
  FLYBALL_REDIS_TLS_KEY: files.key,
});

function connected(env: NodeJS.ProcessEnv): Promise<string> {
  const client = connect({ name: 'cli', env });
  client.on('error', () => {});
  open.push(client);
  return awaitRedis(client, { url: env.FLYBALL_REDIS_URL!, deadlineMs: 60_000 }).then(
    () => 'ok',
    (error: Error) => error.message,
  );
}

describe('TLS', () => {
  test('with the authority, a certificate and its key: connected, by address or by name', async () => {
    expect(await connected(tlsEnv())).toBe('ok');
    expect(await connected({ ...tlsEnv(), FLYBALL_REDIS_TLS_SERVERNAME: TLS_NAME })).toBe('ok');
  });

  test('an unknown authority, another name, no client certificate: refused, and the fault says which', async () => {
    const { FLYBALL_REDIS_TLS_CA: _, ...noCa } = tlsEnv();
    expect(await connected(noCa)).toMatch(/self-signed certificate.*Check FLYBALL_REDIS_TLS_CA/);
    const other = { ...tlsEnv(), FLYBALL_REDIS_TLS_SERVERNAME: 'other.test' };
    expect(await connected(other)).toContain('other.test. is not in the cert');
    const { FLYBALL_REDIS_TLS_CERT: _c, FLYBALL_REDIS_TLS_KEY: _k, ...noCert } = tlsEnv();
    expect(await connected(noCert)).toMatch(/certificate required|closed/);
  });

  test('a Cluster: its nodes are spoken to with TLS too', async () => {
    const busPort = await freePort();
    const node = await startTlsRedis(files, [
      ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
      ...['--cluster-announce-ip', '127.0.0.1', '--tls-cluster', 'yes'],
    ]);
    try {
      const admin = node.server.client({ enableReadyCheck: false });
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
      const env = { ...tlsEnv(), FLYBALL_REDIS_URL: `rediss+cluster://localhost:${node.tlsPort}` };
      expect(await connected({ ...env, FLYBALL_REDIS_TLS_SERVERNAME: TLS_NAME })).toBe('ok');
      expect(await open.at(-1)!.set('a', '1')).toBe('OK');
    } finally {
      await node.server.stop();
    }
  });

  test('Sentinel: it and the master that it names are spoken to with TLS, by the SDK too', async () => {
    const sentinel = await startTlsSentinel(files, 'limits', redis.tlsPort);
    try {
      const url = `rediss+sentinel://127.0.0.1:${sentinel.tlsPort}/limits`;
      const env = { ...tlsEnv(), FLYBALL_REDIS_URL: url };
      expect(await connected({ ...env, FLYBALL_REDIS_TLS_SERVERNAME: TLS_NAME })).toBe('ok');
      expect(await open.at(-1)!.call('CONFIG', 'GET', 'tls-port')).toContain(`${redis.tlsPort}`);
      const before = { ...process.env };
      Object.assign(process.env, env);
      const api = createLimiter({ name: 'named', rate: 10, deadlineMs: 2_000, onWarning() {} });
      try {
        await until('Redis decides', async () => (await api.peek()).source === 'unmanaged');
      } finally {
        await api.close();
        for (const name of Object.keys(env)) delete process.env[name];
        Object.assign(process.env, before);
      }
    } finally {
      for (const client of open.splice(0)) client.disconnect();
      await sentinel.stop();
    }
  });

  test('the SDK and the CLI take the same settings', async () => {
    const before = { ...process.env };
    Object.assign(process.env, tlsEnv());
    const api = createLimiter({ name: 'api', rate: 10, deadlineMs: 2_000, onWarning: () => {} });
    try {
      await until('Redis decides', async () => (await api.peek()).source === 'unmanaged');
      const { stdout } = await cli(['doctor', tempFolder('none')], { env: tlsEnv() });
      expect(stdout).toMatch(/ok +topology +one server, 0 replicas/);
    } finally {
      await api.close();
      for (const name of Object.keys(tlsEnv())) delete process.env[name];
      Object.assign(process.env, before);
    }
  });
});

describe('settings that cannot be used are said at the start, with their name', () => {
  const faultOf = (env: NodeJS.ProcessEnv, url?: string) => {
    try {
      open.push(connect({ name: 'cli', env, url }));
      return 'none';
    } catch (error) {
      return (error as Error).message;
    }
  };

  test('files that are not there, not PEM, not a pair', () => {
    const text = join(tempFolder('tls-bad'), 'text');
    writeFileSync(text, 'hunter2');
    const other = makeCertificates();
    expect(faultOf({ ...tlsEnv(), FLYBALL_REDIS_TLS_CA: '/no/such' })).toMatch(
      /^FLYBALL_REDIS_TLS_CA is "\/no\/such".*ENOENT/,
    );
    const notPem = faultOf({ ...tlsEnv(), FLYBALL_REDIS_TLS_KEY: text });
    expect(notPem).toMatch(/^FLYBALL_REDIS_TLS_KEY.*not PEM/);
    expect(notPem).not.toContain('hunter2');
    expect(faultOf({ ...tlsEnv(), FLYBALL_REDIS_TLS_KEY: '' })).toMatch(
      /^FLYBALL_REDIS_TLS_CERT is set and FLYBALL_REDIS_TLS_KEY is not/,
    );
    expect(faultOf({ ...tlsEnv(), FLYBALL_REDIS_TLS_KEY: other.key })).toMatch(
      /cannot be used together/,
    );
  });

  test('TLS files beside a URL without TLS are not ignored', () => {
    const env = { ...tlsEnv(), FLYBALL_REDIS_URL: `redis://:hunter2@127.0.0.1:${redis.tlsPort}` };
    expect(faultOf(env)).toMatch(
      /^FLYBALL_REDIS_TLS_CA is set, but FLYBALL_REDIS_URL .* not encrypted/,
    );
    expect(faultOf(env)).not.toContain('hunter2');
    // As `flyball run` and `createLimiter` hand it on; an address of one's own is no setting.
    expect(faultOf(env, env.FLYBALL_REDIS_URL)).toBe(faultOf(env));
    expect(faultOf(env, 'redis://:other@127.0.0.1:1')).toBe('none');
  });

  test('the CLI leaves with 78 and the code', async () => {
    const { code, stderr } = await cli(['status'], {
      env: { ...tlsEnv(), FLYBALL_REDIS_TLS_CA: '/no' },
    });
    expect([code, stderr]).toEqual([78, expect.stringContaining('FLYBALL_E_REDIS_TLS')]);
  });
});
