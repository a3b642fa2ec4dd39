import mysql from 'mysql2/promise';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createSource, type SourcedSignal } from '../../src/sense/sources.js';
import { startMariadb, type TestMariadb } from '../support/mariadb-server.js';

let primary: TestMariadb;
let replica: TestMariadb;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  [primary, replica] = await Promise.all([
    startMariadb(['--server-id=1', '--log-bin=log']),
    startMariadb(['--server-id=2']),
  ]);
});
afterAll(async () => {
  for (const end of ending.reverse()) await end();
  await Promise.all([primary.stop(), replica.stop()]);
});

async function client({ url }: TestMariadb): Promise<mysql.Connection> {
  const made = await mysql.createConnection({ uri: url });
  made.on('error', () => {});
  ending.push(() => made.destroy());
  return made;
}

test('how far a replica is behind: at once, held up by a lock, stopped, and without its source', async () => {
  const [source, copy] = await Promise.all([client(primary), client(replica)]);
  await source.query("CREATE USER copier@'%' IDENTIFIED BY 'hunter2'");
  await source.query("GRANT REPLICATION SLAVE ON *.* TO copier@'%'");
  await source.query("CREATE USER watcher@'%' IDENTIFIED BY 'watch'");
  await source.query("GRANT REPLICA MONITOR ON *.* TO watcher@'%'");
  await source.query('CREATE DATABASE shop');
  await source.query('CREATE TABLE shop.stock (id int AUTO_INCREMENT PRIMARY KEY, n int)');
  await copy.query(
    `CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${primary.port}, MASTER_USER='copier', MASTER_PASSWORD='hunter2', MASTER_CONNECT_RETRY=1`,
  );
  await copy.query('START SLAVE');
  const copied = async () => {
    const [rows] = await copy.query<mysql.RowDataPacket[]>(
      "SELECT count(*) AS n FROM information_schema.tables WHERE table_name = 'stock'",
    );
    return rows[0]!.n;
  };
  await expect.poll(copied, { timeout: 30_000 }).toBe(1);

  // The user came to the replica with all else.
  const url = replica.as('watcher', 'watch');
  const signal: SourcedSignal = { source: 'mysql', stat: 'replicaLagMs', url, deadlineMs: 1000 };
  const made = createSource(signal, {
    env: {},
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  ending.push(() => made.close());
  const lag = async () => (await made.look([signal])).get(signal);
  await expect.poll(lag, { timeout: 30_000 }).toMatchObject({ kind: 'value', value: 0 });

  // A writer there holds up what comes; the replica falls behind by the clock.
  await copy.query('LOCK TABLES shop.stock WRITE');
  await source.query('INSERT INTO shop.stock (n) VALUES (1)');
  await expect
    .poll(
      async () => {
        const seen = await lag();
        return seen?.kind === 'value' ? seen.value : 0;
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThanOrEqual(1000);
  await copy.query('UNLOCK TABLES');
  await expect.poll(lag, { timeout: 30_000 }).toMatchObject({ kind: 'value', value: 0 });

  await copy.query('STOP SLAVE SQL_THREAD');
  await expect.poll(lag, { timeout: 30_000 }).toMatchObject({
    kind: 'missing',
    reason: 'no_data',
    detail: expect.stringContaining('replication does not run'),
  });
  await copy.query('START SLAVE SQL_THREAD');
  await expect.poll(lag, { timeout: 30_000 }).toMatchObject({ kind: 'value', value: 0 });

  await primary.stop();
  // What is not known is no lag of zero.
  await expect.poll(lag, { timeout: 30_000 }).toMatchObject({
    kind: 'missing',
    reason: 'no_data',
    detail: expect.stringMatching(/replication does not run .*(connect|reconnect|lost)/i),
  });
  expect(JSON.stringify(await lag())).not.toContain('hunter2');
});
