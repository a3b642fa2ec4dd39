/** Refunds: what a take took goes back once, never above the capacity, and not when its bucket or window is another. */
import { describe, expect, test } from 'vitest';
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { RefundAnswer, RefundRequest } from '../../src/redis/refund.js';
import { refund } from '../../src/redis/refund.js';
import { sayOfSubject } from '../support/say-of-subject.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, type Limiter, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const EPOCH = 1_000_000;
const HOUR = 3_600 * S;

async function back(
  limiter: Limiter,
  nowUs: number,
  ...refunds: Partial<RefundRequest>[]
): Promise<RefundAnswer[] | null> {
  return refund(fixture.redis, {
    keys: limiter.keys,
    dueUs: null,
    shadow: false,
    fallback: FALLBACK,
    nowUs,
    refunds: refunds.map((each) => ({
      subject: null,
      cost: 1,
      atUs: T0,
      epoch: EPOCH,
      generation: 0,
      terms: undefined,
      mark: null,
      ...each,
    })),
  });
}

async function bucket(change: Parameters<typeof seedParams>[2] = {}) {
  const limiter = fixture.limiter();
  const params = { rate: 1, capacity: 10, subjectRate: 0.1, subjectCapacity: 5, ...change };
  await seedParams(fixture.redis, limiter.keys, params, { nowUs: T0 });
  const left = async (nowUs: number, subject: string | null = null) =>
    (await limiter.call([{ cost: 0, subject }], nowUs)).answers[0]!.remaining;
  return { limiter, left };
}

