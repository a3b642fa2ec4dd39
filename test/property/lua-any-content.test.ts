/** Whatever a foreign hand left in the keys of a take, each algorithm answers with numbers, and passes again in time. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TakeCall } from '../../src/redis/calls.js';
import { draw } from '../../src/redis/draw.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { type RefundRequest, refund } from '../../src/redis/refund.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject } from '../../src/redis/subject-override.js';
import { together } from '../../src/redis/together.js';
import { FALLBACK, S, T0, useRedis } from '../lua/fixture.js';
import { seedParams, storedParams, testEntry } from '../support/seed-params.js';

const fixture = useRedis();
const SUBJECT = 'a';
const ALGORITHMS = [
  { algorithm: 'token-bucket', windowMs: 0, cells: 0 },
  { algorithm: 'sliding-log', windowMs: 10_000, cells: 0 },
  { algorithm: 'sliding-counter', windowMs: 10_000, cells: 6 },
  { algorithm: 'fixed-window', windowMs: 10_000, cells: 0 },
  { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 },
] as const;

const number = fc.constantFrom(
  ...['0', '-0', '1', '5.5', '-1', '1e300', '-1e300', '1e400', '-1e400', '1e-320', 'nan', 'inf'],
  ...['0x10', '', '-', '1-5', '5e', ' 1', '9007199254740993', `${T0}`, `${T0 * 2}`, '1'.repeat(40)],
  ...['12345678901234567', '0.30000000000000004', '1'.repeat(400)],
);
const text = fc.oneof(
  number,
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.tuple(number, number).map(([t, at]) => `u:${t}:${at}`),
  fc.tuple(number, number).map(([stop, used]) => `${stop} ${used}`),
  fc
    .tuple(number, number, number, number, number, number)
    .map(([t, at, v, r, c, ends]) => `o:${t}:${at}:${v}:${r}:${c}:${ends}`),
);
const double = fc.oneof(
  fc.double(),
  fc.constantFrom(
    0,
    -0,
    Number.NaN,
    Infinity,
    -Infinity,
    T0,
    2 * T0,
    -1e300,
    1e300,
    1e6,
    T0 / 1.7e6,
  ),
);
const bytes = fc.array(double, { maxLength: 12 }).map((list) => {
  const out = Buffer.alloc(8 * list.length);
  for (const [i, each] of list.entries()) out.writeDoubleLE(each, 8 * i);
  return out;
});
const content = fc.oneof(text, bytes, fc.uint8Array({ maxLength: 70 }).map(Buffer.from));
const entries = fc.array(fc.oneof(bytes, content), { minLength: 1, maxLength: 5 });
const overrideOf = fc.oneof(
  text,
  fc
    .tuple(fc.constantFrom('limit', 'exempt', 'limit'), number, number, number)
    .map((parts) => parts.join(' ')),
);
const score = fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(Infinity, -Infinity, T0 / 1000));

interface Harm {
  algorithm: (typeof ALGORITHMS)[number];
  managed: boolean;
  rules: boolean;
  terms: string;
  subjectRate: number;
  total: string | Buffer;
  own: string | Buffer;
  list: (string | Buffer)[];
  said: string;
  standing: string | Buffer;
  scores: number[];
  cost: string;
  owed: Record<string, number>;
}
const harm: fc.Arbitrary<Harm> = fc.record({
  algorithm: fc.constantFrom(...ALGORITHMS),
  managed: fc.boolean(),
  rules: fc.boolean(),
  terms: fc.oneof(
    fc
      .constantFrom('', 'max=1 ', 'max=3 ')
      .chain((max) =>
        fc
          .tuple(number, number, number)
          .map(([keep, c, r]) => `${max}on=paid reset=failed keep=${keep} step=1:${c}:${r}`),
      ),
    fc.string({ maxLength: 40 }),
    fc.constant('on=paid reset=failed keep=60000 step=1:10:- step=2:20:3'),
    fc.constant('fair=1'),
    fc.constant('fair=1 max=1'),
  ),
  subjectRate: fc.constantFrom(-1, 0, 2),
  total: content,
  own: content,
  list: entries,
  said: overrideOf,
  standing: content,
  scores: fc.array(score, { maxLength: 4 }),
  owed: fc.dictionary(
    fc.constantFrom('!t', '!u', '!s', '!o', '!', '#', SUBJECT, 'x'),
    fc.oneof(score, fc.constantFrom(-T0 - 3e7, -T0 - 3e7, -1, -8, 3, 9)),
  ),
  cost: fc.constant('1'),
});

async function hurt(keys: LimiterKeys, each: Harm): Promise<void> {
  const { redis } = fixture;
  for (const kind of ['wc', 'wf', 'wp'] as const) {
    await redis.mset(
      keys.taken(kind, null, false),
      each.total,
      keys.taken(kind, SUBJECT, false),
      each.own,
    );
  }
  await redis.mset(keys.bucket, each.total, keys.subjectBucket(SUBJECT), each.own);
  await redis.rpush(keys.taken('wl', null, false), ...each.list);
  await redis.rpush(keys.taken('wl', SUBJECT, false), ...each.list);
  await redis.hset(keys.overrides, SUBJECT, each.said);
  await redis.set(keys.standing(SUBJECT), each.standing);
  for (const [name, at] of Object.entries(each.owed)) {
    await redis.zadd(keys.owed(false), String(at), name);
  }
  for (const kind of ['b', 'wl', 'wc', 'wf', 'wp'] as const) {
    const { index, shared } = keys.crowd(kind, false);
    for (const [i, at] of each.scores.entries()) await redis.zadd(index, String(at), `x${i}`);
    if (kind === 'wl') await redis.rpush(shared, ...each.list);
    else await redis.set(shared, each.own);
  }
}

/** A named refusal is an answer; anything else that is thrown is a fault of ours. */
async function asked<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    expect((error as Error).message).toMatch(/^FLYBALL_E_CALL_INVALID/);
    return null;
  }
}

