/** A Redis that is emptied after a daemon has adopted its files and before it has read them back: all is there again. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { onTestFinished, test, vi } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { readConfig } from '../../src/daemon/config.js';
import { startDaemon } from '../../src/daemon/daemon.js';
import { policyText, until } from '../support/daemon.js';
import { startRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

vi.setConfig({ testTimeout: 120_000 });

/** Redis is emptied while this daemon, which runs in here, logs that event. */
async function emptiedAt(event: string) {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const dir = tempFolder('flushed');
  const policies = join(dir, 'policies');
  mkdirSync(policies);
  writeFileSync(join(policies, 'checkout.ts'), policyText());
  const env = {
    ...{ FLYBALL_REDIS_URL: server.url, FLYBALL_POLICIES: policies, FLYBALL_DATA_DIR: dir },
    ...{ FLYBALL_TICK_MS: '100', FLYBALL_LEASE_MS: '1000', FLYBALL_RELOAD_MS: '100' },
    ...{ FLYBALL_HTTP_PORT: '0', FLYBALL_POLICY_DEADLINE_MS: '60000' },
  };
  let emptied = 0;
  const stream = {
    write(line: string) {
      if (emptied > 0 || JSON.parse(line).event !== event) return;
      emptied += 1;
      execFileSync('redis-cli', ['-p', String(server.port), 'FLUSHALL']);
    },
  };
  const daemon = await startDaemon({ config: readConfig(env), env, log: pino({}, stream) });
  onTestFinished(() => daemon.close());
  return { redis: server.client(), emptied: () => emptied };
}

test.each([
  ['has started', 'started'],
  ['has taken the lease', 'lease_taken'],
])('as it %s: its file is adopted again, and it keeps the limiter', async (_when, event) => {
  const { redis, emptied } = await emptiedAt(event);
  await until('it is emptied', async () => emptied() === 1);
  const params = async () => (await readParams(redis, { name: 'checkout' })).params;
  await until('the limiter has its params', async () => (await params()) !== null);
  await until('an autopilot keeps it', async () => {
    const now = await params();
    return now !== null && now.validUntil > now.changedAt / 1000 + 1000;
  });
});
