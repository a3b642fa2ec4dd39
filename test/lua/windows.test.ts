/** The algorithms beside the token bucket: what each case of the trade asks of a window and of pacing. */
import { describe, expect, test } from 'vitest';
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { TakenKind } from '../../src/redis/keys.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const MINUTE = { windowMs: 60_000, cells: 0 } as const;
const ALL: [AlgorithmTerms & { kind: TakenKind }][] = [
  [{ algorithm: 'sliding-log', ...MINUTE, kind: 'wl' }],
  [{ algorithm: 'sliding-counter', ...MINUTE, cells: 6, kind: 'wc' }],
  [{ algorithm: 'fixed-window', ...MINUTE, kind: 'wf' }],
  [{ algorithm: 'leaky-bucket', windowMs: 0, cells: 0, kind: 'wp' }],
];
const WINDOWS = ALL.slice(0, 3);
/** T0 lies 20 s after a minute began. */
const AT = T0 - (T0 % (60 * S));
const many = (count: number, each = {}) => Array.from({ length: count }, () => each);

describe.each(ALL)('$algorithm', ({ kind, ...terms }) => {
  test('C05 C13: every key has a time to live, at least as long as what it holds counts', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, {
      rate: 1,
      capacity: 60,
      subjectRate: 1,
      subjectCapacity: 60,
      minRate: 1,
    });
    await Promise.all(many(20).map((_, i) => call([{ subject: `u${i % 3}` }], AT, { terms })));
    for (const subject of [null, 'u0', 'u1', 'u2']) {
      const left = await fixture.redis.pttl(keys.taken(kind, subject, false));
      expect(left).toBeGreaterThan(59_000);
      // Pacing keeps its mark as long as a bucket: from the lowest rate the limits can reach.
      expect(left).toBeLessThan(kind === 'wp' ? 2_100_000 : 200_000);
    }
  });

  test('C08: rates below one a second count in full', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(
      fixture.redis,
      keys,
      { rate: 0.05, capacity: 3, minRate: 0.05, probeRate: 0.05 },
      { nowUs: AT },
    );
    expect(reasons(await call(many(4), AT, { terms }))).toEqual(['ok', 'ok', 'ok', 'rate']);
    expect(reasons(await call([{}], AT + 200 * S, { terms }))).toEqual(['ok']);
  });

  test('C16: a denied take writes nothing, not even a key', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    const big = (await call([{ cost: 1e6 }], AT, { terms })).answers[0];
    expect(big).toMatchObject({ reason: 'cost_exceeds_capacity', retryAfterMs: null });
    expect(await fixture.redis.exists(keys.taken(kind, null, false))).toBe(0);
    await call(many(60), AT, { terms });
    const before = await fixture.redis.dump(keys.taken(kind, null, false));
    const memory = await fixture.redis.memory('USAGE', keys.taken(kind, null, false));
    for (let i = 0; i < 20; i++) {
      expect(reasons(await call(many(50), AT + i, { terms }))).toEqual(Array(50).fill('rate'));
    }
    expect(await fixture.redis.dump(keys.taken(kind, null, false))).toEqual(before);
    expect(await fixture.redis.memory('USAGE', keys.taken(kind, null, false))).toBe(memory);
  });

  test('C18: what is no cost decides nothing and writes nothing; 0 looks', async () => {
    const { keys, call } = fixture.limiter();
    const costs = [Number.NaN, Number.POSITIVE_INFINITY, -1, -0, 1e-7, 1e21];
    const reply = await call([...costs.map((cost) => ({ cost })), { cost: 0 }], AT, { terms });
    expect(reasons(reply)).toEqual([...costs.map(() => 'bad_cost'), 'ok']);
    expect(await fixture.redis.exists(keys.taken(kind, null, false))).toBe(0);
  });

  test('a late call charges nothing; off admits all and writes nothing; shadow counts apart', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60, mode: 'shadow' }, { nowUs: AT });
    expect((await call([{}], AT, { terms })).status).toBe('mode');
    expect((await call([{}], AT, { terms, shadow: true, chargeByUs: AT - 1 })).status).toBe('late');
    expect(await fixture.redis.exists(keys.taken(kind, null, true))).toBe(0);
    await call([{}], AT, { terms, shadow: true });
    expect(await fixture.redis.exists(keys.taken(kind, null, true))).toBe(1);
    expect(await fixture.redis.exists(keys.taken(kind, null, false))).toBe(0);
    await changeParams(fixture.redis, keys, { mode: 'off' }, { nowUs: AT });
    expect(reasons(await call(many(100), AT, { terms }))).toEqual(Array(100).fill('off'));
    expect(await fixture.redis.exists(keys.taken(kind, null, false))).toBe(0);
  });

  test('C25: a rate that changes binds what is there at once, up and down', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    await call(many(60), AT, { terms });
    await changeParams(fixture.redis, keys, { rate: 2, capacity: 90 }, { nowUs: AT });
    const more = reasons(await call(many(200), AT, { terms })).filter(
      (each) => each === 'ok',
    ).length;
    expect(more).toBe(terms.algorithm === 'leaky-bucket' ? 30 : 60);
    await changeParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    expect(reasons(await call([{}], AT, { terms }))).toEqual(['rate']);
  });

  test('a trip denies all; half-open lets probes through at the probe rate alone, whatever was taken before', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60, probeRate: 1 }, { nowUs: AT });
    await call(many(60), AT, { terms });
    await changeParams(fixture.redis, keys, { state: 'open', openForMs: 5000 }, { nowUs: AT });
    const denied = (await call([{}], AT + S, { terms })).answers[0];
    expect(denied).toMatchObject({ reason: 'breaker_open', retryAfterMs: 4000 });
    expect(reasons(await call([{}], AT + 5 * S, { terms }))[0]).toBe('probe_budget');
    let probes = 0;
    for (let ms = 5_000; ms <= 65_000; ms += 250) {
      const reply = await call([{}], AT + ms * 1000, { terms });
      if (reply.answers[0]!.allowed) probes += 1;
    }
    expect(probes).toBeGreaterThan(terms.algorithm === 'leaky-bucket' ? 4 : 55);
    expect(probes).toBeLessThanOrEqual(61);
  });

  test('sheddable takes leave their reserve', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(
      fixture.redis,
      keys,
      { rate: 1, capacity: 60, reserveSheddable: 0.5 },
      { nowUs: AT },
    );
    const reply = await call(many(40, { priority: 'sheddable' }), AT, { terms });
    expect(reasons(reply).filter((each) => each === 'ok').length).toBe(30);
    expect(reasons(reply)[39]).toBe('reserve');
    expect(reasons(await call([{}], AT, { terms }))).toEqual(['ok']);
  });

  test('I5: a clock set back neither mints nor locks for the length of the step', async () => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    await call(many(60), AT, { terms });
    const back = AT - 3600 * S;
    expect(reasons(await call([{}], back, { terms }))).toEqual(['rate']);
    expect(reasons(await call([{}], back + 90 * S, { terms }))).toEqual(['ok']);
  });
});

