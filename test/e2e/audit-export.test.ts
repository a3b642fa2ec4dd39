/** Audit logs exported to a folder: whatever happens to exporter, disk or Redis, each entry is there once, and what is missing is told. */
import {
  appendFileSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { sealEntry } from '../../src/actuate/entry.js';
import { prepareFolder } from '../../src/audit/export-folder.js';
import { fleetKeys } from '../../src/redis/keys.js';
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
import { redisBench } from '../support/redis-bench.js';
import { seedParams } from '../support/seed-params.js';
import { tempFolder } from '../support/temp-folder.js';

let redis: Redis;

redisBench((bench) => {
  ({ redis } = bench);
  return history(redis);
});

/** What is exported is what Redis holds. */
async function expectWhole(dir: string) {
  const report = await proof(dir);
  expect(report.fault).toBeUndefined();
  expect(report.limiters).toMatchObject([
    { verdict: 'consistent', entries: await redis.xlen(keys.audit), gaps: [] },
  ]);
  return report.limiters[0]!;
}

test('each entry is a line of JSON with the bytes that were hashed; a later round adds what is new', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.round();
  await change(redis, { note: 'a "quoted" word, ü, \u2028 and a line\nbreak' });
  await exporter.round();
  await exporter.round();
  expect(exporter.fault).toBeNull();
  await expectWhole(dir);
  const lines = readFileSync(join(dir, files(dir)[0]!), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines[0]).toMatchObject({ v: 1, kind: 'segment', n: 1, prefix: 'flyball', prev: null });
  expect(lines.at(-1)).toMatchObject({
    kind: 'entry',
    limiter: 'checkout',
    type: 'change',
    revision: 9,
  });
  expect(lines.at(-1).body.detail.note).toContain('line\nbreak');
  await exporter.close();
});

test('files follow each other by size and by day, each naming the last; packed old ones can be read', async () => {
  const dir = tempFolder('export');
  let nowMs = Date.UTC(2026, 2, 1, 12);
  const exporter = await folderExporter(redis, dir, { maxBytes: 2_000, nowMs: () => nowMs });
  for (let i = 0; i < 6; i++) {
    await exporter.round();
    await change(redis);
  }
  expect(files(dir).length).toBeGreaterThan(2);
  const before = files(dir).length;
  const newest = join(dir, files(dir).at(-1)!);
  const small = statSync(newest).size;
  nowMs += 12 * 3_600_000;
  await exporter.round();
  expect(files(dir).length).toBeGreaterThan(before);
  expect(statSync(newest).size).toBe(small);
  const first = join(dir, files(dir)[0]!);
  writeFileSync(`${first}.gz`, gzipSync(readFileSync(first)));
  rmSync(first);
  await expectWhole(dir);
  // Older files that were taken away are told, and are no fault.
  rmSync(`${first}.gz`);
  const report = await proof(dir);
  expect(report).toMatchObject({ first: 2, limiters: [{ verdict: 'consistent', trimmed: true }] });
  expect(report.fault).toBeUndefined();
  await exporter.close();
});

test('C93: killed in the middle of a line: verify points at it, the next exporter cuts it off and writes it again', async () => {
  const dir = tempFolder('export');
  const first = await folderExporter(redis, dir);
  await first.round();
  await first.close();
  const file = join(dir, files(dir)[0]!);
  const size = statSync(file).size;
  for (const left of [1, 40, 400]) {
    truncateSync(file, size - left);
    const report = await proof(dir);
    expect(report).toMatchObject({
      torn: { where: `${files(dir)[0]}:${report.limiters[0]!.entries + 2}` },
    });
    expect(report.fault).toBeUndefined();
    expect(report.limiters[0]).toMatchObject({ verdict: 'consistent' });
    const next = await folderExporter(redis, dir);
    await next.round();
    expect(next.seen.cut).toBeGreaterThan(0);
    expect(statSync(file).size).toBe(size);
    await expectWhole(dir);
    await next.close();
  }
  // What a lost power supply may leave: zeros, or half a line with a break.
  appendFileSync(file, `${'\0'.repeat(50)}\n{"v":1,"ki\n`);
  const next = await folderExporter(redis, dir);
  await next.round();
  expect(statSync(file).size).toBe(size);
  await next.close();
});

