/** No false trip in 24 simulated hours; and how soon a real outage opens the breaker. */
import { describe, expect, test } from 'vitest';
import { provenShare } from '../../src/decide/trips.js';
import type { Policy } from '../../src/testing.js';
import { firstTrip, playDay } from './breaker-day.js';
import { policyOf } from './fixtures.js';

const DAY_S = 86_400;

function policyAt(perSecond: number, breaker: object): Policy {
  return policyOf({
    limiter: { name: 'checkout', rate: 4 * perSecond, capacity: 4 * perSecond },
    signals: {
      errors: { source: 'telemetry', stat: 'errorRatio' },
      timeouts: { source: 'telemetry', stat: 'timeoutRatio' },
      inARow: { source: 'telemetry', stat: 'failuresInARow' },
    },
    objective: {},
    control: { law: 'fixed' },
    bounds: { rate: { min: 1, max: 4 * perSecond } },
    breaker: { on: 'errors', above: '50%', ...breaker },
  });
}

describe.each([5, 5_000])('at %i requests a second', (perSecond) => {
  test('24 hours of 1 % random failures trip none of its levels', () => {
    // A fifth of the answers, or ten in a row, are far tighter levels than the usual half.
    const or = [
      { on: 'timeouts', above: '20%' },
      { on: 'inARow', above: 10 },
    ];
    const policy = policyAt(perSecond, { above: '20%', or });
    const day = { perSecond, failing: () => 0.01, seed: 7 };
    expect(firstTrip(policy, { ...day, seconds: DAY_S })).toBeNull();
    // An hour of it through all of the pipeline: nothing else stirs either.
    expect(playDay(policy, { ...day, seconds: 3_600 })).toEqual([]);
  });
});

/** Seconds from the outage to the trip, over many random days. */
function timesToTrip(perSecond: number, share: number, days: number): number[] {
  const policy = policyAt(perSecond, {});
  const begin = 60;
  return Array.from({ length: days }, (_, seed) => {
    // It begins somewhere within the second before `begin`.
    const first = ((seed * 0.618) % 1) * share;
    const failing = (second: number) => (second < begin ? 0.01 : second === begin ? first : share);
    const trip = firstTrip(policy, { perSecond, seconds: begin + 60, failing, seed });
    return trip === null ? Number.POSITIVE_INFINITY : trip - begin + 1;
  }).sort((a, b) => a - b);
}
const middle = (times: number[]) => times[Math.floor(times.length / 2)]!;

test('100 % failures at 5,000 requests a second: open within 3 s', () => {
  const day = { perSecond: 5_000, seconds: 70, seed: 3 };
  const changes = playDay(policyAt(5_000, {}), { ...day, failing: (s) => (s <= 60 ? 0.01 : 1) });
  expect(changes[0]).toMatchObject({ atMs: 62_000, decision: { reason: 'breaker_trip' } });
  expect(timesToTrip(5_000, 1, 40).at(-1)).toBeLessThanOrEqual(3);
});

test('100 % failures at 5 requests a second: open as soon as ten answers prove it', () => {
  const times = timesToTrip(5, 1, 300);
  expect(middle(times)).toBeLessThanOrEqual(4);
  expect(times.at(-1)).toBeLessThanOrEqual(8);
});

test('80 % failures at 5 requests a second: no 2 s prove it, but 10 s do', () => {
  const times = timesToTrip(5, 0.8, 300);
  expect(middle(times)).toBeLessThanOrEqual(10);
  expect(times.at(-1)).toBeLessThan(40);
});

test('what is proven grows with the answers, and is never more than what was seen', () => {
  expect(provenShare(10, 10)).toBeCloseTo(0.526, 3);
  expect(provenShare(1, 1)).toBeCloseTo(0.1, 3);
  expect(provenShare(0, 0)).toBe(0);
  for (let n = 1; n < 400; n++) {
    for (let bad = 0; bad <= n; bad += Math.ceil(n / 7)) {
      const proven = provenShare(bad, n);
      expect(proven).toBeGreaterThanOrEqual(0);
      expect(proven).toBeLessThanOrEqual(bad / n);
      expect(provenShare(10 * bad, 10 * n)).toBeGreaterThanOrEqual(proven);
    }
  }
});
