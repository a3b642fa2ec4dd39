import fc from 'fast-check';
import { expect, test } from 'vitest';
import { skewFinding } from '../../src/cli/doctor-redis.js';
import { manualClock } from '../../src/clock.js';
import { apart, measureSkew, skewOf, skewVerdict } from '../../src/sense/skew.js';

test('the round trip bounds what is said: the truth lies within, whatever the way there and back took', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -1e9, max: 1e9 }),
      fc.array(fc.tuple(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 5000 })), {
        minLength: 1,
        maxLength: 6,
      }),
      (truth, trips) => {
        let nowMs = 1_700_000_000_000;
        const looks = trips.map(([there, back]) => {
          const sentMs = nowMs;
          const theirsMs = sentMs + there + truth;
          nowMs = sentMs + there + back;
          return { theirsMs, sentMs, receivedMs: nowMs };
        });
        const { skewMs, boundMs } = skewOf(looks)!;
        expect(Math.abs(skewMs - truth)).toBeLessThanOrEqual(boundMs + 1e-3);
        const tightest = Math.min(...trips.map(([there, back]) => (there + back) / 2));
        expect(boundMs).toBeLessThanOrEqual(tightest + 1e-3);
      },
    ),
  );
});

test('a clock of whole seconds is that much less sure', () => {
  const look = { theirsMs: 10_000, sentMs: 10_900, receivedMs: 10_910, resolutionMs: 1000 };
  const { skewMs, boundMs } = skewOf([look])!;
  // The truth may be 0: 10.9 s is told as 10 s.
  expect(Math.abs(skewMs)).toBeLessThanOrEqual(boundMs);
});

test('looks that disagree (a clock was set in between): the later ones count', () => {
  const at = (theirsMs: number, sentMs: number) => ({ theirsMs, sentMs, receivedMs: sentMs + 2 });
  const { skewMs } = skewOf([at(1001, 1000), at(1011, 1010), at(501_021, 1020)])!;
  expect(skewMs).toBeCloseTo(500_000, 0);
  expect(skewOf([])).toBeNull();
  expect(skewOf([{ theirsMs: Number.NaN, sentMs: 0, receivedMs: 1 }])).toBeNull();
});

test('a second warns, five minutes hold; what is not sure does neither', () => {
  const verdict = (skewMs: number, boundMs = 1) => skewVerdict({ skewMs, boundMs });
  expect([0, 999, -999].map((ms) => verdict(ms))).toEqual(['ok', 'ok', 'ok']);
  expect([1002, -1002, 299_000].map((ms) => verdict(ms))).toEqual(['warn', 'warn', 'warn']);
  expect([300_002, -300_002].map((ms) => verdict(ms))).toEqual(['hold', 'hold']);
  expect(verdict(1500, 600)).toBe('ok');
  expect(verdict(301_000, 2000)).toBe('warn');
});

test('a measurement asks a few times, and does not read our own wall clock in the middle of one', async () => {
  const clock = manualClock(1_000_000);
  let asked = 0;
  const skew = await measureSkew(clock, async () => {
    asked += 1;
    clock.advance(10);
    const theirsMs = clock.nowMs() + 5000;
    clock.advance(10);
    return theirsMs;
  });
  expect(asked).toBe(3);
  expect(skew).toEqual({ skewMs: 5000, boundMs: 10 });
  await expect(measureSkew(clock, async () => Number.NaN)).rejects.toThrow('told no time');
});

test('a skew reads as a person says it', () => {
  expect(apart(360_000, "this daemon's")).toBe("6 min ahead of this daemon's");
  expect(apart(-1500, "this machine's")).toBe("1.5 s behind this machine's");
  expect(apart(3 * 3_600_000, 'ours')).toBe('3 h ahead of ours');
  expect(apart(12, 'ours')).toBe('12 ms ahead of ours');
});

test('doctor says the same as run: a warning from a second on, a failure where run would refuse', () => {
  const status = (skewMs: number) => skewFinding({ skewMs, boundMs: 1 });
  expect(status(20)).toEqual({
    check: 'clock',
    status: 'ok',
    message: "Redis's clock is 20 ms ahead of this machine's",
  });
  expect(status(-40_000)).toMatchObject({ status: 'warn', mend: expect.stringContaining('NTP') });
  expect(status(400_000)).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('flyball run refuses to start here'),
  });
});
