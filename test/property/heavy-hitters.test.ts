/** The sketch of top subjects: its bound holds for any stream, here and in Redis, which agree number by number. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addHeavy,
  createHeavy,
  type Heavy,
  heaviest,
  mergeHeavy,
  trimHeavy,
} from '../../src/enforce/heavy-hitters.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { runScript } from '../../src/redis/run-script.js';
import { topScript } from '../../src/redis/scripts.gen.js';
import { useRedis } from '../lua/fixture.js';

const fixture = useRedis();
const keys = limiterKeys({ name: 'top' });

/** Weights of which sums are exact, so that equal means equal. */
const item = fc.record({
  key: fc.oneof(
    fc.integer({ min: 0, max: 5 }).map((i) => `hot${i}`),
    fc.integer({ min: 0, max: 200 }).map((i) => `cold${i}`),
  ),
  weight: fc.integer({ min: 1, max: 64 }).map((eighths) => eighths / 8),
});
const stream = fc.array(item, { maxLength: 300 });
const most = fc.integer({ min: 1, max: 40 });

function truth(streams: readonly { key: string; weight: number }[][]): Heavy {
  const exact = createHeavy();
  for (const { key, weight } of streams.flat()) addHeavy(exact, key, weight);
  return exact;
}

function expectBound(sketch: Heavy, exact: Heavy, keep: number, trims: number): void {
  expect(sketch.total).toBe(exact.total);
  expect(sketch.error).toBeLessThanOrEqual((trims * exact.total) / (keep + 1));
  for (const [key, weight] of exact.counts) {
    const count = sketch.counts.get(key) ?? 0;
    expect(count).toBeLessThanOrEqual(weight);
    expect(count + sketch.error).toBeGreaterThanOrEqual(weight);
  }
  for (const key of sketch.counts.keys()) expect(exact.counts.has(key)).toBe(true);
}

test('one process: at most `most` keys, none too high, none too low by more than the error, error ≤ total ÷ (most + 1)', () => {
  fc.assert(
    fc.property(fc.array(stream, { maxLength: 6 }), most, (seconds, keep) => {
      const sketch = createHeavy();
      for (const second of seconds) {
        for (const { key, weight } of second) addHeavy(sketch, key, weight);
        trimHeavy(sketch, keep);
        expect(sketch.counts.size).toBeLessThanOrEqual(keep);
      }
      expectBound(sketch, truth(seconds), keep, 1);
    }),
    { numRuns: 500 },
  );
});

test('whoever has more than the error is always among the heaviest', () => {
  fc.assert(
    fc.property(stream, most, (all, keep) => {
      const sketch = createHeavy();
      for (const { key, weight } of all) addHeavy(sketch, key, weight);
      trimHeavy(sketch, keep);
      const shown = new Set(heaviest(sketch, keep).map(([key]) => key));
      for (const [key, weight] of truth([all]).counts) {
        if (weight > sketch.total / (keep + 1)) expect(shown).toContain(key);
      }
    }),
    { numRuns: 500 },
  );
});

test('many processes through Redis: the script and the model agree, and the bound of both cuts holds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(stream, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 20 }),
      async (processes, keep, slack) => {
        const grown = 4 + keep + slack;
        const key = keys.top(1);
        await fixture.redis.del(key);
        const model = createHeavy();
        let fields = 0;
        for (const each of processes) {
          const sketch = createHeavy();
          for (const { key: name, weight } of each) addHeavy(sketch, name, weight);
          trimHeavy(sketch, keep);
          const pairs = [...sketch.counts].flatMap(([name, count]) => [`t:${name}`, count]);
          await runScript(fixture.redis, {
            script: topScript,
            keys: [key],
            args: [60_000, keep, grown, 't', sketch.total, 'te', sketch.error, ...pairs],
          });
          mergeHeavy(model, sketch);
          fields = 2 + model.counts.size;
          if (fields > grown) trimHeavy(model, keep);
        }
        const { t, te, ...subjects } = await fixture.redis.hgetall(key);
        const kept = Object.entries(subjects).map(([name, n]) => [name.slice(2), Number(n)]);
        expect(Object.fromEntries(kept)).toEqual(Object.fromEntries(model.counts));
        expect([Number(t), Number(te)]).toEqual([model.total, model.error]);
        expect(Object.keys(subjects).length).toBeLessThanOrEqual(grown);
        expectBound(model, truth(processes), keep, 2);
        expect(await fixture.redis.pttl(key)).toBeGreaterThan(0);
      },
    ),
    { numRuns: 150 },
  );
});

test('a call that is no call is refused and adds nothing', async () => {
  const { redis } = fixture;
  const key = keys.top(2);
  for (const args of [
    ['0', '128', '512', 'n', '1'],
    ['1000', '0', '512', 'n', '1'],
    ['1000', '128', '512', 'n'],
    ['1000', '128', '512', 'n', '-1'],
    ['1000', '128', '512', 'n', 'nan'],
    ['1000', '128', '512', 'n', '1e999'],
    ['1000', '128', '512', 'n', '1', 'r', 'x'],
  ]) {
    await expect(
      runScript(redis, { script: topScript, keys: [key], args: args as never }),
      args.join(' '),
    ).rejects.toThrow('FLYBALL_E_CALL_INVALID');
  }
  expect(await redis.exists(key)).toBe(0);
});
