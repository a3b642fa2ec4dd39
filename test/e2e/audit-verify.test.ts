/** `flyball audit verify` on exports that were tampered with, on signed heads, on logs that were trimmed: it tells the truth. */
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { retain } from '../../src/actuate/retention.js';
import { systemClock } from '../../src/clock.js';
import { openAuditLogs } from '../../src/daemon/audit-logs.js';
import { readConfig } from '../../src/daemon/config.js';
import type { ManagedLimiter } from '../../src/daemon/managed-limiter.js';
import { fleetKeys } from '../../src/redis/keys.js';
import { createMetrics } from '../../src/report/metrics.js';
import {
  address,
  change,
  edit,
  files,
  folderExporter,
  history,
  keyPair,
  keys,
} from '../support/audit-rig.js';
import { cli } from '../support/cli-run.js';
import { until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

let server: TestRedis;
let redis: Redis;
const pair = keyPair();
let open: string;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  open = join(tempFolder('key'), 'audit.pub');
  writeFileSync(open, pair.open);
});
afterAll(() => server.stop());

async function verified(args: string[], code: number) {
  const run = await cli(['audit', 'verify', '--json', ...args], {
    env: { FLYBALL_REDIS_URL: server.url },
  });
  expect(run.code, run.stdout + run.stderr).toBe(code);
  return JSON.parse(run.stdout);
}