describe('token bucket', () => {
  test('gives back to the total and to the subject', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { subject: 'a', cost: 4 });
    expect([await left(T0), await left(T0, 'a')]).toEqual([6, 1]);
    expect(await back(limiter, T0, { subject: 'a', cost: 4 })).toEqual(['refunded']);
    expect([await left(T0), await left(T0, 'a')]).toEqual([10, 5]);
  });

  test('gives back to a subject with numbers of its own where the policy gives subjects none', async () => {
    const { limiter } = await bucket({ subjectRate: -1, subjectCapacity: 0 });
    await sayOfSubject(fixture.redis, limiter.keys, 'a', { capacity: 4, rate: 0.01 }, T0);
    const one = async (cost: number, subject = 'a') =>
      (await limiter.call([{ cost, subject }], T0, { rules: true })).answers[0]!.reason;
    expect([await one(4), await one(4)]).toEqual(['ok', 'subject']);
    expect(await back(limiter, T0, { subject: 'a', cost: 4 })).toEqual(['refunded']);
    expect([await one(4), await one(1)]).toEqual(['ok', 'subject']);
    // Of whom nothing is said there is nothing beside the total, and nothing is written.
    expect(await one(2, 'b')).toBe('ok');
    expect(await back(limiter, T0, { subject: 'b', cost: 2 })).toEqual(['refunded']);
    expect(await fixture.redis.exists(limiter.keys.subjectBucket('b'))).toBe(0);
    const { keys } = limiter;
    await changeParams(fixture.redis, keys, { state: 'open', openUntil: -1 }, { nowUs: T0 });
    const late = [
      { subject: 'a', cost: 4 },
      { subject: 'b', cost: 2 },
    ];
    expect(await back(limiter, T0, ...late)).toEqual(['refunded', 'moved_on']);
  });

  test('C52: twice by one mark is once; the mark goes when no refund can come any more', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { cost: 8 });
    const one = { cost: 3, mark: 'once' };
    expect(await back(limiter, T0, one, one)).toEqual(['refunded', 'already']);
    expect(await back(limiter, T0 + S / 10, one)).toEqual(['already']);
    expect(await left(T0)).toBe(5);
    const ttl = await fixture.redis.pttl(limiter.keys.refund('once'));
    expect(ttl).toBeGreaterThan(3_590_000);
    expect(ttl).toBeLessThanOrEqual(3_601_000);
  });

  test('C52: never above the capacity, and a full bucket is not touched', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { cost: 8 });
    expect(await back(limiter, T0 + 5 * S, { cost: 8 })).toEqual(['refunded']);
    expect(await left(T0 + 5 * S)).toBe(10);
    expect(await left(T0 + 500 * S)).toBe(10);
    const mark = await fixture.redis.get(limiter.keys.bucket);
    await back(limiter, T0 + 60 * S, { cost: 8 });
    expect(await fixture.redis.get(limiter.keys.bucket)).toBe(mark);
  });

  test('too late: an hour after the take, and in a call that came after its time', async () => {
    const { limiter, left } = await bucket({ rate: 0.001, capacity: 10, minRate: 0.001 });
    await limiter.one(T0, { cost: 8 });
    expect(await back(limiter, T0 + HOUR + 1, { cost: 8, mark: 'm' })).toEqual(['too_late']);
    expect(await fixture.redis.exists(limiter.keys.refund('m'))).toBe(0);
    const late = { keys: limiter.keys, dueUs: T0, shadow: false, fallback: FALLBACK };
    expect(await refund(fixture.redis, { ...late, refunds: [], nowUs: T0 + 1 })).toBeNull();
    expect(await back(limiter, T0 + HOUR, { cost: 8 })).toEqual(['refunded']);
    expect(await left(T0 + HOUR)).toBe(10);
  });

  test('another epoch: nothing', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { cost: 8 });
    expect(await back(limiter, T0, { cost: 8, epoch: EPOCH - 1 })).toEqual(['moved_on']);
    expect(await left(T0)).toBe(2);
  });

  test('I6: a trip since empties the total for good; the subject, which no trip empties, gets its own back', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { subject: 'a', cost: 4 });
    const trip = { state: 'open', openUntil: T0 / 1000 + 2000, generation: 1 } as const;
    await changeParams(fixture.redis, limiter.keys, trip, { nowUs: T0 + S });
    expect(await back(limiter, T0 + S, { cost: 4 })).toEqual(['moved_on']);
    await changeParams(fixture.redis, limiter.keys, { state: 'closed' }, { nowUs: T0 + 2 * S });
    const after = T0 + 3 * S;
    expect(await back(limiter, after, { cost: 4, subject: 'a' })).toEqual(['refunded']);
    expect(await left(after)).toBe(1);
    await limiter.one(after, { cost: 1 });
    expect(await left(after + 9 * S, 'a')).toBe(5);
  });

  test('I6: a probe stays probed: half-open gives nothing back', async () => {
    const { limiter, left } = await bucket();
    const trip = { state: 'half-open', generation: 1 } as const;
    await changeParams(fixture.redis, limiter.keys, trip, { nowUs: T0 });
    expect((await limiter.one(T0 + S)).reason).toBe('ok');
    expect(await back(limiter, T0 + S, { atUs: T0 + S, generation: 1 })).toEqual(['moved_on']);
    expect(await left(T0 + S)).toBe(0);
  });

  test('a rate of 0 since: what it emptied stays empty', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { cost: 8 });
    await changeParams(fixture.redis, limiter.keys, { rate: 0 }, { nowUs: T0 + S });
    await changeParams(fixture.redis, limiter.keys, { rate: 1 }, { nowUs: T0 + 2 * S });
    expect(await back(limiter, T0 + 2 * S, { cost: 8 })).toEqual(['moved_on']);
    expect(await left(T0 + 2 * S)).toBe(0);
  });

  test('C02: after a clock step back nothing is given back to a bucket that lies ahead', async () => {
    const { limiter } = await bucket();
    await limiter.one(T0 + 60 * S, { cost: 8 });
    const early = T0 - HOUR;
    expect(await back(limiter, early, { cost: 8, atUs: T0 + 60 * S })).toEqual(['moved_on']);
  });

  test('without params: the numbers of the call rule, and a mark of other days gets nothing', async () => {
    const limiter = fixture.limiter();
    const none = { epoch: 0, cost: 6 };
    await limiter.one(T0, { cost: 6 });
    expect(await back(limiter, T0, none)).toEqual(['refunded']);
    expect((await limiter.one(T0, { cost: 10 })).allowed).toBe(true);
    await fixture.redis.set(limiter.keys.bucket, '17.5');
    expect(await back(limiter, T0, none)).toEqual(['moved_on']);
  });

  test('C18: what is no refund is an error and changes nothing', async () => {
    const { limiter, left } = await bucket();
    await limiter.one(T0, { cost: 8 });
    for (const cost of [Number.NaN, -5, 0, Number.POSITIVE_INFINITY, 2e9, 1e-7]) {
      await expect(back(limiter, T0, { cost })).rejects.toThrow('FLYBALL_E_CALL_INVALID');
    }
    expect(await left(T0)).toBe(2);
  });
});

