/** `flyball tune` and `flyball size`: on a real Redis with every daemon dead, from a history of made-up days. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { adopt } from '../../src/actuate/adopt.js';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { type HistoryRow, historyText } from '../../src/redis/history-rows.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { mustRead } from '../support/cli-run.js';
import { madeUp } from '../support/history.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
let redis: Redis;
let run: RedisBench['run'];

redisBench((bench) => {
  ({ redis, run } = bench);
});

async function adopted(more: Partial<PolicyInput> = {}): Promise<void> {
  const policy = policySchema.parse({
    limiter: { ...checkout, rate: 100, capacity: 200, inFlightMax: 20 },
    bounds: {
      ...{ rate: { min: 10, max: 130 }, inFlight: { min: 2, max: 64 } },
      capacity: { min: 20, max: 1000 },
    },
    mode: 'auto',
    control: { law: 'step' },
    tune: { slotsPerInstance: 1, instances: 8 },
    ...more,
  });
  const outcome = await adopt(
    redis,
    { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) },
    { actor: { kind: 'autopilot', name: 'd1' }, leaseMs: 60_000, nowMs: Date.now() },
  );
  expect(outcome.status).toBe('created');
}

/** The rows end now, whatever their own time was. */
async function history(rows: readonly HistoryRow[]): Promise<void> {
  const last = Math.floor(Date.now() / 60_000) - 1;
  const pipeline = redis.pipeline();
  rows.forEach((row, i) => {
    pipeline.hset(keys.history, String(last - (rows.length - 1 - i)), historyText(row));
  });
  await pipeline.exec();
}

test('tune shows what the history recommends beside what is in force, and writes nothing', async () => {
  await adopted();
  await history(madeUp({ days: 3, mean: 40 }));
  const before = await mustRead(redis, checkout);
  const shown = await run('tune checkout');
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout).toMatch(/rate +100\/s +\d+/);
  expect(shown.stdout).toMatch(/capacity +200 +70 +slots/);
  expect(shown.stdout).toContain('95 % of');
  expect(shown.stdout).toContain('not known: the knee');
  expect(shown.stdout).toContain('+ limiter.capacity: 70');
  const json = JSON.parse((await run('tune checkout --since 2d --json --dry-run')).stdout);
  expect(json).toMatchObject({
    schema: 1,
    status: 'ready',
    sinceMs: 172_800_000,
    capacity: { value: 70 },
  });
  expect(json.minutes.used).toBeGreaterThan(2800);
  expect(json.minutes.used).toBeLessThanOrEqual(2880);
  expect(await mustRead(redis, checkout)).toEqual(before);
  const { entries } = await readEntries(redis, checkout);
  expect(entries.length).toBe(1);
});

test('--apply asks, and sets it within the bounds in one revision with one entry', async () => {
  await adopted();
  await history(madeUp({ days: 3, mean: 400, swing: 0.9, p999Ms: 20 }));
  expect(await run('tune checkout --apply')).toMatchObject({ code: 64 });
  const no = await run('tune checkout --apply', 'n\n');
  expect(no).toMatchObject({ code: 1 });
  expect((await mustRead(redis, checkout)).revision).toBe(1);
  const dry = await run('tune checkout --apply --dry-run');
  expect(dry.stdout).toContain('130/s');
  const done = await run('tune checkout --apply --yes --json --reason weekly');
  expect(JSON.parse(done.stdout)).toMatchObject({ verb: 'tune', status: 'done', revision: 2 });
  const params = await mustRead(redis, checkout);
  // Bounds hold the rate; the knee lies above the old cap.
  expect(params).toMatchObject({ revision: 2, rate: 130, pinnedUntil: 0 });
  expect(params.inFlightMax).toBeGreaterThan(20);
  expect(params.inFlightMax).toBeLessThanOrEqual(64);
  expect(params.capacity).toBeGreaterThanOrEqual(130);
  const { entries } = await readEntries(redis, checkout, { kind: 'change', reason: 'tune' });
  expect(entries).toMatchObject([
    {
      revision: 2,
      body: {
        actor: { kind: 'person' },
        before: { rate: 100, inFlightMax: 20 },
        after: { rate: 130, inFlightMax: params.inFlightMax },
        detail: { why: 'weekly', tune: { rate: { value: 130, binds: 'bounds.rate.max' } } },
      },
    },
  ]);
  expect(await verifyAudit(redis, checkout)).toMatchObject({ verdict: 'consistent' });
  const explained = await run('explain checkout 2');
  expect(explained).toMatchObject({ code: 0 });
  expect(explained.stdout).toContain('tuned checkout from its history: rate 100 → 130/s');
  // Once more: nothing is left to do.
  const again = await run('tune checkout --apply --yes');
  expect(again).toMatchObject({ code: 0 });
  expect(again.stdout).toContain('has what its history recommends');
  expect((await mustRead(redis, checkout)).revision).toBe(2);
});

