/** A batch of takes equals the same takes one by one, whatever subjects, costs, priorities and states stand in it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyNumbers, anyTake } from '../lua/any-take.js';
import { S, T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const fixture = useRedis();

test.each(['managed', 'missing', 'tripped', 'off', 'shadow'] as const)(
  'batch ≡ one by one: %s',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(
        anyNumbers,
        fc.array(
          fc.tuple(
            fc.integer({ min: 0, max: 3_000_000 }),
            fc.array(anyTake, { minLength: 1, maxLength: 30 }),
          ),
          {
            minLength: 1,
            maxLength: 4,
          },
        ),
        async (from, batches) => {
          const [whole, single] = [fixture.limiter(), fixture.limiter()];
          const mode = kind === 'off' || kind === 'shadow' ? kind : 'auto';
          const shadow = kind === 'shadow';
          if (kind !== 'missing') {
            for (const { keys } of [whole, single]) {
              await seedParams(fixture.redis, keys, { ...from, mode }, { nowUs: T0 });
              if (kind === 'tripped')
                await changeParams(
                  fixture.redis,
                  keys,
                  { state: 'open', openForMs: 2000 },
                  { nowUs: T0 },
                );
            }
          }
          let now = T0;
          const fallback = { ...from, inFlightMax: 0 };
          for (const [waitUs, takes] of batches) {
            now += waitUs;
            const together = await whole.call(takes, now, { fallback, shadow });
            const apart = [];
            for (const each of takes)
              apart.push((await single.call([each], now, { fallback, shadow })).answers[0]);
            expect(together.answers).toEqual(apart);
          }
          for (const name of ['bucket', 'shadowBucket'] as const) {
            expect(await fixture.redis.get(whole.keys[name])).toBe(
              await fixture.redis.get(single.keys[name]),
            );
          }
          const own = (limiter: typeof whole) => fixture.redis.get(limiter.keys.subjectBucket('a'));
          expect(await own(whole)).toBe(await own(single));
        },
      ),
      { numRuns: 40 },
    );
  },
);

test('512 takes in one call', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { rate: 1, capacity: 300, subjectRate: 1, subjectCapacity: 1 },
    { nowUs: T0 },
  );
  const reply = await call(
    Array.from({ length: 512 }, (_, i) => ({ subject: `u${i % 400}` })),
    T0 + S,
  );
  expect(reply.answers.filter((each) => each.allowed)).toHaveLength(300);
});