describe('an export that was tampered with', () => {
  let dir: string;
  let kept: Map<string, string>;

  beforeAll(async () => {
    await history(redis, 40);
    dir = tempFolder('tamper');
    let day = 1;
    const exporter = await folderExporter(redis, dir, {
      secret: pair.secret,
      nowMs: () => Date.UTC(2026, 2, day),
    });
    for (let i = 0; i < 5; i++) {
      await exporter.minute();
      await change(redis);
      day++;
    }
    await exporter.minute();
    await exporter.close();
    kept = new Map(
      [...files(dir), 'heads.jsonl'].map((file) => [file, readFileSync(join(dir, file), 'utf8')]),
    );
    expect(files(dir).length).toBeGreaterThan(3);
  });
  beforeEach(() => {
    for (const file of files(dir)) rmSync(join(dir, file));
    for (const [file, text] of kept) writeFileSync(join(dir, file), text);
  });

  const entries = (lines: string[]) =>
    lines.flatMap((line, i) => (line.includes('"kind":"entry"') ? [i] : []));
  /** The newest file may be edited without another one noticing. */
  const newest = () => files(dir).at(-1)!;
  const first = () => files(dir)[0]!;

  test('untouched it is proven by its signed heads, without Redis; without the key consistent', async () => {
    const run = await cli(['audit', 'verify', '--export', dir, '--key', open]);
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(
      /^ok {2}checkout: proven up to the signed head of 20.*: 45 changes and 13 notes/,
    );
    expect((await verified(['--export', dir], 0)).limiters[0]).toMatchObject({
      verdict: 'consistent',
    });
  });

  const INSIDE: Record<string, (lines: string[]) => string[]> = {
    'an entry edited': (lines) =>
      lines.map((line, i) =>
        i === entries(lines)[1] ? line.replace('Revision', 'revision') : line,
      ),
    'an entry deleted': (lines) => lines.filter((_, i) => i !== entries(lines)[1]),
    'two entries swapped': (lines) => {
      const [a, b] = entries(lines);
      return lines.map((line, i) => (i === a ? lines[b!]! : i === b ? lines[a!]! : line));
    },
    'an entry moved away and back in elsewhere': (lines) => {
      const [a] = entries(lines);
      return [...lines.filter((_, i) => i !== a), lines[a!]!];
    },
    'a line that is none': (lines) => [...lines.slice(0, 2), 'hello', ...lines.slice(2)],
  };
  for (const [what, alter] of Object.entries(INSIDE)) {
    test(`C93: ${what} is found in the first file, by what follows it`, async () => {
      edit(dir, first(), alter);
      const report = await verified(['--export', dir, '--key', open], 1);
      expect(report.fault ?? report.limiters[0].fault).toBeTruthy();
      // And by the chain alone, where no later file tells.
      for (const file of files(dir).slice(1)) rmSync(join(dir, file));
      rmSync(join(dir, 'heads.jsonl'));
      const alone = await verified(['--export', dir], 1);
      expect(alone.limiters[0]?.fault ?? alone.fault).toBeTruthy();
      if (alone.limiters[0]?.fault)
        expect(alone.limiters[0].where).toMatch(/^audit-000001\.jsonl:\d+$/);
    });
  }

  test('an entry put in twice is told as repeated, and in an old file as an edit of it', async () => {
    const twice = (lines: string[]) => [...lines, lines[entries(lines).at(-1)!]!];
    edit(dir, newest(), twice);
    expect((await verified(['--export', dir, '--key', open], 0)).limiters[0]).toMatchObject({
      repeated: 1,
    });
    edit(dir, first(), twice);
    const report = await verified(['--export', dir, '--key', open], 1);
    expect(report.fault.what).toContain('audit-000001.jsonl, the file before it, is not as it was');
  });

  test('a tail cut off is found by a head kept elsewhere, by the one beside it, and by an anchor', async () => {
    const elsewhere = join(tempFolder('heads'), 'heads.jsonl');
    copyFileSync(join(dir, 'heads.jsonl'), elsewhere);
    edit(dir, newest(), (lines) => lines.slice(0, 1));
    const { limiters } = await verified(['--export', dir], 1);
    expect(limiters[0].fault.what).toMatch(/head of .* is of entry .*, which is missing/);
    rmSync(join(dir, 'heads.jsonl'));
    // Inside all fits: what was there up to then is proven, of what came after nothing is known.
    await verified(['--export', dir, '--key', open], 0);
    await verified(['--export', dir, '--heads', elsewhere, '--key', open], 1);
    const { hash } = JSON.parse(kept.get('heads.jsonl')!);
    await verified(['checkout', '--export', dir, '--anchor', hash], 1);
  });

  test('a tail rewritten, with hashes and heads that fit, is found by the signature', async () => {
    const { sealEntry } = await import('../../src/actuate/entry.js');
    edit(dir, newest(), (lines) => {
      const at = entries(lines)[0]!;
      const line = JSON.parse(lines[at]!);
      const sealed = sealEntry(line.prev, { ...line.body, sentence: 'Nothing happened.' });
      const forged = `${JSON.stringify({ ...line, hash: sealed.hash, body: undefined }).slice(0, -1)},"body":${sealed.body}}`;
      const head = JSON.parse(lines.find((each) => each.includes('"kind":"head"'))!);
      return [...lines.slice(0, at), forged, JSON.stringify({ ...head, hash: sealed.hash })];
    });
    rmSync(join(dir, 'heads.jsonl'));
    // Without the key nobody can tell.
    await verified(['--export', dir], 0);
    const report = await verified(['--export', dir, '--key', open], 1);
    expect(report.limiters[0].fault.what).toContain('not signed by the key');
  });

  test('a gap that somebody else wrote, to take entries out, is not signed', async () => {
    edit(dir, newest(), (lines) => {
      const [a] = entries(lines);
      const gone = JSON.parse(lines[a!]!);
      const next = {
        v: 1,
        kind: 'gap',
        limiter: 'checkout',
        why: 'trimmed',
        after: gone.id,
        before: '9-9',
        prev: gone.hash,
        atMs: 1,
      };
      return [...lines.slice(0, a! + 1), JSON.stringify(next)];
    });
    const report = await verified(['--export', dir, '--key', open], 1);
    expect(report.limiters[0].fault.what).toContain('not signed');
  });

  test('files renamed, taken away or put in from elsewhere are named', async () => {
    const [, second, third] = files(dir);
    rmSync(join(dir, second!));
    expect((await verified(['--export', dir], 1)).fault).toMatchObject({
      where: third,
      what: 'audit-000002.jsonl, the file before it, is missing',
    });
    renameSync(join(dir, third!), join(dir, second!));
    expect((await verified(['--export', dir], 1)).fault.what).toContain('it was renamed');
    writeFileSync(join(dir, second!), kept.get(first())!);
    expect((await verified(['--export', dir], 1)).fault.what).toContain('audit-000001.jsonl');
  });

  test('a key that is another, or none, or heads that are none, are errors that say what to give', async () => {
    const other = join(tempFolder('key'), 'other.pub');
    writeFileSync(other, keyPair().open);
    // Heads of a key that was not given prove nothing, and are no fault: keys are changed.
    expect((await verified(['--export', dir, '--key', other], 0)).limiters[0].verdict).toBe(
      'consistent',
    );
    const cases: [string[], number, RegExp][] = [
      [['--export', dir, '--key', join(dir, first())], 78, /FLYBALL_E_AUDIT_KEY.*openssl genpkey/s],
      [['--export', dir, '--key', '/nowhere'], 78, /FLYBALL_E_AUDIT_KEY.*cannot be read/s],
      [['--export', dir, '--heads', join(dir, first())], 1, /FLYBALL_E_AUDIT_HEADS/],
      [['--export', dir, '--heads', dir, '--key', other], 1, /not signed by the key given/],
      [['--export', tempFolder('empty')], 1, /FLYBALL_E_AUDIT_NO_EXPORT.*FLYBALL_AUDIT_FILE/s],
      [['--export'], 64, /FLYBALL_AUDIT_FILE is not set/],
      [['--export', dir, '--postgres', 'postgres://x/y'], 64, /one at a time/],
      [['checkout', '--anchor', 'abc'], 64, /64 hex digits/],
      [['--anchor', 'a'.repeat(64)], 64, /of one limiter/],
    ];
    for (const [args, code, text] of cases) {
      const run = await cli(['audit', 'verify', ...args]);
      expect(run.stderr).toMatch(text);
      expect(run.code, run.stderr).toBe(code);
    }
  });

  test('heads prove what Redis holds, too', async () => {
    await redis.hset(fleetKeys().limiters, 'checkout', '');
    const [report] = (await verified(['--heads', dir, '--key', open], 0)).limiters;
    expect(report).toMatchObject({ verdict: 'proven', proven: { since: 0 } });
  });
});