test.each([
  ['frozen', 'freeze checkout --yes', 'thaw checkout'],
  ['pinned', 'pin checkout --rate 50 --yes', 'release checkout'],
  ['open', 'trip checkout --yes --hold', 'when it is closed'],
])('a limiter that is %s is left alone', async (_what, verb, mend) => {
  await adopted();
  await history(madeUp({ days: 2 }));
  expect((await run(verb)).code).toBe(0);
  const before = await mustRead(redis, checkout);
  const refused = await run('tune checkout --apply --yes');
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain(mend);
  expect(await mustRead(redis, checkout)).toEqual(before);
});

test.each([
  ['in mode recommend', { mode: 'recommend' }],
  ['law fixed', { control: { law: 'fixed' } }],
] as [string, Partial<PolicyInput>][])(
  '%s: nothing is applied, the numbers to write or pin are said',
  async (_what, more) => {
    await adopted(more);
    await history(madeUp({ days: 2 }));
    const refused = await run('tune checkout --apply --yes');
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toMatch(
      /write these into the policy, or `flyball pin checkout --rate 130/,
    );
    expect((await mustRead(redis, checkout)).revision).toBe(1);
  },
);

test('a history that is too short, and spans that are none, are said', async () => {
  await adopted();
  await history(madeUp({ days: 0.25 }));
  const short = await run('tune checkout');
  expect(short).toMatchObject({ code: 1 });
  expect(short.stdout).toContain('no recommendation. The history reaches back 6 h');
  expect(JSON.parse((await run('tune checkout --json')).stdout)).toMatchObject({
    status: 'refused',
  });
  const apply = await run('tune checkout --apply --yes');
  expect(apply).toMatchObject({ code: 1 });
  expect(apply.stderr).toContain('FLYBALL_E_TUNE_HISTORY');
  for (const since of ['1h', '9d', '7']) {
    expect(await run(`tune checkout --since ${since}`)).toMatchObject({ code: 64 });
  }
  expect(await run('tune chekout')).toMatchObject({ code: 64 });
});

test('a capacity that has no bounds stays, and one below a second of the rate is said', async () => {
  const bounds = { rate: { min: 10, max: 300 }, inFlight: { min: 2, max: 64 } };
  await adopted({ bounds });
  await history(madeUp({ days: 2, mean: 180 }));
  const dry = await run('tune checkout --apply --dry-run');
  expect(dry).toMatchObject({ code: 0 });
  expect(dry.stdout).toMatch(
    /Capacity 200 holds less than a second of 2\d\d\/s: raise limiter\.capacity/,
  );
  expect(dry.stdout).toMatch(/capacity +200$/m);
});

test('what the command line says of the service leads over the policy', async () => {
  await adopted();
  await history(madeUp({ days: 2, mean: 40 }));
  const found = JSON.parse(
    (await run('tune checkout --json --slots 2 --instances 4 --connections 2 --hold 40ms')).stdout,
  );
  expect(found).toMatchObject({
    capacity: { value: 50, binds: 'connections' },
    rate: { value: 50 },
  });
});

test('size: 80 ms, 1 slot, 8 instances → 70, and which bound binds', async () => {
  const plain = await run('size --p999 80ms --slots 1 --instances 8');
  expect(plain).toMatchObject({ code: 0, stderr: '' });
  expect(plain.stdout).toBe(
    'capacity   70\nin flight  8 at most: the slots there are\nThe slots bind: 1000 ÷ 80 ms × 1 × 8 × 0.7 = 70.\n',
  );
  const json = await run(
    'size --p999 80ms --slots 1 --instances 8 --connections 2 --hold 40ms --rate 90 --json',
  );
  expect(JSON.parse(json.stdout)).toMatchObject({
    ...{ schema: 1, capacity: 50, rate: 50, binds: 'connections', bySlots: 70, byConnections: 50 },
  });
  for (const args of [
    ...[
      'size',
      'size --p999 80 --slots 1 --instances 8',
      'size --p999 80ms --slots 0 --instances 8',
    ],
    'size --p999 80ms --slots 1 --instances 8 --connections 20',
    'size --p999 80ms --slots 1 --instances 8 --rate 0',
  ]) {
    const wrong = await run(args);
    expect([args, wrong.code, wrong.stdout]).toEqual([args, 64, '']);
  }
});
