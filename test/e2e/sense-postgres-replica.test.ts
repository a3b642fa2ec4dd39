import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type RunningPostgres, startPostgres } from '../../src/demo/postgres.js';
import { createSource, type SourcedSignal } from '../../src/sense/sources.js';
import { startReplica, type TestReplica } from '../support/postgres-replica.js';

let primary: RunningPostgres;
let replica: TestReplica;
const ending: (() => unknown)[] = [];

beforeAll(async () => {
  primary = await startPostgres();
});
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(async () => {
  await Promise.all([replica?.stop(), primary.stop()]);
});

function looker(url: string) {
  const signal = { source: 'postgres', stat: 'replicaLagMs', url, deadlineMs: 1000 } as const;
  const made = createSource(signal as SourcedSignal, {
    env: {},
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  ending.push(() => made.close());
  return async () => (await made.look([signal])).get(signal)!;
}

async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: url });
  made.on('error', () => {});
  await made.connect();
  ending.push(() => made.end());
  return made;
}

const settled = { timeout: 30_000 };

test('how far a replica is behind: asked of either, paused, with hidden rights, and without its primary', async () => {
  const onPrimary = looker(primary.url);
  await expect.poll(onPrimary, settled).toMatchObject({
    reason: 'no_data',
    detail: 'no replica follows this server',
  });

  replica = await startReplica(primary);
  const onReplica = looker(replica.url);
  // It has replayed all that it received: not behind, however long nothing is written.
  await expect.poll(onReplica, settled).toMatchObject({ kind: 'value', value: 0 });
  await expect.poll(onPrimary, settled).toMatchObject({ kind: 'value' });

  const writer = await client(primary.url);
  await writer.query('CREATE TABLE stock (n int)');
  const reader = await client(replica.url);
  await expect
    .poll(async () => (await reader.query("SELECT to_regclass('stock') AS t")).rows[0].t, settled)
    .toBe('stock');
  await reader.query('SELECT pg_wal_replay_pause()');
  await writer.query('INSERT INTO stock VALUES (1)');
  await expect
    .poll(async () => {
      const seen = await onReplica();
      return seen.kind === 'value' && seen.value > 200;
    }, settled)
    .toBe(true);
  await reader.query('SELECT pg_wal_replay_resume()');
  await expect.poll(onReplica, settled).toMatchObject({ kind: 'value', value: 0 });

  // A role without pg_monitor sees neither side.
  await writer.query("CREATE ROLE watcher LOGIN PASSWORD 'w'");
  const asWatcher = (url: string) => looker(url.replace(/\/\/[^@]*@/, '//watcher:w@'));
  const grant = { reason: 'error', detail: expect.stringContaining('GRANT pg_monitor') };
  await expect.poll(asWatcher(primary.url), settled).toMatchObject(grant);
  const watching = asWatcher(replica.url);
  await expect.poll(watching, settled).toMatchObject(grant);
  await writer.query('GRANT pg_monitor TO watcher');
  await expect.poll(watching, settled).toMatchObject({ kind: 'value', value: 0 });

  // Nothing comes any more: it falls behind by the clock.
  await primary.kill();
  await expect
    .poll(async () => {
      const seen = await onReplica();
      return seen.kind === 'value' && seen.value > 0;
    }, settled)
    .toBe(true);
});
