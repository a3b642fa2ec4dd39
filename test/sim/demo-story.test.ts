/** The demo's story in virtual time: what the autopilot must keep, and what it may cost in changes. */
import { describe, expect, test } from 'vitest';
import { demoPolicy, KNEE, phaseFigures, playStory, STORY } from './demo-story.js';

describe.each([1, 2])('the story on seed %i', (seed) => {
  const { seconds, changes } = playStory(demoPolicy(), seed);

  test('goodput stays at 85 % of the knee of the phase, p95 of admitted below 500 ms after 5 s', () => {
    const surge = phaseFigures(seconds, 1);
    const slow = phaseFigures(seconds, 2);
    expect(surge.goodPerSecond).toBeGreaterThan(0.85 * KNEE);
    expect(slow.goodPerSecond).toBeGreaterThan((0.85 * KNEE) / 2);
    for (const phase of [0, 1, 2, 3, 4]) {
      expect(phaseFigures(seconds, phase, 5).p95Ms).toBeLessThan(500);
    }
  });

  test('the queue for connections stays short', () => {
    expect(phaseFigures(seconds, 1, 5).poolWaiting).toBeLessThan(8);
    expect(phaseFigures(seconds, 2, 5).poolWaiting).toBeLessThan(8);
  });

  test('the breaker opens within 5 s of the failure and good answers are back 15 s after its end', () => {
    const failsAt = 46_000;
    const open = changes.find(({ decision }) => decision.state === 'open');
    expect(open?.atMs).toBeGreaterThan(failsAt);
    expect(open?.atMs).toBeLessThanOrEqual(failsAt + 5_000);
    const back = seconds.slice(56 + 15, 75);
    const good = back.reduce((sum, second) => sum + second.good, 0) / back.length;
    expect(good).toBeGreaterThan(0.8 * 0.4 * KNEE);
  });

  test('at most 40 changes, none of them while all is calm', () => {
    expect(changes.length).toBeLessThanOrEqual(40);
    expect(changes.filter(({ atMs }) => atMs < 11_000)).toEqual([]);
    for (const { decision } of changes) expect(decision.sentence).toMatch(/\d/);
  });
});

describe.each(['250ms', '350ms'])('a database at half speed under an objective of %s', (below) => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])('seed %i: it keeps 85 percent of what it can do', (seed) => {
    const objective = { p95: { below }, errors: { below: '1%' }, dbWait: { below: 5 } };
    const { seconds } = playStory(demoPolicy({ objective }), seed, STORY.slice(0, 3));
    expect(phaseFigures(seconds, 1).goodPerSecond).toBeGreaterThan(0.85 * KNEE);
    expect(phaseFigures(seconds, 2).goodPerSecond).toBeGreaterThan((0.85 * KNEE) / 2);
  });
});

test('without the autopilot the same load collapses the service', () => {
  const phases = [
    { seconds: 4, rate: 0.4 * KNEE },
    { seconds: 12, rate: 10 * KNEE },
  ];
  const bare = playStory(null, 1, phases).seconds;
  const kept = playStory(demoPolicy(), 1, phases).seconds;
  const good = (of: typeof bare) => of.reduce((sum, second) => sum + second.good, 0);
  expect(good(kept)).toBeGreaterThan(3 * good(bare));
});
