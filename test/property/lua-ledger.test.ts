/** I5 over everything at once: words of a person, tiers, refunds, sets, trips, other numbers, clock steps, lost params. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { refund } from '../../src/redis/refund.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import { overrideSubject, type SubjectRule } from '../../src/redis/subject-override.js';
import { together } from '../../src/redis/together.js';
import { FALLBACK, T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams, storedParams, testEntry } from '../support/seed-params.js';

const fixture = useRedis();
const KEEP_MS = 60_000;
const TERMS = `max=2 on=paid reset=failed keep=${KEEP_MS} step=1:12:- step=3:20:4`;
const STEPS = [
  { times: 1, capacity: 12, rate: null },
  { times: 3, capacity: 20, rate: 4 },
] as const;

const rate = fc.constantFrom(0.5, 1, 3, 10);
const capacity = fc.constantFrom(2, 5, 9, 30);
const op = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ op: fc.constant('take' as const), n: fc.integer({ min: 1, max: 25 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      us: fc.integer({ min: 0, max: 6_000_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('wait' as const),
      us: fc.integer({ min: 0, max: 80_000_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('refund' as const),
      which: fc.nat({ max: 40 }),
      n: fc.integer({ min: 1, max: 8 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('together' as const),
      n: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('say' as const),
      kind: fc.constantFrom('limit', 'limit', 'block', 'clear' as const),
      forMs: fc.option(fc.integer({ min: 1, max: 20_000 })),
      rate: fc.option(rate),
      capacity,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('outcome' as const),
      name: fc.constantFrom('paid', 'paid', 'failed'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('change' as const),
      change: fc.oneof(
        fc.record({ subjectRate: rate }),
        fc.record({ subjectCapacity: capacity }),
        fc.record({ subjectRate: rate, subjectCapacity: capacity }),
        fc.record({ rate }),
        fc.record({ capacity }),
        fc.record({ subjectFollow: fc.constantFrom(0 as const, 1 as const) }),
        fc.record({ subjectTerms: fc.constantFrom('', TERMS) }),
        fc.constant({ subjectRate: -1, subjectCapacity: 0 }),
        fc.constant({ state: 'open' as const }),
        fc.constant({ state: 'closed' as const }),
        fc.constant({ mode: 'off' as const }),
        fc.constant({ mode: 'auto' as const }),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('back' as const),
      us: fc.oneof(fc.integer({ min: 1, max: 5_000_000 }), fc.constant(3_600_000_000)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('lose' as const), back: fc.boolean() }) },
);

test('I5: in any time no bucket passes more than its capacity, what was paid and what came back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 4, maxLength: 40 }), async (ops) => {
      const { redis } = fixture;
      const { keys, call } = fixture.limiter();
      const start = {
        ...{ rate: 10, capacity: 30, minRate: 0.5, maxRate: 10, maxCapacity: 30, policyRate: 10 },
        ...{ subjectRate: 1, subjectCapacity: 5, lostAfterMs: 3.6e6, openForMs: 3_000 },
        ...{ subjectTerms: TERMS, subjectRules: 1 as const },
      };
      let now = T0;
      let epoch = 1_000_000;
      await seedParams(redis, keys, start, { nowUs: now });
      const expiry = new Map<string, number>();
      const watched = [keys.bucket, keys.subjectBucket('a'), keys.standing('a')];
      const remember = async () => {
        for (const key of watched) {
          const ms = await redis.pttl(key);
          const standing = key === keys.standing('a');
          if (ms < 0) expiry.delete(key);
          // A millisecond of the server's own clock may have passed since the write.
          else expiry.set(key, standing ? heardUs + KEEP_MS * 1000 : now + (ms + 5) * 1000);
        }
      };
      let said: SubjectRule | null = null;
      let inARow = 0;
      let heardUs = 0;
      const took: {
        atUs: number;
        epoch: number;
        generation: number;
        mark: string;
        back: boolean;
      }[] = [];
      const own: number[] = [];
      const total: number[] = [];
      const log: string[] = [];

      const numbers = async (at: number) => {
        const params = (await storedParams(redis, keys))!;
        if (at >= heardUs + KEEP_MS * 1000) inARow = 0;
        const rule = said && (said.untilMs === -1 || said.untilMs * 1000 > at) ? said : null;
        const tier =
          params.subjectTerms === '' ? undefined : STEPS.findLast((s) => inARow >= s.times);
        const by = rule?.kind === 'limit' ? rule : tier;
        const follow = params.subjectFollow === 1 ? params.rate / params.policyRate : 1;
        const none = params.subjectRate < 0;
        const bound = !none || (by?.rate != null && by.capacity != null);
        return {
          params,
          bound: bound && params.mode !== 'off',
          rate: by?.rate ?? Math.max(0, params.subjectRate) * follow,
          capacity: by?.capacity ?? params.subjectCapacity,
        };
      };
      const open = async () => {
        const { capacity, params, bound } = await numbers(now);
        // While nothing binds, no time that reaches into it is bound.
        if (!bound) own.length = 0;
        if (params.mode === 'off') total.length = 0;
        own.push(bound ? capacity : Infinity);
        total.push(params.mode === 'off' ? Infinity : params.capacity);
      };
      const pass = (n: number, left: number[], what: string) => {
        for (const i of left.keys()) {
          left[i]! -= n;
          if (!(left[i]! >= -1e-4))
            throw new Error(`${what} minted ${-left[i]!} since ${i}:\n${log.join('\n')}`);
        }
      };
      const rules = async () => (await storedParams(redis, keys))!.subjectRules === 1;
      const passedOf = (answers: { allowed: boolean; reason: string }[], cost = 1) =>
        answers.filter((each) => each.allowed && each.reason === 'ok').length * cost;

      await open();
      for (const each of ops) {
        log.push(`${(now - T0) / 1e6} ${JSON.stringify(each)}`);
        if (each.op === 'wait') {
          // By the higher rate of both ends of each piece: an end of words or of a row may lie on the way.
          const ends = said?.untilMs ? said.untilMs * 1000 : -1;
          const cuts = [ends, heardUs + KEEP_MS * 1000].filter((c) => c > now && c < now + each.us);
          const openUntil = (await storedParams(redis, keys))!.openUntil * 1000;
          let at = now;
          for (const to of [...cuts.sort((a, b) => a - b), now + each.us]) {
            const { rate, params } = await numbers(at);
            for (const i of own.keys()) own[i]! += (rate * (to - at)) / 1e6;
            const totalRate =
              params.state === 'open' ? (to > openUntil ? params.probeRate : 0) : params.rate;
            for (const i of total.keys()) total[i]! += (totalRate * (to - at)) / 1e6;
            at = to;
            now = to;
            await open();
          }
          for (const [key, gone] of expiry) {
            if (gone <= now) {
              await redis.del(key);
              expiry.delete(key);
            }
          }
        } else if (each.op === 'take') {
          const reply = await call(
            Array.from({ length: each.n }, () => ({ subject: 'a' })),
            now,
            { rules: await rules() },
          );
          expect(reply.status).toBe('ok');
          const n = passedOf(reply.answers);
          log.push(`  passed ${n}`);
          const { generation } = reply.inForce;
          for (let i = 0; i < n; i++)
            took.push({
              atUs: now,
              epoch: reply.inForce.epoch,
              generation,
              mark: `${took.length}`,
              back: false,
            });
          pass(n, own, 'the subject');
          pass(n, total, 'the total');
        } else if (each.op === 'together') {
          const limiters = [{ keys, fallback: FALLBACK, shadow: false }];
          const set = [{ subject: 'a', cost: 1, priority: 'default' as const }];
          const sets = Array.from({ length: each.n }, () => set);
          const reply = await together(redis, { limiters, sets, chargeByUs: 'any', nowUs: now });
          const n = passedOf(reply.sets.flat());
          log.push(`  passed ${n}`);
          pass(n, total, 'the total');
          // It knows no numbers of single subjects: only the total is held to its bound, the subject to the larger one.
          const { bound, params } = await numbers(now);
          if (params.subjectRate >= 0 && bound)
            for (const i of own.keys()) own[i]! += params.subjectCapacity;
          pass(n, params.subjectRate >= 0 ? own : [], 'the subject by sets');
          own.length = 0;
        } else if (each.op === 'refund' && took.length > 0) {
          const wanted = Array.from(
            { length: each.n },
            (_x, i) => took[(each.which + i) % took.length]!,
          );
          const requests = wanted.map((w) => ({ ...w, subject: 'a', cost: 1, terms: undefined }));
          const all = { keys, dueUs: null, shadow: false, fallback: FALLBACK, nowUs: now };
          const answers = (await refund(redis, { ...all, refunds: requests }))!;
          for (const [i, w] of wanted.entries()) {
            if (answers[i] !== 'refunded') continue;
            expect(w.back).toBe(false);
            w.back = true;
            log.push('  gave back 1');
            for (const j of own.keys()) own[j]! += 1;
            for (const j of total.keys()) total[j]! += 1;
          }
        } else if (each.op === 'say') {
          const { epoch: e, revision } = (await storedParams(redis, keys))!;
          const kind = each.kind as SubjectRule['kind'] | 'clear';
          const limit = kind === 'limit';
          const untilMs = each.forMs === null ? -1 : Math.ceil(now / 1000) + each.forMs;
          const rule =
            kind === 'clear'
              ? null
              : {
                  kind,
                  untilMs,
                  rate: limit ? each.rate : null,
                  capacity: limit ? each.capacity : null,
                };
          const reply = await overrideSubject(redis, {
            ...{ keys, subject: 'a', nowUs: now, expected: { epoch: e, revision } },
            override: rule && { ...rule, subject: 'a', by: 't', why: '', revision: revision + 1 },
            entry: await testEntry(redis, keys, e, revision + 1, 'said'),
          });
          if (reply.status === 'ok') said = rule;
        } else if (each.op === 'outcome') {
          const reply = await countOutcome(redis, {
            ...{ keys, subject: 'a', name: each.name, id: `${log.length}`, nowUs: now },
          });
          if (reply.status === 'counted') {
            inARow = reply.inARow;
            heardUs = now;
          }
        } else if (each.op === 'change') {
          const more =
            'subjectTerms' in each.change
              ? {
                  subjectRules: (each.change.subjectTerms !== '' || said !== null ? 1 : 0) as 0 | 1,
                }
              : {};
          const reply = await changeParams(
            redis,
            keys,
            { ...each.change, ...more },
            { nowUs: now },
          );
          // A rate for subjects without a capacity is no change.
          if (reply.status !== 'ok') expect(reply.reason).toBe('invalid');
        } else if (each.op === 'back') {
          now -= each.us;
          // What had been over by then may hold again, and a floor that lies ahead is ignored: one capacity, once.
          const { capacity, bound, params } = await numbers(now);
          const most = Math.max(capacity, params.subjectCapacity, 30);
          for (const i of own.keys()) own[i]! += bound ? most : 0;
          for (const i of total.keys()) total[i]! += params.capacity;
        } else if (each.op === 'lose') {
          const last = (await storedParams(redis, keys))!;
          await redis.del(keys.params);
          epoch += 1;
          const rules1 = { subjectRules: 1 as const, subjectTerms: TERMS };
          await seedParams(
            redis,
            keys,
            { ...start, ...rules1 },
            { nowUs: now, epoch, revision: 1 },
          );
          expect(last.epoch).toBeLessThan(epoch);
          // What the lost clock had is not known: a bucket without a key counts as full once more.
          own.length = 0;
          total.length = 0;
        }
        await remember();
        await open();
      }
    }),
    { numRuns: Number(process.env.RUNS ?? 60) },
  );
}, 900_000);