test('any content of any key: every script answers, and a take passes again once its time is over', async () => {
  await fc.assert(
    fc.asyncProperty(harm, async (each) => {
      const { redis } = fixture;
      const { keys, call } = fixture.limiter();
      const { subjectRate, algorithm } = each;
      if (each.managed) {
        const rules = each.rules ? ({ subjectRules: 1, subjectTerms: each.terms } as const) : {};
        const numbers = { rate: 4, capacity: 20, subjectRate, subjectCapacity: 5, minRate: 4 };
        await seedParams(redis, keys, { ...numbers, mode: 'auto', ...rules }, { nowUs: T0 });
      }
      await hurt(keys, each);
      const more: Partial<TakeCall> = {
        rules: each.managed && each.rules,
        terms: algorithm,
        fallback: { ...FALLBACK, subjectRate: 1, subjectCapacity: 5 },
      };
      const both = [{ subject: SUBJECT }, { subject: null }];
      const takes = async (nowUs: number) => {
        for (const batch of [both, [both[0]!], [both[1]!]]) {
          const reply = await call(batch, nowUs, more);
          expect(reply.status).toBe('ok');
          for (const { remaining, retryAfterMs } of reply.answers) {
            expect(Number.isSafeInteger(remaining) && remaining >= 0).toBe(true);
            expect(retryAfterMs === null || retryAfterMs >= 0).toBe(true);
          }
        }
      };
      const request = (name: string | null): RefundRequest => ({
        ...{ subject: name, cost: 1, atUs: T0, generation: 0, terms: algorithm, mark: null },
        epoch: each.managed ? 1_000_000 : 0,
      });
      const all = { keys, dueUs: null, shadow: false, fallback: FALLBACK, nowUs: T0 };
      if (algorithm.algorithm !== 'leaky-bucket')
        await asked(refund(redis, { ...all, refunds: [request(SUBJECT), request(null)] }));
      const epoch = 1_000_000;
      const wish = { want: 2, back: 1 };
      await asked(
        draw(redis, {
          keys,
          epoch,
          total: wish,
          subjects: [{ subject: SUBJECT, ...wish }],
          nowUs: T0,
        }),
      );
      await takes(T0);
      const limiters = [{ keys, fallback: FALLBACK, shadow: false }];
      await asked(
        together(redis, {
          limiters,
          sets: [[{ ...both[0]!, cost: 1, priority: 'default' }]],
          chargeByUs: 'any',
          nowUs: T0,
        }),
      );
      await asked(
        countOutcome(redis, { keys, subject: SUBJECT, name: 'paid', id: 'x', nowUs: T0 }),
      );
      await hurt(keys, each);
      if (each.managed) {
        const { revision } = (await storedParams(redis, keys))!;
        const said = await overrideSubject(redis, {
          ...{ keys, subject: SUBJECT, nowUs: T0, expected: { epoch, revision }, override: null },
          entry: await testEntry(redis, keys, epoch, revision + 1, 'said by a test'),
        });
        expect(said.status).toBe('ok');
        more.rules = (await storedParams(redis, keys))!.subjectRules === 1;
      }
      // The first who asks brings back what could not refill; an hour later all of it is over.
      await takes(T0 + S);
      const { answers } = await call([both[1]!], T0 + 3600 * S, more);
      expect(answers[0]!.allowed).toBe(true);
      const own = await call([both[0]!], T0 + 7200 * S, more);
      if (subjectRate !== 0 || !each.managed) expect(own.answers[0]!.allowed).toBe(true);
      for (const key of await redis.keys(`*{${keys.name}}*`)) {
        const foreign = /:(params|audit|o|owed|ts:a|x:\w+|\w+:#|w\w:a|w\w|b|b:a)$/.test(key);
        if (!foreign) expect([key, await redis.pttl(key)]).not.toEqual([key, -1]);
      }
    }),
    { numRuns: Number(process.env.RUNS ?? 100) },
  );
}, 600_000);
