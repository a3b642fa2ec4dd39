/** Response time at leisure: what it lets one expect, what overrules it, and what it makes of the adaptive law. */
import { describe, expect, test } from 'vitest';
import {
  expectedSlope,
  type Leisure,
  leastSlope,
  leisureOf,
  shownBy,
} from '../../src/decide/leisure.js';
import { createDecideState, type Sample, turn } from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

function seen(means: readonly number[], answers = 100, bound = false): Leisure {
  let leisure: Leisure = { meanMs: 0, leisureMs: 0 };
  for (const meanMs of means) {
    leisure = leisureOf({ ...leisure }, sampleOf({ traffic: { meanMs, answers } }), bound);
  }
  return leisure;
}
const times = (n: number, ms: number) => Array.from({ length: n }, () => ms);

describe('response time at leisure', () => {
  test('the least of late: down at once, up by the minute, under a cap that binds by ten', () => {
    expect(seen([...times(30, 100), ...times(30, 50)]).leisureMs).toBeCloseTo(50, 0);
    const free = seen([...times(30, 50), ...times(60, 100)]).leisureMs;
    const bound = seen([...times(30, 50), ...times(60, 100)], 100, true).leisureMs;
    expect(free).toBeGreaterThan(70);
    expect(bound).toBeLessThan(56);
  });

  test('one odd answer among hundreds is no mean; nothing is learnt from nothing', () => {
    const before = seen(times(30, 100));
    const odd = sampleOf({ traffic: { meanMs: 5, answers: 1 } });
    expect(leisureOf({ ...before }, odd, false).leisureMs).toBeGreaterThan(99);
    for (const traffic of [{ meanMs: null }, { fresh: false, meanMs: 5 }, { answers: 0 }]) {
      expect(leisureOf({ ...before }, sampleOf({ traffic }), false)).toEqual(before);
    }
  });

  test('nothing waits: steep; the longer the wait, the flatter; unknown: half', () => {
    const slopes = [1, 1.2, 1.5, 2, 20].map((r) =>
      expectedSlope({ meanMs: 50 * r, leisureMs: 50 }),
    );
    expect(slopes[0]).toBe(0.8);
    expect(slopes).toEqual([...slopes].sort((a, b) => b - a));
    expect(slopes[3]).toBeCloseTo(0.3, 10);
    expect(slopes[4]).toBe(-0.3);
    expect(expectedSlope({ meanMs: 0, leisureMs: 0 })).toBe(0.5);
  });

  test('near leisure the slope is at least what makes a cut near the aim futile; with a wait it is left to the points', () => {
    const least = [1, 1.1, 4 / 3, 2].map((r) => leastSlope({ meanMs: 50 * r, leisureMs: 50 }));
    expect(least[0]).toBe(0.4);
    expect(least[1]).toBe(0.4);
    expect(least[2]).toBeCloseTo(0, 10);
    expect(least[3]).toBe(-1);
    expect(leastSlope({ meanMs: 0, leisureMs: 0 })).toBeLessThan(0);
  });

  test('throughput that answers to the cap shows a service slower by itself; one that does not, nothing', () => {
    let leisure: Leisure = { meanMs: 200, leisureMs: 50 };
    for (let second = 0; second < 60; second++) leisure = shownBy(1, leisure, 1000);
    expect(leisure.leisureMs).toBeCloseTo(200, 0);
    const queue = { meanMs: 200, leisureMs: 50 };
    expect(shownBy(-0.5, queue, 1000)).toBe(queue);
  });
});

describe('the same p95 beside two means', () => {
  /** Calm at 50 ms, then p95 at 1.1 × the setpoint with that mean; demand fills the cap. */
  function capAfter(meanMs: number): number {
    const policy = policyOf();
    let state = createDecideState(policy);
    let cap = 24;
    for (let second = 1; second <= 40; second++) {
      const calm = second <= 30;
      const sample: Sample = sampleOf({
        signals: { p95: { value: calm ? 215 : 275, fresh: true, ageMs: 300, count: 400 } },
        traffic: {
          ...{ meanMs: calm ? 50 : meanMs, deniedByCap: calm ? 0 : 20 },
          ...{ inFlight: calm ? 8 : cap, inFlightNow: calm ? 8 : cap },
        },
        inForce: { target: { rate: 100, capacity: 50, inFlightMax: cap } },
      });
      const turned = turn(policy, state, sample);
      state = turned.state;
      cap = turned.decision.inFlightMax;
    }
    return cap;
  }

  test('a mean of three times that at leisure is a queue, and is cut for; the mean at leisure is not', () => {
    expect(capAfter(150)).toBeLessThan(0.75 * capAfter(50));
  });
});

describe('a quantile of few answers a second', () => {
  /** Ticks between the first two cuts at p95 = 1.3 × the setpoint of so many pooled answers, with 20 or 200 a second. */
  function secondsBetweenCuts(answerRate: number, count: number): number {
    const policy = policyOf();
    let state = createDecideState(policy);
    let cap = 24;
    const cuts: number[] = [];
    for (let second = 1; second <= 40 && cuts.length < 2; second++) {
      const sample: Sample = sampleOf({
        signals: { p95: { value: 325, fresh: true, ageMs: 300, count } },
        traffic: {
          ...{ meanMs: 200, deniedByCap: 20, inFlight: cap, inFlightNow: cap },
          ...{ answerRate, okRate: answerRate, admittedRate: answerRate, answers: answerRate },
        },
        inForce: { target: { rate: 100, capacity: 50, inFlightMax: cap } },
      });
      const turned = turn(policy, state, sample);
      state = turned.state;
      if (turned.decision.inFlightMax < cap) cuts.push(second);
      cap = turned.decision.inFlightMax;
    }
    expect(cuts).toHaveLength(2);
    return cuts[1]! - cuts[0]!;
  }

  test('the next cut waits until all the answers behind it are of after the last one, but not for ever', () => {
    const many = secondsBetweenCuts(200, 400);
    expect(secondsBetweenCuts(80, 400)).toBeGreaterThanOrEqual(5);
    expect(many).toBeLessThan(5);
    expect(secondsBetweenCuts(2, 400)).toBeLessThanOrEqual(10);
  });
});
