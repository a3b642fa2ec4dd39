/** I5 over adoptions that give subjects a rate or take it away, for a subject with and without numbers of its own. */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TakeReply } from '../../src/redis/calls.js';
import { type LimiterKeys, limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { take } from '../../src/redis/scripts.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { sayOfSubject } from '../support/say-of-subject.js';
import { changeParams, seedParams, storedParams } from '../support/seed-params.js';

const T0 = 1_700_000_000_000_000;
const S = 1_000_000;
const FALLBACK = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
const NONE = { subjectRate: -1, subjectCapacity: 0 };
const KEEP_MS = 2_592_000_000;
const tier = (numbers: string) => `on=paid reset=failed keep=${KEEP_MS} step=1:${numbers}`;

let server: TestRedis;
let redis: Redis;
let limiters = 0;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
afterAll(() => server.stop());

/** Whose total never denies; from 60 s on it glides, and its takes read the fields. */
async function limiter(change: ParamChange): Promise<LimiterKeys> {
  limiters += 1;
  const keys = limiterKeys({ name: `a${limiters}` });
  const wide = { rate: 1e6, capacity: 1e6, maxRate: 1e6, maxCapacity: 1e6 };
  await seedParams(redis, keys, { ...wide, ...change }, { nowUs: T0 });
  return keys;
}

async function ask(keys: LimiterKeys, nowUs: number, costs: number[]): Promise<TakeReply> {
  const rules = (await storedParams(redis, keys))!.subjectRules === 1;
  return take(redis, {
    ...{ keys, fallback: FALLBACK, shadow: false, rules, nowUs },
    chargeByUs: 'any',
    takes: costs.map((cost) => ({ subject: 'a', cost, priority: 'default' })),
  });
}

async function passes(keys: LimiterKeys, nowUs: number, takes = 30): Promise<number> {
  const { answers } = await ask(keys, nowUs, Array<number>(takes).fill(1));
  return answers.filter((each) => each.allowed).length;
}

interface Numbers {
  rate: number;
  capacity: number;
}
type Op =
  | { op: 'wait'; us: number }
  | { op: 'take'; cost: number }
  | { op: 'adopt'; numbers: Numbers | null }
  | { op: 'say'; numbers: Numbers | null; forMs: number | null };

// So slow that no bucket is gone by the server's own clock.
const numbers = fc.record({
  rate: fc.constantFrom(0.01, 0.05, 0.2, 0.5),
  capacity: fc.integer({ min: 10, max: 40 }),
});
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('wait'), us: fc.nat({ max: 200 * S }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('take'),
      cost: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('adopt'), numbers: fc.option(numbers) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('say'),
      numbers: fc.option(numbers),
      forMs: fc.option(fc.integer({ min: 1, max: 60_000 })),
    }),
  },
) as fc.Arbitrary<Op>;

