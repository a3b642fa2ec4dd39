/** `flyball rollback` by --last, --good, --before and in bulk, on a real Redis with every daemon dead. Stage: tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import { writeHistoryRow } from '../../src/redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../../src/redis/keys.js';
import { lease } from '../../src/redis/scripts.js';
import { rollbackTarget } from '../../src/view/rollback-target.js';
import { cli, lawWrite, mustRead, seedLimiter } from '../support/cli-run.js';
import { madeUp } from '../support/history.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';
import { tempFolder } from '../support/temp-folder.js';

const checkout = { name: 'checkout' };
const orders = { name: 'orders' };
const MINUTE = 60_000;
let redis: Redis;
let env: NodeJS.ProcessEnv;
let run: RedisBench['run'];

redisBench(async (bench) => {
  ({ redis, env, run } = bench);
  await seedLimiter(redis, checkout);
});

/** A law's changes, then no daemon. */
async function moves(address: LimiterAddress, ...rates: number[]): Promise<void> {
  const keys = limiterKeys(address);
  const reply = await lease(redis, { keys, op: 'acquire', owner: 'd1', leaseMs: 60_000 });
  if (reply.status !== 'held') throw new Error('no lease');
  const authority = { kind: 'lease' as const, owner: 'd1', token: reply.token };
  for (const rate of rates) {
    expect(await lawWrite(redis, address, authority, { rate }, 'adaptive@4')).toMatchObject({
      status: 'ok',
    });
  }
  await redis.del(keys.lease);
}

/** The same log as if its entries had been stored so many minutes ago, oldest first. */
async function storedAgo(address: LimiterAddress, minutesAgo: number[]): Promise<void> {
  const key = limiterKeys(address).audit;
  const entries = await redis.xrange(key, '-', '+');
  const now = Date.now();
  await redis.del(key);
  for (const [i, [, fields]] of entries.entries()) {
    await redis.xadd(key, `${now - minutesAgo[i]! * MINUTE}-0`, ...fields);
  }
}

async function goodMinutes(address: LimiterAddress, from: number, to: number): Promise<void> {
  const [row] = madeUp({ days: 1 / 1440 });
  const now = Math.floor(Date.now() / MINUTE);
  for (let ago = from; ago >= to; ago--) {
    await writeHistoryRow(redis, limiterKeys(address), { ...row!, minute: now - ago });
  }
}

describe('--last', () => {
  test('C91: undoes the whole move of the autopilot; once more goes further back, and the preview says so', async () => {
    await moves(checkout, 150);
    await moves(checkout, 80, 60, 50);
    await storedAgo(checkout, [60, 30, 4, 3, 2]);
    const done = await run('rollback checkout --last --yes --json');
    expect(JSON.parse(done.stdout)).toMatchObject({
      ...{ schema: 1, limiter: 'checkout', verb: 'rollback', status: 'done', revision: 6 },
      ...{ before: { rate: 50 }, after: { rate: 150 } },
    });
    const { entries } = await readEntries(redis, checkout, { limit: 1 });
    expect(entries[0]!.body).toMatchObject({
      detail: { chosen: 'last', undoesRevision: 3, until: expect.any(Number) },
    });
    const told = await run('audit checkout');
    expect(told.stderr).toMatch(
      /checkout is pinned by .* for (1 h|59 min).* more; flyball release checkout ends it\./,
    );
    const again = await run('rollback checkout --last --yes');
    expect(again.stderr).toContain(
      '! The last change was a rollback already (revision 6): this goes one further back. To take that rollback itself back: `flyball rollback checkout 5`.',
    );
    expect(again.stdout).toContain('before the law_raise by');
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 100, revision: 7 });
    const third = await run('rollback checkout --last --yes');
    expect(third.code).toBe(1);
    expect(third.stderr).toContain('is a rollback (revision 7), and no older one is kept');
    await run('rollback checkout 5 --yes');
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 50, revision: 8 });
    expect((await verifyAudit(redis, checkout)).verdict).not.toBe('broken');
  });

  test('says so when nothing has moved', async () => {
    const none = await run('rollback checkout --last --yes');
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('FLYBALL_E_AUDIT_NO_REVISION');
    expect(none.stderr).toContain('there is no last change to undo');
  });
});

