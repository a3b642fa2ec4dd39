/** What a daemon says of where its audit logs go: how far, by which key, what keeps it from it; and what others make of it. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { type ExportState, readExportStates } from '../../src/audit/export-state.js';
import { createPostgresSink } from '../../src/audit/postgres-sink.js';
import { createSigner } from '../../src/audit/signature.js';
import { daemonOf } from '../../src/view/fleet.js';
import {
  address,
  change,
  exporterTo,
  folderExporter,
  history,
  keyPair,
  keys,
} from '../support/audit-rig.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

let server: TestRedis;
let redis: Redis;
let dir: string;
let nowMs: number;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flyball-export-'));
  nowMs = Date.now();
  await history(redis, 4);
});

const clock = { nowMs: () => nowMs };

test('a place that is written: the newest entry, when heads were, and by which key', async () => {
  const { secret } = keyPair();
  const exporter = await folderExporter(redis, dir, { secret, ...clock });
  const { params } = await readParams(redis, address);
  expect(exporter.state()).toMatchObject({ writes: false, lagMs: null, last: null, headsMs: null });
  await exporter.minute();
  const id = await change(redis);
  await exporter.round();
  expect(exporter.state()).toEqual({
    ...{ kind: 'file', to: dir, writes: true, fault: null, lagMs: 0, headsMs: nowMs },
    signedBy: createSigner(secret, 'test').key,
    last: {
      limiter: 'checkout',
      epoch: params!.epoch,
      revision: params!.revision + 1,
      atMs: Number(id.split('-')[0]),
    },
  });
  const other = await folderExporter(redis, dir, { owner: 'd2' });
  await other.round();
  expect(other.state()).toMatchObject({ to: dir, writes: false, lagMs: null, signedBy: null });
  await exporter.close();
  await other.minute();
  // All of it was there already: who takes over knows what.
  expect(other.state()).toMatchObject({ writes: true, lagMs: 0, last: { limiter: 'checkout' } });
  await other.close();
  rmSync(dir, { recursive: true });
});

test('a place that fails: why, and how old what it lacks has become, until it is there again', async () => {
  const exporter = await folderExporter(redis, dir, clock);
  const fresh = await folderExporter(redis, dir, { owner: 'd2', ...clock });
  await exporter.minute();
  await exporter.close();
  renameSync(dir, `${dir}-away`);
  writeFileSync(dir, 'a file where the folder was');
  nowMs += 1;
  await exporter.round();
  expect(exporter.state().fault).toContain(dir);
  // All that there is was there before.
  expect(exporter.state().lagMs).toBe(0);
  const id = await change(redis);
  nowMs = Number(id.split('-')[0]) + 40_000;
  await exporter.round();
  expect(exporter.state()).toMatchObject({ writes: true, lagMs: 40_000 });
  await exporter.close();
  // One that never wrote there knows it of the other.
  await fresh.round();
  expect(fresh.state()).toMatchObject({ writes: false, lagMs: 40_000 });
  expect(fresh.state().fault).toContain(dir);
  await fresh.close();
  rmSync(dir);
  renameSync(`${dir}-away`, dir);
  nowMs += 60_000;
  await exporter.round();
  expect(exporter.state()).toMatchObject({ fault: null, writes: true, lagMs: 0 });
  await exporter.close();
  rmSync(dir, { recursive: true });
});

test('a wall clock that is set back keeps no place from being tried again', async () => {
  let monotonicMs = 0;
  const exporter = await folderExporter(redis, dir, { ...clock, monotonicMs: () => monotonicMs });
  await exporter.minute();
  renameSync(dir, `${dir}-away`);
  writeFileSync(dir, 'a file where the folder was');
  await change(redis);
  await exporter.round();
  expect(exporter.state().fault).toContain(dir);
  rmSync(dir);
  renameSync(`${dir}-away`, dir);
  nowMs -= 3_600_000;
  await exporter.round();
  expect(exporter.state().fault).toContain(dir);
  monotonicMs += 30_000;
  await exporter.round();
  expect(exporter.state()).toMatchObject({ fault: null, writes: true });
  await exporter.close();
  rmSync(dir, { recursive: true });
});

test('how old what waits has become; no fault tells a login', async () => {
  const away = async () => {
    throw new Error(`cannot reach postgres://kim:s3cr3t@db/x ${'y'.repeat(1_000)}`);
  };
  const nothing = async () => {};
  const exporter = exporterTo(
    redis,
    {
      ...{ kind: 'postgres', name: 'x', to: 'postgres://db/x', signedBy: null, append: away },
      ...{
        acquire: async () => true,
        position: () => null,
        headed: () => null,
        holds: async () => new Set<string>(),
      },
      ...{ appendHeads: nothing, reopen: nothing, release: nothing },
    },
    undefined,
    { ...clock, monotonicMs: clock.nowMs },
  );
  const [[oldest] = ['']] = await redis.xrange(keys.audit, '-', '+', 'COUNT', 1);
  await exporter.round();
  nowMs = Number(oldest.split('-')[0]) + 60_000;
  expect(exporter.state()).toMatchObject({ writes: true, lagMs: 60_000, last: null });
  const { fault } = exporter.state();
  expect(fault).toMatch(/^cannot reach postgres:\/\/kim:\*\*\*@db/);
  expect(fault!.length).toBe(300);
});

test('a database is named without its login, whatever the password is made of', () => {
  const to = (url: string) => createPostgresSink({ url, prefix: 'flyball', signer: null }).to;
  expect(to('postgres://kim:s3cr3t@db.example:5432/audit?sslmode=require')).toBe(
    'postgres://db.example:5432/audit',
  );
  for (const url of ['postgres://kim:s3/cr3t@db/x', 'postgresql://k:s3@cr3t@db/x', 'kim:s3cr3t']) {
    expect(to(url)).not.toMatch(/s3|cr3t/);
  }
  const url = 'postgres://kim:s3cr3t@127.0.0.1:1/audit';
  const state = exporterTo(redis, createPostgresSink({ url, prefix: 'flyball', signer: null }));
  expect(JSON.stringify(state.state())).not.toContain('s3cr3t');
});

test('what others say is taken whole or not at all', () => {
  const sound: ExportState = {
    ...{ kind: 'file', to: '/var/log/flyball', writes: true, signedBy: null, headsMs: null },
    ...{ lagMs: null, last: null, fault: 'no space left' },
  };
  expect(readExportStates([sound])).toEqual([sound]);
  expect(readExportStates([])).toEqual([]);
  for (const odd of [
    ...[undefined, null, {}, 'x', [{}], [{ ...sound, lagMs: -1 }], [{ ...sound, kind: 's3' }]],
    ...[[{ ...sound, to: 'x'.repeat(5_000) }], [{ ...sound, last: {} }], Array(11).fill(sound)],
  ]) {
    expect([odd, readExportStates(odd)]).toEqual([odd, null]);
  }
  const said = (exports: unknown) => `1000 ${JSON.stringify({ name: 'a', exports })}`;
  expect(daemonOf('a:1:x', said([sound]), 2000)[0]!.exports).toEqual([sound]);
  expect(daemonOf('a:1:x', said(undefined), 2000)[0]!.exports).toBeNull();
});