describe('what the log keeps', () => {
  const actor = { kind: 'autopilot' as const, name: 'd1' };
  const asked = { keep: 20, keepMost: 60, actor, nowMs: Date.now() };

  test('a trim leaves a note with the last hash trimmed, another number is a note; verify goes on from there', async () => {
    await history(redis, 40);
    const all = (await readEntries(redis, address, { limit: 100 })).entries;
    const anchor = all[0]!.hash;
    expect(await retain(redis, address, asked)).toMatchObject({
      entries: 54,
      trimmed: 34,
      unexported: 34 - 34,
    });
    const { entries } = await readEntries(redis, address, { limit: 100 });
    expect(entries).toHaveLength(21);
    expect(entries.map(({ body }) => body.reason).slice(0, 2)).toEqual([
      'audit_trimmed',
      'audit_retention',
    ]);
    expect(entries[0]!.body.detail).toMatchObject({
      trimmed: 34,
      throughHash: entries.at(-1)!.prev,
      keep: 20,
    });
    expect(entries[1]!.body.detail).toMatchObject({
      keep: 20,
      before: { keep: 10_000, keepMost: 50_000 },
    });
    expect((await verifyAudit(redis, address)).sentence).toContain(
      `older ones were trimmed, as entry ${entries[0]!.id} says`,
    );
    expect(await verifyAudit(redis, address, { anchor })).toMatchObject({
      verdict: 'proven',
      trimmed: true,
    });
    // Nothing to do until a tenth more has come.
    expect(await retain(redis, address, asked)).toMatchObject({ trimmed: 0 });
    expect(await redis.pttl(keys.retention)).toBeGreaterThan(0);
  });

  test('what an exporter has not yet, stays, up to the most; then it goes, and the note says so', async () => {
    await history(redis, 30);
    const dir = tempFolder('keep');
    const exporter = await folderExporter(redis, dir);
    // Known of, and not heard yet.
    expect(await retain(redis, address, { ...asked, exporters: ['file:x'] })).toMatchObject({
      trimmed: 0,
    });
    await exporter.minute();
    for (let i = 0; i < 30; i++) await change(redis);
    expect(await retain(redis, address, asked)).toEqual({
      entries: 71,
      trimmed: 41,
      unexported: 0,
    });
    for (let i = 0; i < 40; i++) await change(redis);
    expect(await retain(redis, address, asked)).toEqual({
      entries: 71,
      trimmed: 11,
      unexported: 11,
    });
    const [note] = (await readEntries(redis, address, { limit: 1 })).entries;
    expect(note!.body.sentence).toContain('11 of them not exported');
    await exporter.round();
    const { limiters } = await verified(['--export', dir], 0);
    expect(limiters[0]).toMatchObject({ verdict: 'consistent', gaps: [{ why: 'trimmed' }] });
    await exporter.close();
  });

  test('a daemon trims the logs that it leads, and only those', async () => {
    await history(redis, 150);
    const before = await redis.xlen(keys.audit);
    const metrics = createMetrics('test');
    for (const leads of [false, true]) {
      const limiter = { address, leads } as ManagedLimiter;
      const config = { ...readConfig({}).audit, keep: 100, keepMost: 200 };
      const logs = await openAuditLogs({
        ...{
          config,
          redis,
          prefix: 'flyball',
          owner: 'd1',
          leaseMs: 1000,
          clock: systemClock,
          metrics,
        },
        limiters: new Map([['checkout', limiter]]),
        log: pino({ level: 'silent' }),
      });
      logs.start();
      if (leads) await until('it is trimmed', async () => (await redis.xlen(keys.audit)) < before);
      await logs.close();
      if (!leads) expect(await redis.xlen(keys.audit)).toBe(before);
    }
    const [note] = (await readEntries(redis, address, { limit: 1 })).entries;
    expect(note!.body).toMatchObject({
      reason: 'audit_trimmed',
      actor: { kind: 'autopilot', name: 'd1' },
    });
    expect(await metrics.registry.metrics()).toMatch(
      /trimmed_entries_total\{limiter="checkout",exported="yes"} 1\d\d/,
    );
  });
});