describe('--good', () => {
  test('goes to the newest that stood with its objectives met, and says why in the preview', async () => {
    await moves(checkout, 150, 60);
    await storedAgo(checkout, [60, 40, 5]);
    await goodMinutes(checkout, 38, 8);
    const shown = await run('rollback checkout --good --dry-run');
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(
      /Revision 2 stood 35 min from .*: objectives met in \d+ of the 10/,
    );
    expect((await mustRead(redis, checkout)).revision).toBe(3);
    await run('rollback checkout --good --yes');
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 150, revision: 4 });
  });

  test('says why none is', async () => {
    await moves(checkout, 150, 60);
    await storedAgo(checkout, [60, 40, 5]);
    const none = await run('rollback checkout --good --yes --json');
    expect(none.code).toBe(1);
    const { error } = JSON.parse(none.stdout);
    expect(error.message).toContain(
      '2 of 3 revisions stood for 10 minutes, none with its objectives met',
    );
    expect(error.message).toContain('0 of the 10 minutes');
    expect((await mustRead(redis, checkout)).revision).toBe(3);
  });
});

describe('--before', () => {
  test('takes a length of time back or an ISO time', async () => {
    await moves(checkout, 150, 60);
    await storedAgo(checkout, [60, 40, 5]);
    expect((await run('rollback checkout --before 50m --dry-run')).stdout).toContain('→  100/s');
    const iso = new Date(Date.now() - 10 * MINUTE).toISOString();
    const done = await run(`rollback checkout --before ${iso} --yes`);
    expect(done.stdout).toMatch(/back to revision 2, in force at \d{4}-/);
    expect((await mustRead(redis, checkout)).rate).toBe(150);
  });

  test.each([
    ['2h', 'no entry that old is kept'],
    ['2999-01-01T00:00:00Z', 'is still to come'],
  ])('%s: %s', async (when, why) => {
    await storedAgo(checkout, [60]);
    const none = await run(`rollback checkout --before ${when} --yes`);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain(why);
  });
});

