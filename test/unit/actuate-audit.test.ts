import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readHead, readParams, write, writeNote } from '../../src/actuate/actuator.js';
import { findRevision, readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { seedParams } from '../support/seed-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await redis.flushall();
  await seedParams(redis, keys);
  for (let i = 2; i <= 8; i++) {
    await change(i);
    if (i % 3 === 0) await noteOf(i);
  }
});

const actor = { kind: 'person' as const, name: 'kim' };
const empty = { before: null, after: null, policyHash: '' };

async function change(i: number) {
  const { params } = await readParams(redis, address);
  await write(
    redis,
    address,
    {
      ...empty,
      authority: { kind: 'person' },
      expected: params!,
      change: { rate: 10 * i },
      cause: 'person',
      actor: i % 2 ? actor : { kind: 'autopilot', name: 'd1' },
      reason: i % 2 ? 'pin' : 'law_cut',
      sentence: `Change ${i}.`,
    },
    { leaseMs: 0, nowMs: 1_700_000_000_000 + i },
  );
}

async function noteOf(i: number) {
  const { params } = await readParams(redis, address);
  const request = { ...empty, expected: params!, actor, reason: 'note', sentence: `Note ${i}.` };
  await writeNote(redis, address, request, { nowMs: 1_700_000_000_000 });
}

/** Replays the stream into itself with some entries altered or left out, as someone with write access could. */
async function tamper(alter: (fields: string[], index: number) => string[] | null) {
  const all = await redis.xrange(keys.audit, '-', '+');
  await redis.del(keys.audit);
  for (const [index, [id, fields]] of all.entries()) {
    const altered = alter([...fields], index);
    if (altered !== null) await redis.xadd(keys.audit, id, ...altered);
  }
  return all;
}

const set = (fields: string[], name: string, value: string) => {
  fields[fields.indexOf(name) + 1] = value;
  return fields;
};
const get = (fields: string[], name: string) => fields[fields.indexOf(name) + 1]!;

test('pages newest first, with filters, without a gap or a repeat', async () => {
  const all = (await readEntries(redis, address, { limit: 100 })).entries;
  expect(all).toHaveLength(10);
  const paged: string[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await readEntries(redis, address, {
      limit: 3,
      ...(before === undefined ? {} : { before }),
    });
    paged.push(...page.entries.map((entry) => entry.id));
    if (page.next === null) break;
    before = page.next;
  }
  expect(paged).toEqual(all.map((entry) => entry.id));
  expect((await readEntries(redis, address, { kind: 'note' })).entries).toHaveLength(2);
  const autopilot = await readEntries(redis, address, { actor: 'autopilot', reason: 'law_cut' });
  expect(autopilot.entries.map((e) => e.revision)).toEqual([8, 6, 4, 2]);
  const third = all[2]!;
  const since = await readEntries(redis, address, { sinceMs: Number(third.id.split('-')[0]) });
  expect(since.entries.map((e) => e.id)).toContain(third.id);
  expect((await findRevision(redis, address, 5))?.body.sentence).toBe('Change 5.');
  expect(await findRevision(redis, address, 99)).toBeNull();
});

test('I2: without an anchor it is consistent, not proven; with an exported head it is proven', async () => {
  const head = await readHead(redis, address);
  const plain = await verifyAudit(redis, address, { pageSize: 3 });
  expect(plain).toMatchObject({
    verdict: 'consistent',
    changes: 8,
    notes: 2,
    trimmed: false,
    head,
  });
  expect(plain.sentence).toContain('consistent, not proven');
  await change(9);
  const anchored = await verifyAudit(redis, address, { anchor: head });
  expect(anchored).toMatchObject({ verdict: 'proven', changes: 9 });
});

test('I2: a rewrite of all that follows is found by an anchor only', async () => {
  const head = await readHead(redis, address);
  await redis.flushall();
  await seedParams(redis, keys);
  expect((await verifyAudit(redis, address)).verdict).toBe('consistent');
  const report = await verifyAudit(redis, address, { anchor: head });
  expect(report.verdict).toBe('broken');
  expect(report.sentence).toContain('the anchor is not in the chain');
});

test('I2: trimmed at the old end: consistent, not proven, and says so', async () => {
  await redis.xtrim(keys.audit, 'MAXLEN', '=', 4);
  const report = await verifyAudit(redis, address);
  expect(report).toMatchObject({ verdict: 'consistent', entries: 4, trimmed: true });
  expect(report.sentence).toContain('trimmed');
});