const WINDOW_MS = 60_000;
const WINDOWS: AlgorithmTerms[] = [
  { algorithm: 'sliding-log', windowMs: WINDOW_MS, cells: 0 },
  { algorithm: 'sliding-counter', windowMs: WINDOW_MS, cells: 6 },
  { algorithm: 'fixed-window', windowMs: WINDOW_MS, cells: 0 },
];
/** A minute that begins here. */
const M0 = T0 - (T0 % (60 * S)) + 60 * S;

describe.each(WINDOWS)('$algorithm', (terms) => {
  async function window() {
    const { limiter } = await bucket({ rate: 10 / 60, subjectRate: 5 / 60, minRate: 0.1 });
    const take = async (nowUs: number, cost = 1, subject: string | null = null) =>
      (await limiter.call([{ cost, subject }], nowUs, { terms })).answers[0]!;
    return { limiter, take };
  }

  test('gives back to both windows, once', async () => {
    const { limiter, take } = await window();
    await take(M0, 5, 'a');
    await take(M0 + S, 5);
    const one = { terms, subject: 'a', cost: 5, atUs: M0, mark: 'x' };
    expect(await back(limiter, M0 + 2 * S, one, one)).toEqual(['refunded', 'already']);
    expect((await take(M0 + 2 * S, 5, 'a')).reason).toBe('ok');
    expect((await take(M0 + 2 * S, 1)).reason).toBe('rate');
  });

  test('C52: the window has moved on: nothing, and use never falls below zero', async () => {
    const { limiter, take } = await window();
    await take(M0, 10);
    const later = M0 + 71 * S;
    await take(later, 3);
    const one = { terms, cost: 10, atUs: M0 };
    expect(await back(limiter, later, one)).toEqual(['moved_on']);
    expect((await take(later, 8)).reason).toBe('rate');
    expect((await take(later, 7)).reason).toBe('ok');
    expect(await back(limiter, later, { ...one, atUs: later, cost: 11 })).toEqual(['moved_on']);
  });

  test('keeps the key’s time to live, and what it holds stays readable', async () => {
    const { limiter, take } = await window();
    await take(M0, 2);
    await back(limiter, M0, { terms, cost: 2, atUs: M0 });
    const kind = ({ 'sliding-log': 'wl', 'sliding-counter': 'wc' } as const)[
      terms.algorithm as 'sliding-log'
    ];
    expect(await fixture.redis.pttl(limiter.keys.taken(kind ?? 'wf', null, false))).toBeGreaterThan(
      0,
    );
    expect((await take(M0 + 1, 10)).reason).toBe('ok');
  });
});

test('a log of which more than 2,000 takes came since gives nothing back; those within reach it does', async () => {
  const { limiter } = await bucket({ rate: 1_000, maxRate: 1_000 });
  const terms = WINDOWS[0]!;
  for (let i = 0; i < 2_100; i += 1) await limiter.call([{ cost: 1 }], M0 + i, { terms });
  const refundOf = (i: number) => ({ terms, atUs: M0 + i });
  expect(await back(limiter, M0 + 3_000, refundOf(5), refundOf(2_050), refundOf(200))).toEqual([
    'moved_on',
    'refunded',
    'refunded',
  ]);
});
