/** `flyball doctor` on pools: what is open of a real database, and what policies say all instances open, against max_connections. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkPools } from '../../src/cli/doctor-pools.js';
import { type Policy, policySchema } from '../../src/policy/schema.js';
import { cli } from '../support/cli-run.js';
import { startMariadb, type TestMariadb } from '../support/mariadb-server.js';
import { freePort } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

let server: TestMariadb;
const open: mysql.Connection[] = [];

beforeAll(async () => {
  server = await startMariadb(['--max-connections=20']);
});
afterAll(async () => {
  for (const each of open) each.destroy();
  await server.stop();
});

const policy = (name: string, tune?: { connections: number; instances?: number }): Policy =>
  policySchema.parse({
    limiter: { name, rate: 10, capacity: 10 },
    signals: {
      running: { source: 'mysql', stat: 'threadsRunning', url: { env: 'ORDERS_DB' } },
      waits: { source: 'mysql', stat: 'waiting', url: { env: 'ORDERS_DB' } },
    },
    ...(tune === undefined ? {} : { tune }),
  });
const pools = (...policies: Policy[]) => checkPools(policies, { ORDERS_DB: server.url });

test('one finding a database: room, too many planned, few left', async () => {
  const [fine, ...more] = await pools(policy('orders'), policy('refunds', { connections: 5 }));
  expect(more).toEqual([]);
  expect(fine).toMatchObject({
    ...{ check: 'pools mysql ORDERS_DB', status: 'ok' },
    message: expect.stringMatching(/^\d of 20 connections are open; policies say 5 \(refunds 5\)$/),
  });
  const [planned] = await pools(
    policy('orders', { connections: 18, instances: 3 }),
    policy('refunds', { connections: 5, instances: 1 }),
  );
  expect(planned).toMatchObject({
    status: 'fail',
    message: expect.stringContaining(
      'policies say 23 (orders 18, refunds 5): together they open more',
    ),
    mend: 'Make the pools smaller, 16 in all: 4 for each of 4 instances, say so in tune.connections, or raise max_connections.',
  });
  for (let i = 0; i < 17; i++) open.push(await mysql.createConnection({ uri: server.url }));
  expect((await pools(policy('orders')))[0]).toMatchObject({
    ...{
      status: 'warn',
      message: expect.stringContaining('of 20 connections are open: few are left'),
    },
  });
});

test('the command itself tells it, of the policies that it loads, though Redis is away', async () => {
  const file = join(tempFolder('doctor-pools'), 'orders.mjs');
  const tune = { connections: 23, instances: 4 };
  writeFileSync(file, `export default ${JSON.stringify({ ...policy('orders'), tune })};`);
  const shown = await cli(['doctor', file, '--json'], {
    env: { FLYBALL_REDIS_URL: `redis://127.0.0.1:${await freePort()}`, ORDERS_DB: server.url },
  });
  expect(shown.code).toBe(1);
  const { findings } = JSON.parse(shown.stdout);
  expect(findings.filter((f: { check: string }) => f.check.startsWith('pools'))).toEqual([
    {
      ...{ check: 'pools mysql ORDERS_DB', status: 'fail' },
      message: expect.stringMatching(
        /^\d+ of 20 connections are open; policies say 23 \(orders 23\): together they open more/,
      ),
      mend: expect.stringContaining('4 for each of 4 instances'),
    },
  ]);
  expect(shown.stdout + shown.stderr).not.toContain(server.url);
});

test('without a database, or one that does not answer, nothing is said here: its signals tell', async () => {
  const bare = policySchema.parse({ limiter: { name: 'a', rate: 1, capacity: 1 } });
  expect(await pools(bare)).toEqual([]);
  expect(await checkPools([policy('orders')], {})).toEqual([]);
});