test('I2: cut off at the new end is found by the params in force', async () => {
  const [newest] = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1);
  await redis.xdel(keys.audit, newest![0]);
  const report = await verifyAudit(redis, address);
  expect(report).toMatchObject({ verdict: 'broken', fault: { revision: 8 } });
  expect(report.sentence).toContain('is in force but has no entry');
});

test('I2: two entries for one revision, or a revision left out, with hashes that fit', async () => {
  const { sealEntry } = await import('../../src/actuate/entry.js');
  const { params } = await readParams(redis, address);
  const newest = (await readEntries(redis, address)).entries[0]!;
  for (const [revision, what] of [
    [8, 'revision 8 has a second entry'],
    [10, 'revision 9 has no entry: 10 follows 8'],
  ] as const) {
    const sealed = sealEntry(newest.hash, { ...newest.body, kind: 'change', revision });
    const id = await redis.xadd(
      keys.audit,
      '*',
      ...['kind', 'change', 'epoch', String(params!.epoch), 'revision', String(revision)],
      ...['hash', sealed.hash, 'prev', sealed.prev, 'body', sealed.body],
    );
    const report = await verifyAudit(redis, address);
    expect(report).toMatchObject({ verdict: 'broken', fault: { id, revision, what } });
    await redis.xdel(keys.audit, id!);
  }
});

test('I2: any edit of one byte, and any entry left out, is found at that place', async () => {
  const count = await redis.xlen(keys.audit);
  const dump = await redis.dumpBuffer(keys.audit);
  await fc.assert(
    fc.asyncProperty(
      fc.nat(count - 1),
      fc.constantFrom('body', 'hash', 'prev', 'epoch', 'revision', 'kind', 'gone'),
      fc.nat(10_000),
      async (index, what, at) => {
        await redis.del(keys.audit);
        await redis.restore(keys.audit, 0, dump);
        // Leaving out the oldest looks like a trimmed log, which is told, not found.
        fc.pre(!(what === 'gone' && index === 0));
        const stored = (await redis.xrange(keys.audit, '-', '+'))[index]![1];
        // A note's epoch and revision are what was in force, outside the hash.
        fc.pre(get(stored, 'kind') === 'change' || (what !== 'epoch' && what !== 'revision'));
        const all = await tamper((fields, i) => {
          if (i !== index) return fields;
          if (what === 'gone') return null;
          const text = get(fields, what);
          const place = at % text.length;
          const other = text[place] === '1' ? '2' : '1';
          return set(fields, what, text.slice(0, place) + other + text.slice(place + 1));
        });
        const report = await verifyAudit(redis, address);
        expect(report.verdict).toBe('broken');
        const place = report.fault!.id;
        const around = [all[index]?.[0], all[index + 1]?.[0], null];
        expect(around).toContain(place);
      },
    ),
    { numRuns: 60 },
  );
});

test('an entry that cannot be read hides no other: it is told apart, verify names it, other revisions can be had', async () => {
  const all = await redis.xrange(keys.audit, '-', '+');
  const fifth = all.findIndex(([, f]) => get(f, 'kind') === 'change' && get(f, 'revision') === '5');
  const [id] = all[fifth]!;
  await tamper((fields, index) => (index === fifth ? set(fields, 'body', '{"v":1,') : fields));
  const page = await readEntries(redis, address, { limit: 100 });
  expect(page.entries).toHaveLength(9);
  expect(page.unreadable).toEqual([
    { id, epoch: expect.any(Number), revision: 5, why: 'its body is not that of an audit entry' },
  ]);
  expect((await findRevision(redis, address, 4))?.revision).toBe(4);
  await expect(findRevision(redis, address, 5)).rejects.toMatchObject({
    code: 'FLYBALL_E_AUDIT_BROKEN',
    message: expect.stringContaining(id),
  });
  const report = await verifyAudit(redis, address);
  expect(report).toMatchObject({ verdict: 'broken', fault: { id, revision: 5 } });
  expect(report.sentence).toContain('cannot be read, its body is not that of an audit entry');
});

test.each(['null', '[]', '"x"', '7'])(
  'a body that is %s is unreadable, not a crash',
  async (body) => {
    await redis.xadd(
      keys.audit,
      '*',
      'kind',
      'change',
      'epoch',
      '1',
      'revision',
      '99',
      'hash',
      'x',
      'prev',
      'y',
      'body',
      body,
    );
    const page = await readEntries(redis, address, { actor: 'person' });
    expect(page.unreadable.map((entry) => entry.revision)).toEqual([99]);
  },
);