describe('many at once', () => {
  beforeEach(async () => {
    await seedLimiter(redis, orders, { policyHash: 'b'.repeat(64) });
    await moves(checkout, 80, 60);
    await moves(orders, 50);
  });

  test('one preview, one question; each has its own entry with the reason', async () => {
    const no = await run('rollback --all --last', 'n\n');
    expect(no.code).toBe(1);
    expect(no.stderr.match(/\[y\/N\]/g)).toHaveLength(1);
    for (const name of ['checkout', 'orders']) expect(no.stderr).toContain(`rolled ${name} back`);
    expect((await mustRead(redis, checkout)).revision).toBe(3);
    const done = await cli(
      ['rollback', '--all', '--last', '--reason', 'INC-118', '--yes', '--json'],
      { env },
    );
    expect(JSON.parse(done.stdout)).toMatchObject({
      schema: 1,
      limiters: [
        { limiter: 'checkout', status: 'done', revision: 4, after: { rate: 100 } },
        { limiter: 'orders', status: 'done', revision: 3, after: { rate: 100 } },
      ],
    });
    for (const address of [checkout, orders]) {
      const { entries } = await readEntries(redis, address, { reason: 'rollback' });
      expect(entries.map(({ body }) => body.detail?.why)).toEqual(['INC-118']);
    }
  });

  test('what cannot be done for one is told, and keeps no other from it: exit 1', async () => {
    const queue = { name: 'queue' };
    await seedLimiter(redis, queue);
    const before = await redis.hgetall(limiterKeys(queue).params);
    const done = await run('rollback --all --last --yes');
    expect(done.code).toBe(1);
    expect(done.stdout).toMatch(/queue {2}failed {2}.*no last change to undo/);
    expect(done.stdout).toContain('checkout  revision 4');
    expect(done.stderr).toContain('1 of 3 failed and stand as they were');
    expect(await redis.hgetall(limiterKeys(queue).params)).toEqual(before);
  });

  /** Each entry of the rollback, of what it goes back to and why. */
  async function written(address: LimiterAddress) {
    const { entries } = await readEntries(redis, address, { reason: 'rollback' });
    return entries.map(({ revision, body }) => ({ revision, ...body.detail }));
  }

  test('--before: each to what it had at that time, after one preview and one yes', async () => {
    await storedAgo(checkout, [60, 40, 5]);
    await storedAgo(orders, [60, 5]);
    const dry = await run('rollback --all --before 10m --dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: 'checkout  dry run\norders  dry run\n' });
    expect(dry.stderr).toMatch(/would be:.* rolled checkout back to revision 2, .*rate 60 → 80\/s/);
    expect(dry.stderr).toMatch(/would be:.* rolled orders back to revision 1, .*rate 50 → 100\/s/);
    expect(await run('rollback --all --before 10m', 'n\n')).toMatchObject({ code: 1 });
    expect((await mustRead(redis, checkout)).revision).toBe(3);
    expect((await mustRead(redis, orders)).revision).toBe(2);
    const iso = new Date(Date.now() - 10 * MINUTE).toISOString();
    const done = await run(`rollback --all --before ${iso} --reason INC-7 --yes --json`);
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({
      limiters: [
        {
          ...{ limiter: 'checkout', status: 'done', revision: 4 },
          ...{ before: { rate: 60 }, after: { rate: 80 } },
          hold: { untilMs: expect.any(Number) },
        },
        { limiter: 'orders', status: 'done', revision: 3, after: { rate: 100 } },
      ],
    });
    const chosen = { chosen: 'before', why: 'INC-7', until: expect.any(Number), toEpoch: 1 };
    expect(await written(checkout)).toEqual([{ revision: 4, toRevision: 2, ...chosen }]);
    expect(await written(orders)).toEqual([{ revision: 3, toRevision: 1, ...chosen }]);
    expect((await mustRead(redis, orders)).rate).toBe(100);
  });

  test('--before a time of which the log of one says nothing: that one stands, the others are done', async () => {
    await storedAgo(checkout, [60, 40, 5]);
    await storedAgo(orders, [20, 5]);
    const done = await run('rollback --all --before 50m --yes');
    expect(done.code).toBe(1);
    expect(done.stdout).toMatch(/^checkout {2}revision 4$/m);
    expect(done.stdout).toMatch(/^orders {2}failed {2}.*no entry that old is kept/m);
    expect(done.stderr).toContain('1 of 2 failed and stand as they were');
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 100 });
    expect(await mustRead(redis, orders)).toMatchObject({ rate: 50, revision: 2 });
  });

  test('--good: each to its own last good one, and the preview says why', async () => {
    await storedAgo(checkout, [60, 40, 5]);
    await storedAgo(orders, [60, 5]);
    await goodMinutes(checkout, 38, 8);
    await goodMinutes(orders, 58, 8);
    const dry = await run('rollback --all --good --dry-run');
    expect(dry.code).toBe(0);
    expect(dry.stderr).toMatch(
      / rolled checkout back to revision 2, the last good one: rate 60 → 80\/s/,
    );
    expect(dry.stderr).toMatch(/! Revision 2 stood 35 min from .*: objectives met/);
    expect(dry.stderr).toMatch(
      / rolled orders back to revision 1, the last good one: rate 50 → 100\/s/,
    );
    expect((await mustRead(redis, checkout)).revision).toBe(3);
    const done = await run('rollback --all --good --yes');
    expect(done).toMatchObject({ code: 0, stdout: 'checkout  revision 4\norders  revision 3\n' });
    const chosen = { chosen: 'good', until: expect.any(Number), toEpoch: 1 };
    expect(await written(checkout)).toEqual([{ revision: 4, toRevision: 2, ...chosen }]);
    expect(await written(orders)).toEqual([{ revision: 3, toRevision: 1, ...chosen }]);
    expect(await mustRead(redis, checkout)).toMatchObject({ rate: 80 });
    expect(await mustRead(redis, orders)).toMatchObject({ rate: 100 });
  });

  test('of one policy, by its hash or its file', async () => {
    const byHash = await run('rollback --policy bbbbbb --last --yes');
    expect(byHash.stdout).toBe('orders  revision 3\n');
    const file = join(tempFolder('rollback'), 'orders.json');
    writeFileSync(file, JSON.stringify({ limiter: { name: 'orders', rate: 9, capacity: 9 } }));
    expect((await run(`rollback --policy ${file} --last --dry-run --json`)).stdout).toContain(
      '"limiter": "orders"',
    );
    const none = await run('rollback --policy cccccc --last --yes');
    expect(none.code).toBe(64);
    expect(none.stderr).toContain('no limiter in Redis at');
  });
});

