/** What an export owes the disk and the clock: nothing counts as exported before it is synced, and heads go out once a minute. Stage: tests. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type ExportFolder, openExportFolder } from '../../src/audit/export-folder.js';
import type { HeadLine } from '../../src/audit/export-line.js';
import { manualClock } from '../../src/clock.js';
import { openAuditLogs } from '../../src/daemon/audit-logs.js';
import { readConfig } from '../../src/daemon/config.js';
import { fleetKeys } from '../../src/redis/keys.js';
import { createMetrics } from '../../src/report/metrics.js';
import { address, change, files, history } from '../support/audit-rig.js';
import { until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

const METHODS = ['write', 'writeFile', 'datasync', 'sync'] as const;
/** What every open file is made of; it has no name of its own in node:fs. */
let handles: Record<(typeof METHODS)[number], (...args: unknown[]) => Promise<unknown>>;
let server: TestRedis;
let dir: string;
/** What was done to files, oldest first: `datasync audit-000001.jsonl`. */
let done: string[];

beforeAll(async () => {
  const one = await open(join(tempFolder('sync'), 'x'), 'w');
  handles = Object.getPrototypeOf(one);
  await one.close();
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(() => {
  dir = tempFolder('sync');
  done = [];
});
afterEach(() => vi.restoreAllMocks());

/** By its number on the disk: a draft has another name at first. */
async function nameNow(file: FileHandle): Promise<string> {
  const { ino } = await file.stat();
  return readdirSync(dir).find((name) => statSync(join(dir, name)).ino === ino) ?? 'the folder';
}

/** All is done as ever, and told. */
function watchFiles(): void {
  for (const method of METHODS) {
    const real = handles[method];
    vi.spyOn(handles, method).mockImplementation(async function (this: FileHandle, ...args) {
      const result = await real.apply(this, args);
      done.push(`${method} ${await nameNow(this)}`);
      return result;
    });
  }
}

const opened = (maxBytes = 1_000): Promise<ExportFolder> =>
  openExportFolder({ dir, prefix: 'flyball', maxBytes, signer: null, nowMs: Date.now });
const at = { id: '1-0', hash: 'x', epoch: 1, revision: 1 };
const head: HeadLine = {
  ...{ v: 1, kind: 'head', prefix: 'flyball', limiter: 'checkout', ...at, atMs: 1 },
};

test('each line, each first line and each file of heads is synced before it counts; drafts before they get their name', async () => {
  watchFiles();
  const folder = await opened(100);
  await folder.append([JSON.stringify(head)], new Map());
  const first = [
    ...['writeFile audit-000001.jsonl.tmp', 'datasync audit-000001.jsonl.tmp', 'sync the folder'],
    ...['write audit-000001.jsonl', 'datasync audit-000001.jsonl'],
  ];
  expect(done.splice(0)).toEqual(first);
  // The file is full: the next one begins alike.
  await folder.append([JSON.stringify(head)], new Map());
  expect(done.splice(0)).toEqual(first.map((each) => each.replace('000001', '000002')));
  await folder.writeHeads([head]);
  expect(done.splice(0)).toEqual([
    ...['writeFile heads.jsonl.tmp', 'datasync heads.jsonl.tmp', 'sync the folder'],
  ]);
  await folder.close();
  // Whoever wrote it may have died before it was synced.
  const again = await opened();
  expect(done).toEqual(['datasync audit-000002.jsonl']);
  await again.close();
});

test('what could not be synced does not count as exported', async () => {
  const folder = await opened();
  await folder.append([JSON.stringify(head)], new Map());
  vi.spyOn(handles, 'datasync').mockRejectedValueOnce(new Error('EIO: the disk is gone'));
  await expect(folder.append([JSON.stringify(head)], new Map([['checkout', at]]))).rejects.toThrow(
    'EIO',
  );
  expect(folder.positions.get('checkout')).toBeUndefined();
  await folder.close();
});

test('entries go out as they come, heads once a minute', async () => {
  const redis = server.client();
  await history(redis, 3);
  await redis.hset(fleetKeys().limiters, address.name, '');
  const clock = manualClock(Date.now());
  const { audit } = readConfig({ FLYBALL_AUDIT_FILE: dir, FLYBALL_REDIS_URL: server.url });
  const logs = await openAuditLogs({
    ...{ config: audit, redis, prefix: 'flyball', owner: 'd1', leaseMs: 60_000, clock },
    ...{ limiters: new Map(), log: pino({ level: 'silent' }), metrics: createMetrics('d1') },
  });
  // A draft may stand beside them, and the last line be on its way.
  const lines = () =>
    files(dir)
      .filter((file) => file.endsWith('.jsonl'))
      .flatMap((file) => readFileSync(join(dir, file), 'utf8').split('\n').slice(0, -1))
      .map((line) => JSON.parse(line) as { kind: string; revision: number });
  const newest = (kind: string) =>
    lines()
      .filter((line) => line.kind === kind)
      .at(-1)?.revision;
  logs.start();
  try {
    await until('the first head', () => newest('head') === 3);
    for (const [ms, revision] of [
      [0, 4],
      [59_000, 5],
    ] as const) {
      clock.advance(ms);
      await change(redis);
      await until(`revision ${revision} is there`, () => newest('entry') === revision);
      expect(newest('head')).toBe(3);
    }
    clock.advance(1_000);
    await until('the next head', () => newest('head') === 5);
    await until('it knows', () => logs.exports()[0]?.headsMs === clock.nowMs());
    expect(logs.exports()).toMatchObject([{ writes: true, lagMs: 0, fault: null }]);
  } finally {
    await logs.close();
  }
});
