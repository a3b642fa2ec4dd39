import mysql from 'mysql2/promise';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Missing } from '../../src/sense/readings.js';
import type { Seen } from '../../src/sense/source.js';
import { createSource, type SourcedSignal } from '../../src/sense/sources.js';
import { startMariadb, type TestMariadb } from '../support/mariadb-server.js';

type Signal = Extract<SourcedSignal, { source: 'mysql' }>;
type Stat = Signal['stat'];

let server: TestMariadb;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startMariadb(['--max-connections=20', '--innodb-lock-wait-timeout=30']);
  const admin = await client(server.url);
  // A user without any privilege, which is what the guide tells to make.
  await admin.query("CREATE USER watcher@'%' IDENTIFIED BY 'w%40tch'");
  await admin.query('CREATE DATABASE shop');
  await admin.query('CREATE TABLE shop.stock (id int PRIMARY KEY, n int)');
  await admin.query('INSERT INTO shop.stock VALUES (1, 9), (2, 9)');
  await Promise.all(ending.splice(0).map((end) => end()));
});
afterEach(async () => {
  server.resume();
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(() => server.stop());

async function client(url: string): Promise<mysql.Connection> {
  const made = await mysql.createConnection({ uri: url });
  made.on('error', () => {});
  ending.push(() => made.end().catch(() => {}));
  return made;
}

const watcher = () => server.as('watcher', encodeURIComponent('w%40tch'));

/** Longer than a policy may say, where the deadline is not what is tested: the machine may be busy. */
function source(url = watcher(), deadlineMs = 30_000) {
  const signalOf = (stat: Stat): Signal => ({ source: 'mysql', stat, url, deadlineMs });
  const made = createSource(signalOf('threadsRunning'), {
    env: {},
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  ending.push(() => made.close());
  return async (...stats: Stat[]): Promise<(Seen | Missing)[]> => {
    const signals = stats.map(signalOf);
    const look = await made.look(signals);
    return signals.map((signal) => look.get(signal)!);
  };
}

/** A busy machine may be slow to connect; what is tested begins with a source that answers. */
async function answers(look: ReturnType<typeof source>): Promise<void> {
  const kind = async () => (await look('threadsRunning'))[0]!.kind;
  await expect.poll(kind, { timeout: 20_000 }).toBe('value');
}

test('transactions that wait for a row lock are counted now, and since the last look by number and time', async () => {
  const look = source();
  await answers(look);
  const [waiting, time] = await look('waiting', 'lockTimeMs');
  expect(waiting).toEqual({
    kind: 'value',
    value: 0,
    monotonicMs: expect.any(Number),
    count: 1,
  });
  // Nothing waited since the first look.
  expect(time).toMatchObject({ kind: 'value', value: 0 });

  const holder = await client(server.url);
  await holder.query('BEGIN');
  await holder.query('UPDATE shop.stock SET n = n - 1 WHERE id = 1');
  const waiters = await Promise.all([client(server.url), client(server.url), client(server.url)]);
  const updates = waiters.map((each) => each.query('UPDATE shop.stock SET n = n - 1 WHERE id = 1'));
  const value = async (stat: Stat) => {
    const [found] = await look(stat);
    return found?.kind === 'value' ? found.value : -1;
  };
  // The waits that begin are seen by one of these looks; all of them stand.
  const began: number[] = [];
  await expect
    .poll(
      async () => {
        const [waits, now] = await look('lockWaits', 'waiting');
        if (waits?.kind === 'value') began.push(waits.value);
        return now?.kind === 'value' && now.value;
      },
      { timeout: 20_000 },
    )
    .toBe(3);
  expect(Math.max(...began)).toBeGreaterThan(0);
  expect(await value('threadsRunning')).toBeGreaterThanOrEqual(3);

  await holder.query('COMMIT');
  await Promise.all(updates);
  // Time of a wait is told when it ends.
  await expect.poll(() => value('waiting'), { timeout: 20_000 }).toBe(0);
});

test('the time of waits that ended is their mean', async () => {
  const look = source();
  await answers(look);
  const holder = await client(server.url);
  await holder.query('BEGIN');
  await holder.query('UPDATE shop.stock SET n = n - 1 WHERE id = 2');
  const waiter = await client(server.url);
  const update = waiter.query('UPDATE shop.stock SET n = n - 1 WHERE id = 2');
  const admin = await client(server.url);
  // The server itself says for how long it has waited: at least a quarter of a second.
  await expect
    .poll(
      async () => {
        const [rows] = await admin.query<mysql.RowDataPacket[]>(
          'SELECT MAX(TIMESTAMPDIFF(MICROSECOND, trx_wait_started, NOW(6))) AS us FROM information_schema.innodb_trx',
        );
        return Number(rows[0]?.us) > 1_200_000;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  await look('lockTimeMs');
  await holder.query('COMMIT');
  await update;
  const [time] = await look('lockTimeMs');
  expect(time).toMatchObject({ kind: 'value' });
  expect((time as Seen).value).toBeGreaterThan(200);
  expect((time as Seen).value).toBeLessThan(60_000);
});

test('connections are a share of max_connections; a full server says what to do', async () => {
  const look = source();
  await answers(look);
  await Promise.all([1, 2, 3].map(() => client(server.url)));
  const [share] = await look('connectionsRatio');
  expect(share).toMatchObject({ kind: 'value', detail: '4 of 20' });
  expect((share as Seen).value).toBeCloseTo(4 / 20, 6);

  const many = await Promise.all(
    Array.from({ length: 17 }, () => client(server.url).catch(() => null)),
  );
  expect(many.filter(Boolean).length).toBeGreaterThanOrEqual(16);
  const late = source();
  expect((await late('threadsRunning'))[0]).toMatchObject({
    kind: 'missing',
    reason: 'error',
    detail: expect.stringContaining('raise max_connections'),
  });
});

test('replica lag needs one right, which is named; a server that is no replica says so', async () => {
  const look = source();
  await answers(look);
  const [lag, running] = await look('replicaLagMs', 'threadsRunning');
  expect(lag).toMatchObject({
    kind: 'missing',
    reason: 'error',
    detail: expect.stringContaining('GRANT REPLICATION CLIENT'),
  });
  // The others do not need it.
  expect(running).toMatchObject({ kind: 'value' });
  const admin = await client(server.url);
  await admin.query("GRANT REPLICA MONITOR ON *.* TO watcher@'%'");
  // Rights are taken at the connection's beginning.
  const again = source();
  await answers(again);
  expect((await again('replicaLagMs'))[0]).toMatchObject({
    kind: 'missing',
    reason: 'no_data',
    detail: 'this server is no replica',
  });
});

test('C58: a server that hangs is missing within the deadline, and answers again', async () => {
  const look = source(watcher(), 500);
  await answers(look);
  server.pause();
  // What was on its way when it was stopped may still come.
  await expect
    .poll(async () => (await look('threadsRunning'))[0], { timeout: 20_000 })
    .toMatchObject({ kind: 'missing', reason: 'timeout' });
  server.resume();
  await answers(look);
});

test('a wrong password and a server that is not there are told without secrets', async () => {
  const [wrong] = await source(server.as('watcher', 'hunter2'))('waiting');
  expect(wrong).toMatchObject({ kind: 'missing', reason: 'error' });
  expect(JSON.stringify(wrong)).not.toContain('hunter2');
  const [away] = await source('mysql://watcher:hunter2@127.0.0.1:1/')('waiting');
  expect(away).toMatchObject({ kind: 'missing', reason: 'unreachable' });
  expect(JSON.stringify(away)).not.toContain('hunter2');
});
