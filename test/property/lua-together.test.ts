/** Sets of takes against single takes and a model: all or none, in order, whatever the limiters of the set are in. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TakeRequest } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { together } from '../../src/redis/together.js';
import { anyNumbers, anyTake } from '../lua/any-take.js';
import { ClockModel, type ModelAnswer, type ModelParams } from '../lua/clock-model.js';
import { S, T0, useRedis } from '../lua/fixture.js';
import { changeParams, SEED, seedParams } from '../support/seed-params.js';

const fixture = useRedis();
let groups = 0;

test.each(['managed', 'missing', 'tripped', 'off', 'shadow', 'back'] as const)(
  'a set of one ≡ a take: %s',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(
        anyNumbers,
        fc.array(
          fc.tuple(
            fc.integer({ min: kind === 'back' ? -3_000_000 : 0, max: 3_000_000 }),
            fc.array(anyTake, { minLength: 1, maxLength: 12 }),
          ),
          { minLength: 1, maxLength: 4 },
        ),
        async (from, batches) => {
          const [one, other] = [fixture.limiter(), fixture.limiter()];
          const mode = kind === 'off' || kind === 'shadow' ? kind : 'auto';
          const shadow = kind === 'shadow';
          const fallback = { ...from, inFlightMax: 0 };
          if (kind !== 'missing') {
            for (const { keys } of [one, other]) {
              await seedParams(fixture.redis, keys, { ...from, mode }, { nowUs: T0 });
              const trip = { state: 'open', openForMs: 2000 } as const;
              if (kind === 'tripped') await changeParams(fixture.redis, keys, trip, { nowUs: T0 });
            }
          }
          let now = T0;
          for (const [waitUs, takes] of batches) {
            now += waitUs;
            const reply = await together(fixture.redis, {
              limiters: [{ keys: one.keys, fallback, shadow }],
              sets: takes.map((each) => [each]),
              chargeByUs: 'any',
              nowUs: now,
            });
            const single = await other.call(takes, now, { fallback, shadow });
            expect(reply.sets).toEqual(single.answers.map((each) => [each]));
            expect(reply.inForce).toEqual([single.inForce]);
          }
          for (const name of ['bucket', 'shadowBucket'] as const) {
            const [first, second] = [one.keys[name], other.keys[name]];
            expect(await fixture.redis.get(first)).toBe(await fixture.redis.get(second));
            expect(await fixture.redis.pttl(first)).toBeGreaterThan(
              (await fixture.redis.pttl(second)) - 500,
            );
          }
          for (const subject of ['a', 'É']) {
            expect(await fixture.redis.get(one.keys.subjectBucket(subject))).toBe(
              await fixture.redis.get(other.keys.subjectBucket(subject)),
            );
          }
        },
      ),
      { numRuns: 25 },
    );
  },
);

const MODEL = {
  ...(SEED as unknown as ModelParams),
  validUntil: T0 / 1000 + 3_600_000,
} satisfies ModelParams;
const member = fc.record({
  mode: fc.constantFrom('auto' as const, 'auto' as const, 'shadow' as const, 'off' as const),
  rate: fc.constantFrom(1, 5, 20),
  capacity: fc.constantFrom(2, 5, 40),
  subjectRate: fc.constantFrom(-1, 1, 4),
  subjectCapacity: fc.constantFrom(2, 8),
});
const asked = fc.record({
  subject: fc.constantFrom(null, 'a', 'b'),
  cost: fc.constantFrom(1, 1, 2, 0.5, 7),
});

test('sets of takes ≡ the model: all admit and all are charged, or none is', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(member, { minLength: 1, maxLength: 4 }),
      fc.array(
        fc.tuple(
          fc.integer({ min: 0, max: 900 }),
          fc.array(fc.array(asked, { minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
        ),
        { minLength: 1, maxLength: 8 },
      ),
      async (members, calls) => {
        groups += 1;
        const models = members.map((each) => new ClockModel({ ...MODEL, ...each }, T0));
        const limiters = [];
        for (const [i, each] of members.entries()) {
          const keys = limiterKeys({ name: `m${i}`, group: `g${groups}` });
          await seedParams(fixture.redis, keys, each, { nowUs: T0 });
          limiters.push({
            keys,
            shadow: each.mode === 'shadow',
            fallback: { ...each, inFlightMax: 0 },
          });
        }
        let now = T0;
        for (const [waitMs, wishes] of calls) {
          now += waitMs * 1000;
          const sets = wishes.map((set) =>
            members.map((_, i) => ({ ...set[i]!, priority: 'default' as const })),
          );
          const reply = await together(fixture.redis, {
            limiters,
            sets,
            chargeByUs: 'any',
            nowUs: now,
          });
          for (const [s, set] of sets.entries()) {
            expect(reply.sets[s]).toMatchObject(expected(models, members, set, now));
          }
        }
      },
    ),
    { numRuns: 60 },
  );
});

/** The words of the contract: ask each, charge all or none; off asks nothing, shadow denies nobody. */
function expected(
  models: ClockModel[],
  members: { mode: 'auto' | 'shadow' | 'off' }[],
  set: TakeRequest[],
  now: number,
) {
  const before = models.map((model) => new Map(model.marks));
  const answers: (ModelAnswer | null)[] = set.map(({ subject, cost }, i) =>
    members[i]!.mode === 'off' ? null : models[i]!.take(subject, cost, now),
  );
  const all = answers.every(
    (each, i) => !each || each.reason === 'ok' || members[i]!.mode === 'shadow',
  );
  return answers.map((answer, i) => {
    if (answer === null) return { reason: 'off', allowed: true };
    if (!all) {
      models[i]!.marks.clear();
      for (const [key, mark] of before[i]!) models[i]!.marks.set(key, mark);
    }
    const left = all || answer.reason !== 'ok' ? answer.left : answer.left + set[i]!.cost;
    return { reason: answer.reason, remaining: Math.max(0, Math.floor(left + 1e-6)) };
  });
}

test('late and the wrong buckets charge nothing; a call that cannot be read is an error', async () => {
  groups += 1;
  const limiters = ['a', 'b'].map((name) => ({
    keys: limiterKeys({ name, group: `g${groups}` }),
    shadow: false,
    fallback: { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 },
  }));
  const [a, b] = limiters;
  await seedParams(fixture.redis, a!.keys, {}, { nowUs: T0 });
  await seedParams(fixture.redis, b!.keys, { mode: 'shadow' }, { nowUs: T0 });
  const take = { subject: null, cost: 1, priority: 'default' as const };
  const call = { limiters, sets: [[take, take]], nowUs: T0 + S };
  const late = await together(fixture.redis, { ...call, chargeByUs: T0 });
  expect(late).toMatchObject({ status: 'late', sets: [] });
  const wrong = await together(fixture.redis, { ...call, chargeByUs: 'any' });
  expect(wrong).toMatchObject({ status: 'mode', sets: [] });
  expect(wrong.inForce.map(({ mode }) => mode)).toEqual(['auto', 'shadow']);
  expect(await fixture.redis.exists(a!.keys.bucket, b!.keys.bucket, b!.keys.shadowBucket)).toBe(0);
  const short = together(fixture.redis, { ...call, sets: [[take]], chargeByUs: 'any' });
  await expect(short).rejects.toThrow('FLYBALL_E_CALL_INVALID');
});