test('I5: in any time a subject is bound it passes no more than its capacity and what its rate paid', async () => {
  let adopted = 0;
  const story = fc.array(op, { minLength: 6, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(story, async (ops) => {
      const keys = await limiter(NONE);
      let nowUs = T0;
      let policy: Numbers | null = null;
      let own: (Numbers & { untilUs: number }) | null = null;
      const numbersAt = (us: number) => (own !== null && us < own.untilUs ? own : policy);
      const bucket = keys.subjectBucket('a');
      let goneUs = Infinity;
      let endsMs = -2;
      /** Room left by each earlier moment since the subject was last free: the capacity then, and what was paid since. */
      let room: number[] = [];
      const moved = (toUs: number) => {
        const rate = numbersAt(nowUs)?.rate ?? 0;
        room = room.map((left) => left + (rate * (toUs - nowUs)) / 1e6);
        nowUs = toUs;
        const now = numbersAt(nowUs);
        room = now === null ? [] : [...room, now.capacity];
      };
      for (const each of ops) {
        if (each.op === 'adopt') {
          if (each.numbers !== null && policy === null) adopted += 1;
          policy = each.numbers;
          const { rate, capacity } = policy ?? { rate: -1, capacity: 0 };
          const change = { subjectRate: rate, subjectCapacity: capacity };
          expect(await changeParams(redis, keys, change, { nowUs })).toMatchObject({
            status: 'ok',
          });
        } else if (each.op === 'say') {
          const untilMs = each.forMs === null ? -1 : Math.ceil(nowUs / 1000) + each.forMs;
          own = each.numbers && {
            ...each.numbers,
            untilUs: untilMs === -1 ? Infinity : untilMs * 1000,
          };
          const rule = each.numbers && { ...each.numbers, untilMs };
          await sayOfSubject(redis, keys, 'a', rule, nowUs);
        } else if (each.op === 'wait') {
          const to: number = nowUs + each.us;
          const end: number = own?.untilUs ?? 0;
          if (nowUs < end && end < to) moved(end);
          moved(to);
          if (goneUs <= nowUs) await redis.del(bucket);
        }
        moved(nowUs);
        if (each.op === 'take') {
          const { status, answers } = await ask(keys, nowUs, [each.cost]);
          expect(status).toBe('ok');
          if (numbersAt(nowUs) === null) expect(answers[0]!.reason).toBe('ok');
          if (answers[0]!.allowed) room = room.map((left) => left - each.cost);
          expect(Math.min(Infinity, ...room)).toBeGreaterThanOrEqual(-1e-4);
        }
        const at = await redis.pexpiretime(bucket);
        if (at === endsMs) continue;
        // It was written: from now on it lives for so long.
        endsMs = at;
        const ms = await redis.pttl(bucket);
        goneUs = ms >= 0 ? nowUs + (ms + 5) * 1000 : Infinity;
      }
    }),
    { numRuns: 120 },
  );
  expect(adopted).toBeGreaterThan(0);
});

test('I5: what a tier’s bucket was not paid while the policy had no rate for subjects it is not paid later', async () => {
  const keys = await limiter({ ...NONE, subjectRules: 1, subjectTerms: tier('20:0.5') });
  await countOutcome(redis, { keys, subject: 'a', name: 'paid', id: '1', nowUs: T0 });
  // Used up on the copy of the params, long after their last change.
  const later = T0 + 50 * S;
  expect(await passes(keys, later)).toBe(20);
  const gains = { subjectRate: 0.1, subjectCapacity: 10, subjectTerms: tier('20:-') };
  await changeParams(redis, keys, gains, { nowUs: later });
  expect(await passes(keys, later + 10 * S)).toBe(1);
});

test('I5: words that end after the policy has lost its rate for subjects pay nothing by a rate that is none', async () => {
  const had = { subjectRate: 0.02, subjectCapacity: 8, subjectRules: 1 as const };
  const keys = await limiter({ ...had, subjectTerms: tier('9:-') });
  await countOutcome(redis, { keys, subject: 'a', name: 'paid', id: '1', nowUs: T0 });
  const untilMs = T0 / 1000 + 10_000;
  await sayOfSubject(redis, keys, 'a', { capacity: 9, untilMs }, T0);
  expect(await passes(keys, T0)).toBe(8);
  const lost = { ...NONE, subjectTerms: tier('9:0.05') };
  await changeParams(redis, keys, lost, { nowUs: T0 + 5 * S });
  // 5 s at 0.02/s, and from the end of the words 30 s at 0.05/s.
  expect(await passes(keys, T0 + 40 * S)).toBe(1);
});

test('I5: words whose bucket was kept before the policy had a rate for subjects leave no full bucket at their end', async () => {
  const keys = await limiter(NONE);
  const untilMs = T0 / 1000 + 10_000;
  await sayOfSubject(redis, keys, 'a', { capacity: 2, rate: 1, untilMs }, T0);
  expect(await passes(keys, T0)).toBe(2);
  await changeParams(redis, keys, { subjectRate: 0.02, subjectCapacity: 20 }, { nowUs: T0 + S });
  const kept = await redis.pttl(keys.subjectBucket('a'));
  const later = T0 + 60 * S;
  if (kept < 60_000) await redis.del(keys.subjectBucket('a'));
  // 2 at the end of the words, and 50 s at 0.02/s.
  expect(await passes(keys, later)).toBe(3);
});

test('subjects that nothing has bound so far begin full when a policy gives them a rate', async () => {
  const keys = await limiter(NONE);
  expect(await passes(keys, T0 + S)).toBe(30);
  const gains = { subjectRate: 0.02, subjectCapacity: 7 };
  await changeParams(redis, keys, gains, { nowUs: T0 + 2 * S });
  expect(await passes(keys, T0 + 2 * S)).toBe(7);
  // Over, and back: free in between, so full again, but for what a bucket still owes.
  await changeParams(redis, keys, NONE, { nowUs: T0 + 3 * S });
  await changeParams(redis, keys, gains, { nowUs: T0 + 4 * S });
  expect(await passes(keys, T0 + 4 * S)).toBe(0);
  await redis.del(keys.subjectBucket('a'));
  expect(await passes(keys, T0 + 4 * S)).toBe(7);
});
