/** Pacing equals its model: what proceeds is spaced by the rate, never more waits than the capacity. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { T0, useRedis } from '../lua/fixture.js';
import { PaceModel } from '../lua/window-models.js';
import { seedParams } from '../support/seed-params.js';

const fixture = useRedis();
const terms = { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 } as const;

const runs = fc.record({
  rate: fc.constantFrom(0.5, 10, 100),
  capacity: fc.constantFrom(1, 5, 20),
  managed: fc.boolean(),
  steps: fc.array(
    fc.record({
      afterUs: fc.integer({ min: 0, max: 3_000_000 }),
      costs: fc.array(fc.constantFrom(1, 1, 0.5, 2), { minLength: 1, maxLength: 8 }),
    }),
    { minLength: 1, maxLength: 12 },
  ),
});

test('C05 C08: delays equal the model, and what proceeds never outruns the rate', async () => {
  await fc.assert(
    fc.asyncProperty(runs, async ({ rate, capacity, managed, steps }) => {
      const limiter = fixture.limiter();
      if (managed) await seedParams(fixture.redis, limiter.keys, { rate, capacity }, { nowUs: T0 });
      const fallback = { rate, capacity, inFlightMax: 0, subjectRate: -1, subjectCapacity: 0 };
      const model = new PaceModel(rate, capacity, T0);
      const starts: { ms: number; cost: number }[] = [];
      let nowUs = T0;
      for (const { afterUs, costs } of steps) {
        nowUs += afterUs;
        const reply = await limiter.call(
          costs.map((cost) => ({ cost })),
          nowUs,
          { terms, fallback },
        );
        for (const [i, cost] of costs.entries()) {
          const answer = reply.answers[i]!;
          const delay = cost > capacity ? null : model.take(cost, nowUs);
          expect(answer.allowed).toBe(delay !== null);
          if (delay === null) continue;
          expect(Math.abs((answer.delayMs ?? 0) - delay)).toBeLessThanOrEqual(1);
          starts.push({ ms: nowUs / 1000 + (answer.delayMs ?? 0), cost });
        }
      }
      // From the start of one to the start of any later one the rate has paid for all but the last.
      for (let first = 0; first < starts.length; first++) {
        let sum = 0;
        for (let last = first + 1; last < starts.length; last++) {
          sum += starts[last - 1]!.cost;
          const paid = ((starts[last]!.ms - starts[first]!.ms + 1.01) / 1000) * rate;
          expect(sum).toBeLessThanOrEqual(paid + 1e-5);
        }
      }
    }),
    { numRuns: 80 },
  );
});
