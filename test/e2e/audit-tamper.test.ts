/** Exports of audit logs that were tampered with beyond their entries: heads, gaps, first lines, files, the folder itself. */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { verifyAudit } from '../../src/actuate/audit.js';
import type { GapLine } from '../../src/audit/export-line.js';
import { createSigner } from '../../src/audit/signature.js';
import { holdFolder } from '../../src/redis/folder-lock.js';
import {
  address,
  change,
  edit,
  files,
  folderExporter,
  history,
  keyPair,
  keys,
  proof,
} from '../support/audit-rig.js';
import { cli } from '../support/cli-run.js';
import { redisBench } from '../support/redis-bench.js';
import { tempFolder } from '../support/temp-folder.js';

let redis: Redis;
let env: NodeJS.ProcessEnv;

redisBench((bench) => {
  ({ redis, env } = bench);
  return history(redis);
});

test('lines of other types than an exporter writes, and files that cannot be read, are told by their place', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.minute();
  await exporter.close();
  const [file] = files(dir);
  const path = join(dir, file!);
  const whole = readFileSync(path, 'utf8');
  const head = {
    v: 1,
    kind: 'head',
    limiter: 'checkout',
    hash: 'x',
    id: '9-0',
    epoch: 1,
    revision: 1,
  };
  const gap = { v: 1, kind: 'gap', limiter: 'checkout', why: 'anew', after: null, before: '9-0' };
  for (const odd of [
    head,
    { ...head, atMs: 1e99 },
    { ...head, atMs: 1, id: 5 },
    { ...head, atMs: 1, key: 5, sig: 5 },
  ]) {
    appendFileSync(path, `${JSON.stringify(odd)}\n`);
    expect((await proof(dir)).fault?.what, JSON.stringify(odd)).toMatch(/none of an export/);
    writeFileSync(path, whole);
  }
  for (const odd of [gap, { ...gap, atMs: 1, prev: 5 }, { ...gap, atMs: 1, prev: '', after: 5 }]) {
    appendFileSync(path, `${JSON.stringify(odd)}\n`);
    expect((await proof(dir)).fault?.what, JSON.stringify(odd)).toMatch(/none of an export/);
    writeFileSync(path, whole);
  }
  for (const heads of ['{"checkout":null}', '{"checkout":{"hash":5}}']) {
    writeFileSync(path, whole.replace('"heads":{}', `"heads":${heads}`));
    expect((await proof(dir)).fault?.what, heads).toMatch(/none of an export/);
  }
  const claimed = '"heads":{"x":{"id":"9-0","hash":"x","epoch":1,"revision":1}}';
  writeFileSync(path, whole.replace('"heads":{}', claimed));
  expect((await proof(dir)).fault?.what).toMatch(/it is the first/);
  rmSync(path);
  for (const bytes of [gzipSync(whole).subarray(0, -20), Buffer.from(whole)]) {
    writeFileSync(`${path}.gz`, bytes);
    expect((await proof(dir)).fault).toMatchObject({
      where: `${file}.gz`,
      what: expect.stringContaining('cannot be read'),
    });
  }
});

test('C93: what stands beside the body of an entry, under no hash, is found where it was edited', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.minute();
  await change(redis);
  await exporter.minute();
  await exporter.close();
  rmSync(join(dir, 'heads.jsonl'));
  const [file] = files(dir);
  const whole = readFileSync(join(dir, file!), 'utf8');
  expect((await proof(dir)).limiters).toMatchObject([{ verdict: 'consistent', entries: 11 }]);
  const hourBefore = (id: string) => `${Number(id.split('-')[0]) - 3_600_000}-0`;
  const note = /"type":"note","epoch":(\d+),"revision":6,/;
  const edits: [string, (line: string) => string, RegExp][] = [
    [
      '"revision":6,',
      (line) => line.replace(note, '"type":"note","epoch":$1,"revision":5,'),
      /revision 5 was/,
    ],
    [
      '"revision":6,',
      (line) => line.replace(note, '"type":"note","epoch":7,"revision":6,'),
      /fields say/,
    ],
    ['"revision":4,', (line) => line.replace('"revision":4,', '"revision":40,'), /fields differ/],
    ['"revision":4,', (line) => line.replace('"hash"', '"by":"kim","hash"'), /beside its body/],
    ['"revision":4,', (line) => line.replace('"hash"', '"revision":4,"hash"'), /beside its body/],
    [
      '"revision":4,',
      (line) => line.replace('"revision":4,', '"revision":"4",'),
      /beside its body/,
    ],
    ['"revision":4,', (line) => line.replace('"v":1', '"v": 1'), /beside its body/],
    ['"revision":4,', (line) => line.replace('"v":1', '"v":2'), /its line is of version 2/],
    // An hour earlier the log began: the first entry has none before it, and the next is later all the same.
    [
      '"revision":1,',
      (line) => line.replace(/"id":"([^"]+)"/, (_, id) => `"id":"${hourBefore(id)}"`),
      /a time was edited/,
    ],
    [
      '"kind":"head"',
      (line) => line.replace('"revision":8', '"revision":7'),
      /says of its entry otherwise/,
    ],
    [
      '"kind":"head"',
      (line) => line.replace(/"id":"([^"]+)"/, (_, id) => `"id":"${hourBefore(id)}"`),
      /otherwise/,
    ],
  ];
  for (const [of, alter, what] of edits) {
    const lines = whole.split('\n');
    const at = lines.findIndex(
      (line) => line.includes(of) && (of !== '"revision":6,' || note.test(line)),
    );
    const altered = alter(lines[at]!);
    expect(altered, String(what)).not.toBe(lines[at]);
    writeFileSync(join(dir, file!), lines.with(at, altered).join('\n'));
    const [checked] = (await proof(dir)).limiters;
    expect(checked).toMatchObject({ verdict: 'broken', where: expect.stringContaining(file!) });
    expect(checked!.fault!.what).toMatch(what);
  }
  // In Redis itself, too: a field beside those of an entry.
  const entries = await redis.xrange(keys.audit, '-', '+');
  await redis.del(keys.audit);
  for (const [i, [id, fields]] of entries.entries()) {
    await redis.xadd(keys.audit, id, ...fields, ...(i === 4 ? ['by', 'kim'] : []));
  }
  expect((await verifyAudit(redis, address)).fault).toMatchObject({
    id: entries[4]![0],
    what: 'its fields are not written as those of an audit entry are',
  });
});

