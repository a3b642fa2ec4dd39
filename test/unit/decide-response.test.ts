/** How throughput answered to the cap: what the fit says, and what it forgets when the service changes. */
import { describe, expect, test } from 'vitest';
import { addPoint, agePoints, type Points, responseSlope } from '../../src/decide/response.js';

/** Operating points [N, X], a second apart, of 100 answers each unless told. */
function seen(pairs: readonly (readonly [number, number])[], answers = 100): number[] {
  let points: Points = [];
  for (const [n, x] of pairs) points = addPoint(agePoints(points, 1000), n, x, answers);
  return [...points];
}

describe('slope', () => {
  test('nothing seen, or one cap alone: half', () => {
    expect(responseSlope([], 20)).toBe(0.5);
    expect(responseSlope(seen([[20, 100]]), 20)).toBeCloseTo(0.5, 5);
    // The fewer answers stand behind it, the less it says.
    const steep = seen([10, 14, 20].map((n) => [n, 5 * n]));
    expect(responseSlope(steep, 20, 1000)).toBeGreaterThan(responseSlope(steep, 20, 50));
    expect(responseSlope(steep, 20, 50)).toBeGreaterThan(0.5);
  });

  test('below the knee near 1, past it near 0, past collapse below 0', () => {
    const caps = [16, 18, 20, 22, 25];
    expect(responseSlope(seen(caps.map((n) => [n, 5 * n])), 20)).toBeGreaterThan(0.8);
    expect(Math.abs(responseSlope(seen(caps.map((n) => [n, 100])), 20))).toBeLessThan(0.2);
    expect(responseSlope(seen(caps.map((n) => [n, 2000 / n])), 20)).toBeLessThan(-0.5);
  });
});

describe('a service that changed', () => {
  test('half the throughput at a smaller cap is no response to the cap: what was before is dropped', () => {
    const points = seen([
      [25, 100],
      [21, 50],
      [21, 50],
      [18, 50],
      [15, 49],
    ]);
    expect(points.length).toBe(9);
    expect(responseSlope(points, 18)).toBeLessThan(0.3);
  });

  test('half the throughput at the same cap, too', () => {
    const before = seen([
      [15, 60],
      [20, 80],
      [25, 100],
    ]);
    expect(addPoint(before, 25, 50, 50)).toHaveLength(3);
    expect(addPoint(before, 25, 200, 200)).toHaveLength(3);
    // 20 % less is within what the next point may differ by.
    expect(addPoint(before, 25, 80, 80)).toHaveLength(9);
  });

  test('few answers differ by chance: nothing is dropped', () => {
    const before = seen(
      [
        [4, 8],
        [5, 9],
      ],
      9,
    );
    expect(addPoint(before, 5, 4, 4)).toHaveLength(before.length);
  });

  test('a collapse is a response, however steep', () => {
    const points = seen([
      [20, 100],
      [24, 60],
    ]);
    expect(points).toHaveLength(6);
    expect(responseSlope(points, 24, 10_000)).toBeLessThan(-1);
  });
});