test.each([
  ['rollback checkout --yes', 'say what to go back to'],
  ['rollback checkout 1 --last --yes', 'exclude each other'],
  ['rollback checkout --last --good --yes', 'cannot be used with'],
  ['rollback --last --yes', 'name a limiter'],
  ['rollback checkout --all --last --yes', 'exclude each other'],
  ['rollback --all --yes', 'say what to go back to'],
  ['rollback checkout --last --epoch 3 --yes', '--epoch belongs to a revision'],
  ['rollback checkout 1 --all --yes', 'revisions count within one limiter'],
  ['rollback --policy x --all --last --yes', 'cannot be used with'],
  ['rollback --all --last', 'no terminal to ask at'],
])('%s: exit 64, %s', async (args, why) => {
  const wrong = await run(args);
  expect(wrong.code).toBe(64);
  expect(wrong.stderr).toContain(why);
  expect((await mustRead(redis, checkout)).revision).toBe(1);
});

test('the preview warns when what is raised is not carried now, by what a daemon saw last', async () => {
  await moves(checkout, 40);
  const policy = {
    limiter: { name: 'checkout', rate: 100, capacity: 200 },
    signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
    objective: { p95: { below: 250 } },
  };
  const keys = limiterKeys(checkout);
  await redis.set(keys.policy, JSON.stringify(policy));
  const signals = { p95: { value: 900, fresh: true, ageMs: 100, count: 50 } };
  const status = { schema: 1, atMs: Date.now(), tickMs: 1000, sample: { signals } };
  await redis.set(keys.status, JSON.stringify(status));
  const shown = await run('rollback checkout --last --dry-run');
  expect(shown.stdout).toContain(
    'p95 is 900 ms (setpoint 250 ms) at 40/s now; 100/s is above what it carries.',
  );
});

test.each([
  ['pin chekout --rate 80', 64, /no limiter "?chekout"?.*Did you mean checkout/s],
  ['rollback chekout 1', 64, /Did you mean checkout/],
  ['rollback checkout 99', 1, /no audit entry for revision 99/],
  ['rollback --policy cccccc --last', 64, /is of the policy cccccc/],
])(
  '%s without a terminal: what is not there is told, before --yes is asked for',
  async (args, code, says) => {
    const refused = await run(args);
    expect(refused.stderr).toMatch(says);
    expect(refused.stderr).not.toContain('--yes');
    expect(refused.code).toBe(code);
  },
);

test('an actor whose name was proved with a token stands in the entry as such, and on the hold', async () => {
  const done = await applyVerb(redis, checkout, pin({ rate: 60 }, MINUTE), {
    ...{ actor: 'deploy-bot', verified: true, dryRun: false, nowMs: Date.now },
    approve: async () => true,
  });
  expect(done.status).toBe('done');
  const { entries } = await readEntries(redis, checkout, { reason: 'pin' });
  expect(entries[0]!.body.actor).toEqual({ kind: 'person', name: 'deploy-bot', verified: true });
  expect((await mustRead(redis, checkout)).heldBy).toBe('deploy-bot');
  expect((await run('audit checkout')).stdout).not.toContain('unverified');
  const target = await rollbackTarget(redis, checkout, { to: 'last' });
  expect(target).toMatchObject({ words: 'what held before the pin by deploy-bot (revision 2)' });
});