test('a log of which only a head is left is missing, in the export and in Redis; one in files moved away is not', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir, { maxBytes: 1 });
  await exporter.minute();
  await exporter.minute();
  await exporter.close();
  const all = files(dir);
  const heads = join(dir, 'heads.jsonl');
  // Only what was written after the last entry is here: the first line says where the log stood.
  edit(dir, all.at(-1)!, (lines) => lines.slice(0, 1));
  for (const file of all.slice(0, -1)) rmSync(join(dir, file));
  expect((await proof(dir)).limiters).toMatchObject([{ verdict: 'consistent', trimmed: true }]);
  const kept = readFileSync(heads, 'utf8');
  const other = tempFolder('export');
  const second = await folderExporter(redis, other);
  await second.minute();
  await second.close();
  edit(other, files(other)[0]!, (lines) => lines.slice(0, 1));
  expect((await proof(other)).limiters).toMatchObject([{ limiter: 'checkout', verdict: 'broken' }]);
  const copy = join(tempFolder('heads'), 'heads.jsonl');
  writeFileSync(copy, kept);
  await redis.flushall();
  const run = await cli(['audit', 'verify', '--json', '--heads', copy], { env });
  expect([run.code, JSON.parse(run.stdout).limiters]).toMatchObject([1, [{ verdict: 'broken' }]]);
});

test('a gap that another key signed is none of the exporter', async () => {
  const { secret, open } = keyPair();
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir, { secret });
  await exporter.minute();
  await change(redis);
  await change(redis);
  await exporter.minute();
  await exporter.close();
  edit(dir, files(dir)[0]!, (lines) => {
    const at = lines.findLastIndex((line) => line.includes('"revision":9,'));
    const [gone, next] = [JSON.parse(lines[at]!), JSON.parse(lines[at + 1]!)];
    const before = JSON.parse(lines[at - 2]!);
    const gap: GapLine = {
      v: 1,
      kind: 'gap',
      limiter: 'checkout',
      why: 'trimmed',
      after: before.id,
      before: next.id,
      prev: gone.hash,
      atMs: 1,
    };
    const signed = createSigner(keyPair().secret, 'test').sign(gap);
    return [...lines.slice(0, at), JSON.stringify(signed), ...lines.slice(at + 1)];
  });
  const [checked] = (await proof(dir, open)).limiters;
  expect(checked).toMatchObject({ verdict: 'broken' });
  expect(checked!.sentence).toMatch(/signed by the key [0-9a-f]{16}, which was not given/);
});

test('a folder that was moved away while it was open is left, and begun anew where its name is', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.round();
  const away = join(tempFolder('away'), 'moved');
  renameSync(dir, away);
  mkdirSync(dir);
  await change(redis);
  await exporter.round();
  expect(exporter.fault).toMatch(/another file stands in its place/);
  // Another one has taken the new folder meanwhile: its lock stays when the first goes.
  const other = holdFolder(dir);
  await exporter.close();
  expect(holdFolder(dir)).toBeNull();
  other!.release();
  const next = await folderExporter(redis, dir);
  await next.round();
  const report = await proof(dir);
  expect(report.fault).toBeUndefined();
  expect(report.limiters).toMatchObject([{ verdict: 'consistent', gaps: [] }]);
  await next.close();
});

test('who takes over from one that was killed goes on with the ids since its last head, as far as Redis has them', async () => {
  const later = () => new Promise((ok) => setTimeout(ok, 5));
  for (const [trimmed, ids] of [
    [false, expect.any(String)],
    [true, undefined],
  ] as const) {
    await history(redis);
    const dir = tempFolder('export');
    const killed = await folderExporter(redis, dir);
    await killed.minute();
    await later();
    await change(redis);
    await change(redis);
    await killed.round();
    // It let go of the folder, and wrote no head.
    await killed.close();
    if (trimmed) await redis.xtrim(keys.audit, 'MAXLEN', '=', 1);
    await change(redis);
    const next = await folderExporter(redis, dir, { owner: 'd2' });
    await next.minute();
    await next.close();
    const [file] = files(dir);
    const newest = readFileSync(join(dir, file!), 'utf8').trimEnd().split('\n').at(-1)!;
    expect(JSON.parse(newest)).toMatchObject({ kind: 'head', revision: 11 });
    expect(JSON.parse(newest).ids).toEqual(ids);
    expect((await proof(dir)).limiters).toMatchObject([{ verdict: 'consistent', gaps: [] }]);
    // What the killed one had written is edited: a millisecond earlier, and still in order.
    edit(dir, file!, (lines) =>
      lines.map((line) =>
        line.includes('"kind":"entry"') && line.includes('"revision":9,')
          ? line.replace(/"id":"(\d+)-\d+"/, (_, ms) => `"id":"${Number(ms) - 1}-0"`)
          : line,
      ),
    );
    const { verdict } = (await proof(dir)).limiters[0]!;
    expect(verdict).toBe(trimmed ? 'consistent' : 'broken');
  }
});