test.each(WINDOWS)(
  'C25: $algorithm: another length keeps what was taken',
  async ({ kind: _, ...terms }) => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    await call(many(60), AT + 30 * S, { terms });
    const longer = { ...terms, windowMs: 120_000 };
    const passed = reasons(await call(many(200), AT + 31 * S, { terms: longer }));
    expect(passed.filter((each) => each === 'ok').length).toBe(60);
  },
);

test('C23: two limits round a boundary pass a fixed window, one passes the sliding ones', async () => {
  const counts: Record<string, number> = {};
  for (const [{ kind: _, ...terms }] of WINDOWS) {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
    const end = await call(many(100), AT + 60 * S - 1000, { terms });
    const start = await call(many(100), AT + 60 * S, { terms });
    const ok = [...reasons(end), ...reasons(start)].filter((each) => each === 'ok');
    counts[terms.algorithm] = ok.length;
  }
  expect(counts).toEqual({ 'sliding-log': 60, 'sliding-counter': 60, 'fixed-window': 120 });
});

test('the sliding counter passes at least cells ÷ (cells + 1) of the rate under steady demand', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 2, capacity: 120 }, { nowUs: AT });
  const terms = { algorithm: 'sliding-counter', windowMs: 60_000, cells: 6 } as const;
  let passed = 0;
  for (let second = 0; second < 1200; second += 5) {
    const reply = await call(many(40), AT + second * S, { terms });
    passed += reasons(reply).filter((each) => each === 'ok').length;
  }
  expect(passed).toBeGreaterThanOrEqual((2 * 1200 * 6) / 7);
  expect(passed).toBeLessThanOrEqual(2 * 1200 + 120);
});

test('memory of a subject: 16 bytes for each entry of a log, fixed for the others', async () => {
  const size: Record<string, number> = {};
  for (const [{ kind, ...terms }] of ALL) {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, {
      rate: 1000,
      capacity: 1000,
      subjectRate: 100,
      subjectCapacity: 1000,
    });
    for (let i = 0; i < 1000; i++) await call([{ subject: 'user:042' }], AT + i * 1000, { terms });
    size[kind] = (await fixture.redis.memory('USAGE', keys.taken(kind, 'user:042', false)))!;
  }
  expect(size.wl).toBeGreaterThan(16_000);
  expect(size.wl).toBeLessThan(26_000);
  expect(size.wc).toBeLessThanOrEqual(200);
  expect(size.wf).toBeLessThanOrEqual(120);
  expect(size.wp).toBeLessThanOrEqual(120);
});

test('a log holds at most 10,001 entries, however small the costs', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: AT });
  const terms = { algorithm: 'sliding-log', ...MINUTE } as const;
  const calls = Array.from({ length: 10_300 }, (_, i) =>
    call([{ cost: 0.001 }], AT + i, { terms }),
  );
  const replies = await Promise.all(calls);
  expect(replies.every((reply) => reply.answers[0]!.allowed)).toBe(true);
  expect(await fixture.redis.llen(keys.taken('wl', null, false))).toBeLessThanOrEqual(10_001);
  const left = await call([{ cost: 0 }], AT + 20_000, { terms });
  expect(left.answers[0]!.remaining).toBe(49);
});