test('two exporters of one folder: one writes, the other takes over; what a sleeper repeats is told and is no fault', async () => {
  const dir = tempFolder('export');
  const [a, b] = [
    await folderExporter(redis, dir, { owner: 'a' }),
    await folderExporter(redis, dir, { owner: 'b' }),
  ];
  await a.round();
  await b.round();
  expect([a.seen.writes, b.seen.writes, b.seen.exported]).toEqual([true, false, 0]);
  await change(redis);
  await b.round();
  await a.close();
  await b.round();
  expect([b.seen.writes, b.seen.exported]).toEqual([true, 1]);
  await expectWhole(dir);
  // `a` has slept past its lease and wakes: it is refused, though its file is still open.
  await change(redis);
  await a.round();
  expect(a.seen.writes).toBe(false);
  await b.round();
  await expectWhole(dir);
  // The worst of it: a batch that was under way when it fell asleep comes once more.
  const file = join(dir, files(dir)[0]!);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  appendFileSync(file, `${lines.slice(-3).join('\n')}\n`);
  expect((await expectWhole(dir)).repeated).toBe(3);
  // A repetition that differs is another matter.
  appendFileSync(file, `${lines.at(-1)!.replace('"revision":10', '"revision":11')}\n`);
  expect((await proof(dir)).limiters[0]).toMatchObject({ verdict: 'broken' });
  await b.close();
});

test('what another fleet, or a hand, wrote to the open file is looked at before anything is added', async () => {
  const dir = tempFolder('export');
  // Each look is a quarter of an hour later, and none of them on the next day, with which another file begins.
  let looks = 0;
  const nowMs = () => Date.UTC(2026, 2, 1, 1) + 1e6 * looks++;
  const exporter = await folderExporter(redis, dir, { nowMs });
  await exporter.round();
  const file = join(dir, files(dir)[0]!);
  appendFileSync(file, '{"half');
  await change(redis);
  await exporter.round();
  expect(exporter.fault).toContain('changed by another process');
  await exporter.round();
  expect(exporter.fault).toBeNull();
  await expectWhole(dir);
  // Taken away while it was open: the next file begins from the one before it, or from what Redis holds.
  rmSync(file);
  await change(redis);
  await exporter.round();
  await exporter.round();
  await expectWhole(dir);
  await exporter.close();
});

test('trimmed before it was exported: a line of its own says from where to where', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.round();
  for (let i = 0; i < 6; i++) await change(redis);
  await redis.xtrim(keys.audit, 'MAXLEN', '=', 2);
  await exporter.round();
  const { limiters } = await proof(dir);
  expect(limiters[0]).toMatchObject({ verdict: 'consistent', gaps: [{ why: 'trimmed' }] });
  expect(limiters[0]!.sentence).toMatch(
    /entries between entry .* \(revisions 9 to 12\) are missing: they were trimmed/,
  );
  await exporter.close();
});

test('Redis lost the log, or the newest of it by a failover: told, and no fault where a new epoch begins', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  await exporter.round();
  const dump = await redis.dumpBuffer(keys.audit);
  const params = await redis.dumpBuffer(keys.params);
  for (let i = 0; i < 3; i++) await change(redis);
  await exporter.round();
  // The replica that took over had not heard of three writes.
  await redis.del(keys.audit, keys.params);
  await redis.restore(keys.audit, 0, dump);
  await redis.restore(keys.params, 0, params);
  await newEpoch();
  await exporter.minute();
  await redis.del(keys.audit, keys.params);
  await seedParams(redis, keys, {}, { epoch: 2_000_000 });
  await change(redis);
  await exporter.minute();
  expect(exporter.fault).toBeNull();
  const { limiters } = await proof(dir);
  expect(limiters[0]).toMatchObject({
    verdict: 'consistent',
    gaps: [{ why: 'lost' }, { why: 'anew' }],
  });
  await exporter.close();
});

async function newEpoch() {
  const { readParams, write } = await import('../../src/actuate/actuator.js');
  const { params } = await readParams(redis, address);
  const request = {
    before: null,
    after: null,
    policyHash: '',
    actor: { kind: 'person' as const, name: 'kim' },
  };
  const reply = await write(
    redis,
    address,
    {
      ...request,
      authority: { kind: 'person' },
      expected: params!,
      newEpoch: params!.epoch + 1,
      change: {},
      cause: 'settle',
      ...{ reason: 'writes_lost', sentence: 'Writes were lost.' },
    },
    { leaseMs: 0, nowMs: 1_700_000_000_000 },
  );
  expect(reply.status).toBe('ok');
}

