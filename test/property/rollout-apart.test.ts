/** C99: who is enforced is answered as if the others were not there, and they as a limiter in shadow of their own. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileRollout } from '../../src/enforce/rollout.js';
import { shadowKeys } from '../../src/enforce/rollout-shadow.js';
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const fixture = useRedis();
const apart = (keys: LimiterKeys) => shadowKeys({ keys, find: async () => keys }).keys!;

const request = fc.record({
  waitUs: fc.integer({ min: 0, max: 400_000 }),
  subject: fc.constantFrom('user:1', 'user:2', 'user:3', 'user:4', 'user:5'),
  cost: fc.constantFrom(1, 1, 1, 2, 0.5),
});
const steps = fc.array(
  fc.record({ percent: fc.integer({ min: 0, max: 100 }), open: fc.boolean() }),
  {
    minLength: 1,
    maxLength: 3,
  },
);

test.each([undefined, 'sliding-log', 'sliding-counter', 'fixed-window', 'leaky-bucket'] as const)(
  '%s',
  async (algorithm) => {
    const terms: AlgorithmTerms | undefined = algorithm && { algorithm, windowMs: 1000, cells: 6 };
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 24 }),
        steps,
        async (takes, phases) => {
          const [mixed, enforced, shadow] = [
            fixture.limiter(),
            fixture.limiter(),
            fixture.limiter(),
          ];
          const numbers = { rate: 4, capacity: 6, subjectRate: 2, subjectCapacity: 2 };
          const all = [mixed, enforced, shadow];
          for (const { keys } of all) {
            const mode = keys === shadow.keys ? 'shadow' : 'recommend';
            await seedParams(fixture.redis, keys, { ...numbers, mode }, { nowUs: T0 });
          }
          let now = T0;
          const size = Math.ceil(takes.length / phases.length);
          for (const [i, { percent, open }] of phases.entries()) {
            for (const { keys } of all) {
              const state = open ? 'open' : 'closed';
              const change = { state, openForMs: 300 } as const;
              await changeParams(fixture.redis, keys, change, { nowUs: now });
            }
            const reach = compileRollout('checkout', JSON.stringify({ percent }));
            for (const { waitUs, ...take } of takes.slice(i * size, (i + 1) * size)) {
              now += waitUs;
              if (reach?.reaches(take.subject) ?? true) {
                const { answers } = await mixed.call([take], now, { terms });
                expect(answers).toEqual((await enforced.call([take], now, { terms })).answers);
              } else {
                const more = { terms, keys: apart(mixed.keys) };
                const { status, answers } = await mixed.call([take], now, more);
                const alone = await shadow.call([take], now, { terms, shadow: true });
                expect([status, answers]).toEqual(['ok', alone.answers]);
              }
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  },
);
