/** Fair shares in Redis against a model: any takes of any subjects at any times; batches, and what may never be said. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairModel } from '../lua/fair-model.js';
import { T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const fixture = useRedis();
const FAIR = { mode: 'recommend', subjectRules: 1, subjectTerms: 'fair=1' } as const;

const one = fc.record({
  subject: fc.constantFrom('a', 'a', 'a', 'b', 'c', 'd', null),
  cost: fc.oneof(fc.constantFrom(1, 1, 1, 2, 0.5), fc.integer({ min: 1, max: 30 })),
  priority: fc.constant('default' as const),
});
const numbers = fc.record({
  rate: fc.constantFrom(1, 5, 10, 12.5),
  capacity: fc.integer({ min: 2, max: 25 }),
});
/** Mostly gaps that the rate refills a little in, some long enough to end what began. */
const gap = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 400_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 8_000_000 }) },
);
const story = fc.array(fc.tuple(gap, fc.array(one, { minLength: 1, maxLength: 10 })), {
  minLength: 1,
  maxLength: 12,
});

test('any takes of any subjects at any times: the script answers what the model answers', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(numbers, story, async ({ rate, capacity }, steps) => {
      const made = fixture.limiter();
      await seedParams(fixture.redis, made.keys, { ...FAIR, rate, capacity }, { nowUs: T0 });
      const model = new FairModel(rate, capacity, T0);
      let nowUs = T0;
      for (const [us, takes] of steps) {
        nowUs += us;
        const reply = await made.call(takes, nowUs, { rules: true });
        for (const [i, take] of takes.entries()) {
          const expected = model.take(take, nowUs);
          if (expected.margin < 1e-5) return; // on the edge both are right
          expect(reply.answers[i]!.reason).toBe(expected.reason);
          seen.add(expected.reason);
        }
      }
    }),
    { numRuns: 150 },
  );
  expect([...seen].sort()).toEqual(['cost_exceeds_capacity', 'fair_share', 'ok', 'rate']);
});

test('I5: fairness only ever denies: what the bucket would not admit, it does not either', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, story, async ({ rate, capacity }, steps) => {
      const made = fixture.limiter();
      await seedParams(fixture.redis, made.keys, { ...FAIR, rate, capacity }, { nowUs: T0 });
      let nowUs = T0;
      let room = capacity;
      for (const [us, takes] of steps) {
        nowUs += us;
        room = Math.min(capacity, room + (rate * us) / 1e6);
        const { answers } = await made.call(takes, nowUs, { rules: true });
        for (const [i, { allowed, reason, retryAfterMs }] of answers.entries()) {
          if (allowed) room -= takes[i]!.cost;
          else if (reason === 'fair_share') {
            expect(takes[i]!.subject).not.toBeNull();
            expect(room).toBeLessThan(capacity - 1e-6);
            expect(retryAfterMs).toBeGreaterThanOrEqual(1);
          }
          expect(room).toBeGreaterThanOrEqual(-1e-5);
        }
      }
    }),
    { numRuns: 150 },
  );
});

/** When a refused one could pass is an estimate by how many owe: a call of its own may have let one go already. */
function decided(answer: unknown): unknown {
  const { retryAfterMs, ...rest } = answer as { reason: string; retryAfterMs: number };
  return rest.reason === 'fair_share' ? rest : { ...rest, retryAfterMs };
}

test('a batch answers what its takes answer one by one, and leaves the same debts', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, story, async ({ rate, capacity }, steps) => {
      const all: { answers: unknown[]; debts: Map<string, number> }[] = [];
      for (const batched of [true, false]) {
        const made = fixture.limiter();
        await seedParams(fixture.redis, made.keys, { ...FAIR, rate, capacity }, { nowUs: T0 });
        let nowUs = T0;
        const answers: unknown[] = [];
        for (const [us, takes] of steps) {
          nowUs += us;
          const calls = batched ? [takes] : takes.map((take) => [take]);
          for (const call of calls) {
            answers.push(...(await made.call(call, nowUs, { rules: true })).answers);
          }
        }
        const owed = made.keys.owed(false);
        const scores = await fixture.redis.zrange(owed, '0', '-1', 'WITHSCORES');
        all.push({ answers, debts: debtsOf(scores) });
      }
      expect(all[0]!.answers.map(decided)).toEqual(all[1]!.answers.map(decided));
      for (const name of new Set(all.flatMap(({ debts }) => [...debts.keys()]))) {
        const [one, other] = all.map(({ debts }) => debts.get(name) ?? 0);
        expect(Math.abs(one! - other!), name).toBeLessThan(1e-4);
      }
    }),
    { numRuns: 50 },
  );
});

/** What each owes; what has been paid off may or may not have been removed yet. */
function debtsOf(scores: readonly string[]): Map<string, number> {
  const all = new Map<string, number>();
  for (let i = 0; i < scores.length; i += 2) all.set(scores[i]!, Number(scores[i + 1]));
  const paid = -1 - (all.get('!u') ?? -1);
  return new Map(
    [...all]
      .filter(([, mark]) => mark >= 0)
      .map(([name, mark]) => [name, Math.max(0, mark - paid)]),
  );
}

test('whatever numbers change meanwhile, no debt is above what the bucket lacks, and a full bucket owes nothing', async () => {
  const changes = fc.array(
    fc.tuple(gap, fc.constantFrom(1, 3, 10, 40), fc.integer({ min: 2, max: 40 })),
    {
      minLength: 1,
      maxLength: 5,
    },
  );
  await fc.assert(
    fc.asyncProperty(numbers, changes, async ({ rate, capacity }, list) => {
      const made = fixture.limiter();
      const { keys } = made;
      await seedParams(fixture.redis, keys, { ...FAIR, rate, capacity }, { nowUs: T0 });
      let nowUs = T0;
      for (const [us, toRate, toCapacity] of list) {
        const many = Array.from({ length: 60 }, (_, i) => ({ subject: i % 3 ? 'a' : `s${i % 7}` }));
        await made.call(many, nowUs, { rules: true });
        nowUs += us;
        await changeTo(keys, { rate: toRate, capacity: toCapacity }, nowUs);
        const { answers } = await made.call([{ subject: 'new' }, ...many], nowUs, { rules: true });
        const lowest = Math.min(...answers.map(({ remaining }) => remaining));
        expect(lowest).toBeGreaterThanOrEqual(0);
      }
      nowUs += 300e6;
      const { answers } = await made.call([{ subject: 'a' }], nowUs, { rules: true });
      expect(answers[0]!.allowed).toBe(true);
    }),
    { numRuns: 40 },
  );
});

async function changeTo(
  keys: Parameters<typeof changeParams>[1],
  change: { rate: number; capacity: number },
  nowUs: number,
) {
  expect(await changeParams(fixture.redis, keys, change, { nowUs })).toMatchObject({
    status: 'ok',
  });
}
