/** The window scripts equal their models, batch or one by one, and hold their bounds in any run of takes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { TakeRequest } from '../../src/redis/calls.js';
import { T0, useRedis } from '../lua/fixture.js';
import {
  counterModel,
  fixedModel,
  logModel,
  type Took,
  type WindowModel,
} from '../lua/window-models.js';
import { seedParams } from '../support/seed-params.js';

const fixture = useRedis();
const WINDOW_MS = 6_000;
const W = WINDOW_MS * 1000;

const ALGORITHMS: [AlgorithmTerms, (limit: number) => WindowModel][] = [
  [{ algorithm: 'sliding-log', windowMs: WINDOW_MS, cells: 0 }, (limit) => logModel(limit, W)],
  [
    { algorithm: 'sliding-counter', windowMs: WINDOW_MS, cells: 6 },
    (limit) => counterModel(limit, W, 6),
  ],
  [
    { algorithm: 'sliding-counter', windowMs: WINDOW_MS, cells: 1 },
    (limit) => counterModel(limit, W, 1),
  ],
  [{ algorithm: 'fixed-window', windowMs: WINDOW_MS, cells: 0 }, (limit) => fixedModel(limit, W)],
];

const step = fc.record({
  afterUs: fc.oneof(
    fc.integer({ min: 0, max: 2_000_000 }),
    fc.constantFrom(0, 1, W - 1, W, W + 1, W / 6, 1_000_000),
  ),
  takes: fc.array(
    fc.record({
      subject: fc.constantFrom(null, 'a', 'b'),
      cost: fc.constantFrom(1, 1, 1, 2, 0.5, 0.000001, 0),
    }),
    { minLength: 1, maxLength: 6 },
  ),
});
/** 12 to 90 tokens a window in all, 3 to 12 for a subject. */
const numbers = fc.record({
  rate: fc.constantFrom(2, 5, 15),
  subjectRate: fc.constantFrom(-1, 0.5, 2),
});

describe.each(ALGORITHMS)('%j', (terms, make) => {
  test('C16 C23: equals its model; what a denial says is when it passes, and no sooner', async () => {
    await fc.assert(
      fc.asyncProperty(
        numbers,
        fc.array(step, { minLength: 1, maxLength: 14 }),
        async (n, steps) => {
          const limiter = fixture.limiter();
          const params = { ...n, subjectCapacity: 1, capacity: 1 };
          await seedParams(fixture.redis, limiter.keys, params, { nowUs: T0 });
          const micros = (rate: number) => Math.round((rate * W) / 1e6) * 1e6;
          const total = make(micros(n.rate));
          const own = new Map(['a', 'b'].map((name) => [name, make(micros(n.subjectRate))]));
          let nowUs = T0;
          for (const { afterUs, takes } of steps) {
            nowUs += afterUs;
            const reply = await limiter.call(takes, nowUs, { terms });
            for (const [i, { subject, cost }] of takes.entries()) {
              const answer = reply.answers[i]!;
              const models = [total];
              if (subject !== null && n.subjectRate >= 0) models.push(own.get(subject)!);
              const need = Math.round(cost * 1e6);
              const fits = models.every((each) => each.used(nowUs) + need <= each.limit);
              expect(answer.allowed).toBe(fits);
              if (fits) for (const each of models) if (need > 0) each.take(need, nowUs);
              if (!fits) {
                const times = models.map((each) => each.fitsAtUs(need, nowUs));
                const at = Math.max(...times.map((us) => us ?? Number.POSITIVE_INFINITY));
                expect(answer.retryAfterMs).toBe(Math.max(1, Math.ceil((at - nowUs) / 1000)));
              }
              const left = Math.min(...models.map((each) => each.limit - each.used(nowUs)));
              expect(answer.remaining).toBe(Math.floor(left / 1e6));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('I5: while the clock is set back no more than the limit passes (fixed window: two)', async () => {
    const hop = fc.record({
      byUs: fc.oneof(fc.integer({ min: 0, max: W / 2 }), fc.integer({ min: -20 * W, max: -1 })),
      count: fc.integer({ min: 1, max: 20 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(hop, { minLength: 1, maxLength: 12 }), async (hops) => {
        const limiter = fixture.limiter();
        const fallback = {
          rate: 2,
          capacity: 1,
          inFlightMax: 0,
          subjectRate: -1,
          subjectCapacity: 0,
        };
        const one: Partial<TakeRequest> = { cost: 1 };
        let nowUs = T0;
        let realUs = T0;
        const took: Took[] = [];
        for (const { byUs, count } of hops) {
          nowUs += byUs;
          // While the clock jumps back no time passes: what was taken must still count.
          realUs += Math.max(0, byUs);
          const reply = await limiter.call(Array(count).fill(one), nowUs, { terms, fallback });
          for (const answer of reply.answers)
            if (answer.allowed) took.push({ atUs: realUs, micros: 1 });
          const span = took.filter((each) => each.atUs > realUs - W).length;
          expect(span).toBeLessThanOrEqual(terms.algorithm === 'fixed-window' ? 24 : 12);
        }
      }),
      { numRuns: 60 },
    );
  });
});
