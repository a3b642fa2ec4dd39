/** What lies in a key and is not ours, or of another time: a take decides, and what cannot refill is brought back to now. */
import { describe, expect, test } from 'vitest';
import type { TakeCall } from '../../src/redis/calls.js';
import type { ParamChange } from '../../src/redis/params.js';
import { topScript } from '../../src/redis/scripts.gen.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import {
  overrideSubject,
  readOverrides,
  type SubjectRule,
} from '../../src/redis/subject-override.js';
import { changeParams, seedParams, storedParams, testEntry } from '../support/seed-params.js';
import { type Limiter, reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const PACE = { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 } as const;
const NUMBERS = { rate: 10, capacity: 100, subjectRate: 0.5, subjectCapacity: 5 };
const TIERS = 'on=paid reset=failed keep=2592000000 step=1:10:-';

async function limiter(change: ParamChange = {}): Promise<Limiter> {
  const made = fixture.limiter();
  await seedParams(fixture.redis, made.keys, { ...NUMBERS, ...change }, { nowUs: T0 });
  return made;
}

async function say({ keys }: Limiter, subject: string, rule: Partial<SubjectRule>, nowUs = T0) {
  const { epoch, revision } = (await storedParams(fixture.redis, keys))!;
  const full = { kind: 'limit', untilMs: -1, rate: null, capacity: null, ...rule } as SubjectRule;
  return overrideSubject(fixture.redis, {
    ...{ keys, subject, nowUs, expected: { epoch, revision } },
    override: { ...full, subject, by: 'ada', why: 'tried', revision: revision + 1 },
    entry: await testEntry(fixture.redis, keys, epoch, revision + 1, 'said'),
  });
}

const many = (n: number, subject: string | null) => Array.from({ length: n }, () => ({ subject }));
const passed = (answers: readonly { allowed: boolean }[]) =>
  answers.filter((each) => each.allowed).length;

describe('a queue that cannot leak where it is', () => {
  test('I5: one without params that meets a mark of the token clock begins full, and leaks from then', async () => {
    const made = await limiter({ algorithm: 'leaky-bucket' });
    const call = { terms: PACE, fallback: { ...NUMBERS, inFlightMax: 0, capacity: 10 } };
    await made.call(many(3, 'a'), T0, call);
    await fixture.redis.del(made.keys.params);
    expect(reasons(await made.call([{ subject: 'a' }], T0, call))).toEqual(['subject']);
    // 0.5/s for a queue of 5: after 4 s two have leaked.
    const later = await made.call(many(4, 'a'), T0 + 4 * S, call);
    expect(passed(later.answers)).toBe(2);
  });

  test.each(['garbage', '', 'nan', '-nan', 'inf', 'u:nan:1', 'u:1', '0x', '1e400'])(
    'what reads %j is brought to now by the first who asks, be it denied',
    async (text) => {
      const made = await limiter({ algorithm: 'leaky-bucket' });
      for (const subject of [null, 'a']) {
        const key = made.keys.taken('wp', subject, false);
        await fixture.redis.set(key, text);
        await made.call([{ subject }], T0, { terms: PACE });
        const { answers } = await made.call([{ subject }], T0 + 10 * S, { terms: PACE });
        expect(answers[0]).toMatchObject({ allowed: true });
        expect(await fixture.redis.pttl(key)).toBeGreaterThan(0);
      }
    },
  );

  test('one of whom a person has said something keeps its own queue past the most subjects', async () => {
    const change = { algorithm: 'leaky-bucket', subjectTerms: 'max=1', subjectRules: 1 } as const;
    const made = await limiter(change);
    const call = { terms: PACE, rules: true };
    await say(made, 'vip', { capacity: 50, rate: 5 });
    const takes = ['a', 'b', 'vip'].map((subject) => ({ subject }));
    const { answers } = await made.call(takes, T0, call);
    expect(answers.map(({ shared }) => shared ?? false)).toEqual([false, true, false]);
  });
});

describe('a bucket with numbers of its own', () => {
  const go = (made: Limiter, n: number, nowUs: number, more: Partial<TakeCall> = {}) =>
    made.call(many(n, 'a'), nowUs, { rules: true, ...more });

  test('whose text stands ahead of a token clock that began anew refills from then', async () => {
    const made = await limiter({ subjectTerms: TIERS, subjectRules: 1 });
    const { keys } = made;
    const late = T0 + 1_000_000 * S;
    await go(made, 1, late);
    await countOutcome(fixture.redis, { keys, subject: 'a', name: 'paid', id: '1', nowUs: late });
    await go(made, 20, late);
    await fixture.redis.del(keys.params);
    const again = { ...NUMBERS, subjectTerms: TIERS, subjectRules: 1 as const };
    await seedParams(fixture.redis, keys, again, { nowUs: late, epoch: 1_000_001, revision: 1 });
    expect(passed((await go(made, 1, late)).answers)).toBe(0);
    expect(passed((await go(made, 20, late + 10 * S)).answers)).toBe(5);
  });

  test('whose policy no longer says the other number holds none of its own', async () => {
    const made = await limiter();
    await say(made, 'a', { capacity: 20 });
    await say(made, 'b', { rate: 3 });
    await fixture.redis.del(made.keys.params);
    const none = { ...NUMBERS, subjectRate: -1, subjectCapacity: 0, subjectRules: 1 as const };
    await seedParams(fixture.redis, made.keys, none, { nowUs: T0, epoch: 1_000_001 });
    for (const subject of ['a', 'b', 'c']) {
      const { answers } = await made.call(many(30, subject), T0, { rules: true });
      expect([subject, passed(answers)]).toEqual([subject, 30]);
      await made.call([], T0);
      await fixture.redis.del(made.keys.bucket);
    }
  });

  test('I5: whose words are over, and the policy gives more room since: what did not fit before is gone', async () => {
    const made = await limiter();
    await say(made, 'a', { capacity: 60, rate: 50, untilMs: T0 / 1000 + 2_000 });
    const later = T0 + 4 * S;
    await changeParams(fixture.redis, made.keys, { subjectCapacity: 9 }, { nowUs: later });
    // 60 at the end of the words, of which the policy's bucket held 5.
    expect(passed((await go(made, 20, later + 2 * S)).answers)).toBe(6);
  });

  test('a tier without a rate, where the policy gives subjects none, is no error', async () => {
    const none = { ...NUMBERS, subjectRate: -1, subjectCapacity: 0 };
    const made = await limiter({ ...none, subjectTerms: TIERS, subjectRules: 1 });
    const { keys } = made;
    await countOutcome(fixture.redis, { keys, subject: 'a', name: 'paid', id: '1', nowUs: T0 });
    expect(passed((await go(made, 3, T0)).answers)).toBe(3);
    expect(await fixture.redis.pttl(keys.subjectBucket('a'))).not.toBe(-1);
  });
});

describe('a write that cannot be undone fails nowhere after it has begun', () => {
  test('I2: an override whose bucket and row of outcomes are of another type is written whole', async () => {
    const made = await limiter({ subjectTerms: TIERS, subjectRules: 1 });
    const { keys } = made;
    for (const key of [
      keys.standing('a'),
      keys.subjectBucket('a'),
      keys.shadowSubjectBucket('a'),
    ]) {
      await fixture.redis.lpush(key, 'x');
    }
    expect(await say(made, 'a', { capacity: 20, rate: 1 })).toMatchObject({ status: 'ok' });
    expect(await fixture.redis.hlen(keys.overrides)).toBe(1);
    expect(await fixture.redis.xlen(keys.audit)).toBe(2);
    expect((await storedParams(fixture.redis, keys))!.revision).toBe(2);
  });

  test('overrides under another type are none: neither a person nor a policy is kept from acting', async () => {
    const made = await limiter();
    await fixture.redis.set(made.keys.overrides, 'x');
    expect(await readOverrides(fixture.redis, made.keys)).toEqual(new Map());
    expect(await say(made, 'a', { kind: 'block' })).toMatchObject({ status: 'ok' });
    expect([...(await readOverrides(fixture.redis, made.keys)).keys()]).toEqual(['a']);
    await fixture.redis.hset(
      made.keys.overrides,
      'b',
      'limit -1 nan -',
      'c',
      'limit -5 1 1',
      'd',
      'limit -1 1e7 2',
    );
    const read = await readOverrides(fixture.redis, made.keys);
    expect([...read.keys()].sort()).toEqual(['a', 'd']);
    expect(read.get('d')).toMatchObject({ rate: null, capacity: 2 });
  });

  test('I2: thousands of overrides that are over, by another hand, are removed by one write', async () => {
    const made = await limiter();
    const junk = Array.from({ length: 9_000 }, (_each, i) => [`s${i}`, 'block 1 - - 1']).flat();
    await fixture.redis.hset(made.keys.overrides, ...junk);
    expect(await say(made, 'a', { kind: 'block' })).toMatchObject({ status: 'ok' });
    expect(await fixture.redis.hlen(made.keys.overrides)).toBe(1);
  });

  test('a minute of top subjects that holds what is no number counts on, and ends by itself', async () => {
    const key = fixture.limiter().keys.top(1);
    const add = (...pairs: string[]) =>
      fixture.redis.eval(topScript.lua, 1, key, '60000', '2', '4', ...pairs);
    for (const text of ['nan', 'inf', 'x', '1e308', '']) {
      await fixture.redis.hset(key, 't:a', text, 't', text, 'te', text);
      await add('t:a', '1e300', 't:a', '3', 't', '3').catch((error: Error) =>
        expect(error.message).toMatch(/^FLYBALL_E_CALL_INVALID/),
      );
      await add('t:a', '3', 't', '3');
      expect(await fixture.redis.hmget(key, 't:a', 't')).toEqual(['3', '3']);
    }
    await fixture.redis.hset(key, 't:n', 'nan', 't:m', '-nan', 't:o', '2');
    await add('t:p', '1', 't:q', '4');
    expect(await fixture.redis.hmget(key, 't:q', 't:a', 't:p', 'te')).toEqual([
      '2',
      '1',
      null,
      '2',
    ]);
    expect(await fixture.redis.pttl(key)).toBeGreaterThan(0);
  });

  test.each(['0x10', ' 1', 'nan', '-1', '1e309'])(
    'an amount of %j is refused before anything is written: no minute without an end',
    async (amount) => {
      const key = fixture.limiter().keys.top(1);
      const call = fixture.redis.eval(
        topScript.lua,
        1,
        key,
        '60000',
        '2',
        '4',
        't:a',
        '1',
        't',
        amount,
      );
      await expect(call).rejects.toThrow(/^FLYBALL_E_CALL_INVALID/);
      expect(await fixture.redis.exists(key)).toBe(0);
    },
  );
});

test.each([
  ['sliding-log', 0],
  ['sliding-counter', 6],
  ['fixed-window', 0],
] as const)(
  '%s: a window that became shorter denies for no longer than its new length',
  async (algorithm, cells) => {
    const made = await limiter({ rate: 1, capacity: 1000, subjectRate: -1, subjectCapacity: 0 });
    const day = { algorithm, windowMs: 86_400_000, cells };
    expect(passed((await made.call(many(500, null), T0, { terms: day })).answers)).toBe(500);
    const short = { terms: { algorithm, windowMs: 60_000, cells } };
    for (let at = 61; at < 300; at += 20) {
      const { answers } = await made.call(many(1, null), T0 + at * S, short);
      const wait = answers[0]!.retryAfterMs;
      expect(wait !== null && wait <= 80_000).toBe(true);
    }
    expect(passed((await made.call(many(1, null), T0 + 300 * S, short)).answers)).toBe(1);
  },
);
