/** Audit logs exported to a PostgreSQL table: whole, once, provable, and gone on with after the database was away. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres, probePostgres } from '../../src/audit/postgres-driver.js';
import { createPostgresSink } from '../../src/audit/postgres-sink.js';
import { createSigner } from '../../src/audit/signature.js';
import { type RunningPostgres, startPostgres } from '../../src/demo/postgres.js';
import { change, exporterTo, history, keyPair, keys } from '../support/audit-rig.js';
import { cli } from '../support/cli-run.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { tempFolder } from '../support/temp-folder.js';

const pair = keyPair();
let postgres: RunningPostgres;
let server: TestRedis;
let redis: Redis;
let proxy: TcpProxy;
let admin: pg.Client;
let url: string;
let open: string;

beforeAll(async () => {
  [postgres, server] = await Promise.all([startPostgres(), startRedis()]);
  redis = server.client();
  admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  open = join(tempFolder('key'), 'audit.pub');
  writeFileSync(open, pair.open);
  proxy = await startProxy(postgres.port);
  url = postgres.url.replace(`:${postgres.port}/`, `:${proxy.port}/`);
});
afterAll(async () => {
  await admin.end();
  await proxy.close();
  await Promise.all([postgres.stop(), server.stop()]);
});

const sinkTo = (to = url) =>
  createPostgresSink({ url: to, prefix: 'flyball', signer: createSigner(pair.secret, 'test') });

async function verified(code = 0) {
  const run = await cli(['audit', 'verify', '--json', '--key', open, '--postgres'], {
    env: { FLYBALL_AUDIT_POSTGRES: postgres.url },
  });
  expect(run.code, run.stdout + run.stderr).toBe(code);
  return JSON.parse(run.stdout);
}

test('without table or right the start fails and says how to mend it; migrate makes it, and may run again', async () => {
  await expect(probePostgres(postgres.url)).rejects.toMatchObject({
    code: 'FLYBALL_E_AUDIT_POSTGRES',
    message: expect.stringContaining('flyball audit migrate'),
  });
  const dry = await cli(['audit', 'migrate', '--dry-run']);
  expect(dry.stdout).toContain('CREATE TABLE IF NOT EXISTS flyball_audit');
  for (let i = 0; i < 2; i++) {
    const run = await cli(['audit', 'migrate', '--postgres', postgres.url]);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).not.toContain(new URL(postgres.url).password);
  }
  await probePostgres(postgres.url);
  await admin.query("CREATE ROLE other LOGIN PASSWORD 'x'");
  const other = new URL(postgres.url);
  other.username = 'other';
  other.password = 'x';
  await expect(probePostgres(other.href)).rejects.toThrow(/lacks INSERT or SELECT/);
  await admin.query('GRANT INSERT, SELECT ON flyball_audit TO other');
  await probePostgres(other.href);
  // Away is no fault of the settings: it may come.
  await probePostgres('postgres://x@127.0.0.1:1/x');
  const lost = await cli(['audit', 'migrate', '--postgres', 'postgres://u:secret@127.0.0.1:1/x']);
  expect(lost.code).toBe(78);
  expect(lost.stderr).not.toContain('secret');
});

test('the server notices within half a minute that the host of an exporter is dead, and lets another export', async () => {
  const client = await connectPostgres(postgres.url);
  try {
    const { rows } = await client.query<{ setting: string }>(
      "SELECT setting FROM pg_settings WHERE name LIKE 'tcp_keepalives%' ORDER BY name",
    );
    // So many, so long before the first, and between them: 30 s in all.
    expect(rows.map(({ setting }) => setting)).toEqual(['4', '10', '5']);
  } finally {
    await client.end();
  }
});

test('each entry is a row, once; two exporters: one writes, the other goes on; the database away costs nothing', async () => {
  await history(redis, 20);
  let nowMs = Date.now();
  const seen = { exported: 0, failed: 0, writes: false };
  const a = exporterTo(redis, sinkTo(), seen, { nowMs: () => nowMs, monotonicMs: () => nowMs });
  const b = exporterTo(redis, sinkTo(postgres.url));
  await a.minute();
  await b.round();
  const rows = async () =>
    Number(
      (await admin.query("SELECT count(*) FROM flyball_audit WHERE kind IN ('change', 'note')"))
        .rows[0].count,
    );
  expect(await rows()).toBe(await redis.xlen(keys.audit));
  const { rows: asked } = await admin.query(
    "SELECT actor, reason, sentence FROM flyball_audit WHERE kind = 'change' ORDER BY n DESC LIMIT 1",
  );
  expect(asked[0]).toEqual({ actor: 'kim', reason: 'pin', sentence: 'Revision 20.' });
  expect((await verified()).limiters[0]).toMatchObject({ verdict: 'proven', proven: { since: 0 } });

  proxy.mode = 'refuse';
  proxy.cut();
  await change(redis, { nul: 'a\u0000b' });
  await a.round();
  expect(a.fault).not.toBeNull();
  expect(seen.failed).toBe(1);
  proxy.mode = 'pass';
  nowMs += 60_000;
  await a.round();
  expect(a.fault).toBeNull();
  await change(redis);
  await a.close();
  await b.minute();
  expect(await rows()).toBe(await redis.xlen(keys.audit));
  expect((await verified()).limiters[0]).toMatchObject({
    verdict: 'proven',
    repeated: 0,
    gaps: [],
  });
  // It knows the ids that the other had written after its last head.
  const { rows: heads } = await admin.query(
    "SELECT line FROM flyball_audit WHERE kind = 'head' ORDER BY n DESC LIMIT 1",
  );
  expect(JSON.parse(heads[0].line)).toMatchObject({ revision: 22, ids: expect.any(String) });
  await b.close();
});

test('rows that were edited, deleted or put in are found, without Redis', async () => {
  for (const [sql, what] of [
    [
      "UPDATE flyball_audit SET line = replace(line, 'Revision 7.', 'Revision 9.') WHERE kind = 'change' AND revision = 7",
      /its body was changed/,
    ],
    [
      "DELETE FROM flyball_audit WHERE kind = 'change' AND revision = 9",
      /the entry before it is missing/,
    ],
    [
      'UPDATE flyball_audit SET line = replace(line, \'"kind":"head"\', \'"kind":"hand"\') WHERE kind = \'head\'',
      /none of an export/,
    ],
    ["UPDATE flyball_audit SET sentence = 'Nothing.' WHERE revision = 7", /column sentence/],
    ["UPDATE flyball_audit SET actor = 'mallory' WHERE revision = 7", /column actor/],
    ["UPDATE flyball_audit SET at = at - interval '1 hour' WHERE kind = 'head'", /column at/],
    ['UPDATE flyball_audit SET revision = 70 WHERE revision = 7', /column revision/],
    // With the columns that fit: what no hash covers is under the next head.
    [
      `UPDATE flyball_audit SET stream_id = '1-0', at = to_timestamp(0.001), line = replace(line, stream_id, '1-0')
        WHERE n = (SELECT min(n) FROM flyball_audit)`,
      /a time was edited/,
    ],
    [
      `UPDATE flyball_audit SET revision = 5, line = replace(line, '"revision":6,"hash"', '"revision":5,"hash"')
        WHERE kind = 'note' AND revision = 6`,
      /fields say that revision 5 was in force/,
    ],
    [
      'UPDATE flyball_audit SET line = replace(line, \'"v":1\', \'"v": 1\') WHERE revision = 7',
      /edited beside/,
    ],
  ] as const) {
    await admin.query('BEGIN');
    await admin.query('CREATE TABLE kept AS SELECT * FROM flyball_audit');
    await admin.query('COMMIT');
    await admin.query(sql);
    const report = await verified(1);
    expect((report.limiters[0].fault ?? report.fault).what).toMatch(what);
    await admin.query('TRUNCATE flyball_audit');
    await admin.query('INSERT INTO flyball_audit OVERRIDING SYSTEM VALUE SELECT * FROM kept');
    await admin.query('DROP TABLE kept');
  }
  await verified(0);
});
