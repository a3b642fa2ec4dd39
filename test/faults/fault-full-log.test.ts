/** A daemon whose log lies on a full disk leads on. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { daemonSetup, policyText, until } from '../support/daemon.js';
import { startRedis } from '../support/redis-server.js';

vi.setConfig({ testTimeout: 120_000 });
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

test('a log that cannot be written, every line of it, costs lines and not the daemon', async () => {
  const server = await startRedis();
  const redis = server.client();
  const setup = daemonSetup(server.url);
  setup.write('checkout.ts', policyText());
  const full = openSync('/dev/full', 'a');
  const child = spawn(process.execPath, [MAIN, 'run', setup.policies], {
    cwd: setup.dir,
    stdio: ['ignore', full, full],
    env: {
      PATH: process.env.PATH,
      FLYBALL_REDIS_URL: server.url,
      FLYBALL_DATA_DIR: join(setup.dir, 'data'),
      FLYBALL_TICK_MS: '100',
      FLYBALL_LEASE_MS: '1000',
      FLYBALL_LOG_LEVEL: 'trace',
      FLYBALL_POLICY_DEADLINE_MS: '60000',
      FLYBALL_HTTP_PORT: '0',
    },
  });
  closeSync(full);
  try {
    const { lease, params } = limiterKeys({ name: 'checkout' });
    const validUntil = async () => Number(await redis.hget(params, 'validUntil'));
    const led = await until('it leads', () => redis.get(lease), 90_000);
    expect(led.split(':')[1]).toBe(String(child.pid));
    const first = await validUntil();
    await until('its turns go on', async () => (await validUntil()) > first + 1_000);
    expect(child.exitCode).toBe(null);
  } finally {
    child.kill('SIGKILL');
    await setup.close();
    await server.stop();
  }
});