test('a tail rewritten in Redis, or an entry taken out of its midst, is found in the export that saw the first', async () => {
  for (const how of ['rewritten', 'taken out'] as const) {
    await history(redis);
    const dir = tempFolder('export');
    const exporter = await folderExporter(redis, dir);
    if (how === 'rewritten') await exporter.minute();
    const all = await redis.xrange(keys.audit, '-', '+');
    const [id, fields] = all.at(how === 'rewritten' ? -1 : -3)!;
    await redis.del(keys.audit);
    for (const [each, of] of all) if (each !== id) await redis.xadd(keys.audit, each, ...of);
    if (how === 'rewritten') {
      const body = JSON.parse(fields[fields.indexOf('body') + 1]!);
      const sealed = sealEntry(fields[fields.indexOf('prev') + 1]!, {
        ...body,
        sentence: 'Nothing happened.',
      });
      const again = fields.map((value, i) =>
        fields[i - 1] === 'hash' ? sealed.hash : fields[i - 1] === 'body' ? sealed.body : value,
      );
      await redis.xadd(keys.audit, id, ...again);
    }
    await exporter.minute();
    const { limiters } = await proof(dir);
    expect(limiters[0]).toMatchObject({ verdict: 'broken' });
    expect(limiters[0]!.fault!.what).toMatch(
      how === 'rewritten' ? /rewritten/ : /missing or changed in Redis/,
    );
    await exporter.close();
  }
});

test('a field added in a later schema reads and verifies; so does an entry of a form that is not known', async () => {
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir);
  const [newest] = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1);
  const of = (name: string) => newest![1][newest![1].indexOf(name) + 1]!;
  const body = {
    ...JSON.parse(of('body')),
    v: 2,
    kind: 'change',
    revision: 9,
    laterField: { deep: [1, 2] },
  };
  const sealed = sealEntry(of('hash'), body);
  const named = ['kind', 'change', 'epoch', of('epoch'), 'revision', '9'];
  await redis.xadd(
    keys.audit,
    '*',
    ...named,
    'hash',
    sealed.hash,
    'prev',
    sealed.prev,
    'body',
    sealed.body,
  );
  await exporter.round();
  await expectWhole(dir);
  await redis.xadd(keys.audit, '*', 'strange', 'thing');
  await exporter.round();
  expect(exporter.fault).toBeNull();
  const { limiters } = await proof(dir);
  expect(limiters[0]).toMatchObject({
    verdict: 'broken',
    fault: { what: expect.stringContaining('cannot be read') },
  });
  await exporter.close();
});

test('each single byte of an export counts: any that is changed is found', async () => {
  const { secret, open } = keyPair();
  const dir = tempFolder('export');
  const exporter = await folderExporter(redis, dir, { secret });
  await exporter.minute();
  await exporter.close();
  const [file] = files(dir);
  const whole = readFileSync(join(dir, file!), 'utf8');
  const lines = whole.trimEnd().split('\n');
  // The first line names other files; those of this test are elsewhere.
  for (let n = 1; n < lines.length; n++) {
    for (const share of [0.1, 0.35, 0.6, 0.85]) {
      const at = Math.floor(lines[n]!.length * share);
      const other = lines[n]![at] === 'x' ? 'y' : 'x';
      edit(dir, file!, (all) =>
        all.map((line, i) => (i === n ? line.slice(0, at) + other + line.slice(at + 1) : line)),
      );
      const report = await proof(dir, open);
      const wrong =
        report.fault !== undefined || report.limiters.some(({ verdict }) => verdict === 'broken');
      expect(wrong, `${lines[n]} at ${at}`).toBe(true);
      writeFileSync(join(dir, file!), whole);
    }
  }
});

test('a folder that cannot be written, or whose id is gone, is an error that says which setting', async () => {
  const inTheWay = join(tempFolder('export'), 'file');
  writeFileSync(inTheWay, '');
  await expect(prepareFolder(inTheWay)).rejects.toMatchObject({
    code: 'FLYBALL_E_AUDIT_FOLDER',
    message: expect.stringContaining('FLYBALL_AUDIT_FILE'),
  });
  const dir = tempFolder('export');
  const { id } = await prepareFolder(dir);
  expect((await prepareFolder(dir)).id).toBe(id);
  expect(fleetKeys().exporter(id)).toBe(`flyball:exporter:${id}`);
  writeFileSync(join(dir, 'folder.json'), '{}');
  await expect(prepareFolder(dir)).rejects.toMatchObject({ code: 'FLYBALL_E_AUDIT_FOLDER' });
});
