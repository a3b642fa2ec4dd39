import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRedisTime } from '../../src/enforce/redis-time.js';

test('unknown until a reply, and again after the connection was lost', () => {
  const time = createRedisTime();
  expect(time.latestAt(10)).toBeNull();
  time.learn(5_000_000, 1, 2);
  expect(time.latestAt(10)).not.toBeNull();
  time.forget();
  expect(time.latestAt(10)).toBeNull();
  expect(time.nowMs(10)).toBeNull();
});

test('a charge allowed up to a deadline never happens after it, whatever the delays', () => {
  const exchange = fc.record({
    gapMs: fc.double({ min: 0, max: 5000, noNaN: true }),
    thereMs: fc.double({ min: 0, max: 200, noNaN: true }),
    backMs: fc.double({ min: 0, max: 200, noNaN: true }),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: -1e12, max: 1e12 }),
      fc.double({ min: -1e-4, max: 1e-4, noNaN: true }),
      fc.array(exchange, { minLength: 1, maxLength: 20 }),
      (offsetUs, drift, exchanges) => {
        const redisUs = (monotonicMs: number) => offsetUs + monotonicMs * 1000 * (1 + drift);
        const time = createRedisTime();
        let nowMs = 0;
        for (const { gapMs, thereMs, backMs } of exchanges) {
          nowMs += gapMs;
          const sentMs = nowMs;
          const readUs = Math.floor(redisUs(sentMs + thereMs));
          nowMs += thereMs + backMs;
          time.learn(readUs, sentMs, nowMs);
          const deadlineMs = nowMs + 50;
          const latest = time.latestAt(deadlineMs)!;
          // 1 µs for Redis's whole microseconds.
          expect(latest).toBeLessThanOrEqual(redisUs(deadlineMs) + 1);
        }
      },
    ),
  );
});

test('a quick reply narrows what a slow one left open, and a slow one does not widen it again', () => {
  const time = createRedisTime();
  time.learn(1_000_000_000, 0, 40);
  const loose = time.latestAt(100)!;
  time.learn(1_000_050_000, 50, 50.2);
  const tight = time.latestAt(100)!;
  expect(tight).toBeGreaterThan(loose);
  time.learn(1_000_080_000, 60, 100);
  expect(time.latestAt(150)! - 50_000).toBeGreaterThan(tight - 100);
});

test('C02: a clock that was set back 23 h replaces what was known with the first reply', () => {
  const time = createRedisTime();
  time.learn(82_800_000_000_000, 0, 1);
  time.learn(82_800_000_000_000 - 82_800_000_000, 10, 11);
  expect(time.latestAt(50)!).toBeLessThanOrEqual(82_800_000_000_000 - 82_800_000_000 + 40_000);
});
