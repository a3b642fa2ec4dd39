/** A process's blocks of one bucket: each token is used once within its block's life, or goes back; none is made. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BLOCK_LIFE_MS, BlockPool, LEAST_BLOCK } from '../../src/enforce/block-pool.js';

const step = fc.record({
  waitMs: fc.integer({ min: 0, max: 180 }),
  what: fc.constantFrom('take', 'take', 'take', 'receive', 'sweep', 'end', 'return'),
  tokens: fc.integer({ min: 0, max: 40 }),
  cost: fc.constantFrom(1, 1, 1, 2, 7),
});

test('whatever comes: what was drawn is used, held or to go back, and none is used past its life', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pool = new BlockPool(null);
      let nowMs = 1_000;
      let received = 0;
      let used = 0;
      let returned = 0;
      let newestUntilMs = 0;
      for (const { waitMs, what, tokens, cost } of steps) {
        nowMs += waitMs;
        if (what === 'take') {
          pool.use(cost, nowMs);
          if (pool.holds(cost, nowMs)) {
            pool.tokens -= cost;
            used += cost;
            expect(nowMs).toBeLessThan(newestUntilMs);
            expect(nowMs).toBeLessThan(pool.untilMs);
          }
        } else if (what === 'receive' && pool.nextTokens === 0) {
          // As its owner does: only asked for while there is no next one.
          newestUntilMs = nowMs + BLOCK_LIFE_MS;
          pool.receive(tokens, 100, newestUntilMs);
          received += tokens;
        } else if (what === 'sweep') {
          pool.sweep(nowMs);
          if (nowMs >= newestUntilMs) expect(pool.tokens + pool.nextTokens).toBe(0);
        } else if (what === 'end') pool.end();
        else if (what === 'return') {
          returned += pool.back;
          pool.back = 0;
        }
        expect(pool.tokens).toBeGreaterThanOrEqual(0);
        expect(used + returned + pool.back + pool.tokens + pool.nextTokens).toBe(received);
      }
    }),
  );
});

test('a block is what was used lately, within the part that is given, and nothing where that is little', () => {
  const pool = new BlockPool('hot');
  let nowMs = 0;
  for (let i = 0; i < 400; i++) {
    nowMs += 1;
    pool.use(2, nowMs);
  }
  // 2 a ms, in 100 ms.
  expect(pool.wanted(10_000, nowMs)).toBeGreaterThanOrEqual(180);
  expect(pool.wanted(10_000, nowMs)).toBeLessThanOrEqual(200);
  expect(pool.wanted(50, nowMs)).toBe(50);
  expect(pool.wanted(LEAST_BLOCK - 1, nowMs)).toBe(0);
  expect(pool.sweep(nowMs)).toBe(false);
  // Use that is over is forgotten.
  expect(pool.wanted(10_000, nowMs + 1_000)).toBe(0);
  expect(pool.sweep(nowMs + 1_000)).toBe(true);
});
