/** The demo's pure pieces: phases, arrivals, figures. Stage: tests. */
import { describe, expect, test } from 'vitest';
import { poissonArrivals, seededRandom } from '../../src/demo/arrivals.js';
import { breakerTimes } from '../../src/demo/breaker-times.js';
import { emptyHistogram, merge, quantile, record } from '../../src/demo/histogram.js';
import type { PlayRecord, PlaySecond } from '../../src/demo/play.js';
import { measureKnee } from '../../src/demo/ramp.js';
import { PHASES, phaseAt, storyOf } from '../../src/demo/story.js';
import { settledP95Ms, summarise } from '../../src/demo/summary.js';
import { exitFor } from '../../src/faults.js';

describe('story', () => {
  test.each([12, 20, 25, 40, 74, 75, 90, 300])('%i seconds are exactly filled, in order', (n) => {
    const phases = storyOf(n, 100);
    expect(phases.map((p) => p.name)).toEqual(PHASES);
    let from = 0;
    for (const phase of phases) {
      expect(phase.from).toBe(from);
      expect(Number.isInteger(phase.seconds)).toBe(true);
      expect(phase.seconds).toBeGreaterThanOrEqual(1);
      from += phase.seconds;
    }
    expect(from).toBe(n);
  });

  test('from 75 s on the database is slow for 20 s and the upstream fails for 10 s', () => {
    for (const n of [75, 120, 600]) {
      const phases = storyOf(n, 100);
      expect(phases.find((p) => p.databaseSlowdown === 2)?.seconds).toBe(20);
      expect(phases.find((p) => p.upstreamFails)?.seconds).toBe(10);
    }
  });

  test('calm is 40 % of the knee, all between is ten times the calm', () => {
    expect(storyOf(75, 110).map((p) => Math.round(p.rate))).toEqual([44, 440, 440, 440, 44]);
  });

  test('a second after the end belongs to the last phase', () => {
    expect(phaseAt(storyOf(75, 100), 90).name).toBe('calmAgain');
  });
});

describe('arrivals', () => {
  const steps = [
    { seconds: 20, rate: 40 },
    { seconds: 20, rate: 1000 },
    { seconds: 20, rate: 0 },
  ];

  test('one seed gives the same times, another seed others', () => {
    const times = (seed: number) => [...poissonArrivals(steps, seededRandom(seed))];
    expect(times(7)).toEqual(times(7));
    expect(times(8)).not.toEqual(times(7));
  });

  test('they rise, follow the rate of each step within 5 sigma, and stop at rate 0', () => {
    const times = [...poissonArrivals(steps, seededRandom(3))];
    expect([...times].sort((a, b) => a - b)).toEqual(times);
    const calm = times.filter((t) => t < 20_000).length;
    const surge = times.filter((t) => t >= 20_000 && t < 40_000).length;
    expect(Math.abs(calm - 800)).toBeLessThan(5 * Math.sqrt(800));
    expect(Math.abs(surge - 20_000)).toBeLessThan(5 * Math.sqrt(20_000));
    expect(times.filter((t) => t >= 40_000)).toEqual([]);
  });
});

test('merged histograms count, sum and rank as one', () => {
  const parts = [1, 2, 3].map((n) => {
    const histogram = emptyHistogram();
    for (let i = 1; i <= 100; i++) record(histogram, i * n);
    return histogram;
  });
  const all = merge(parts);
  expect(all.count).toBe(300);
  expect(all.sumMs).toBe(5050 * 6);
  expect(quantile(all, 1)! / 300).toBeCloseTo(1, 1);
  expect(quantile(emptyHistogram(), 0.95)).toBeNull();
});

function play(edit: (second: PlaySecond) => void): PlayRecord {
  const phases = storyOf(75, 100);
  const seconds = Array.from({ length: 77 }, (_, second): PlaySecond => {
    const each: PlaySecond = {
      second,
      phase: phaseAt(phases, second).name,
      offered: 10,
      attempts: 12,
      ok: 9,
      good: 8,
      refused: 2,
      failed: 1,
      timedOut: 0,
      broken: 0,
      open: 0,
      lagMs: 0,
      latency: emptyHistogram(),
      waits: [2, 4],
      decisions: emptyHistogram(),
      looks: [],
      atRateZero: 0,
    };
    edit(each);
    return each;
  });
  return { guard: 'flyball', startedAtMs: 1_000_000, phases, seconds };
}

describe('summary', () => {
  test('waits count over the disturbances, in all, and over its own phase, by phase', () => {
    const summary = summarise(
      play((s) => {
        if (s.phase === 'calm') s.waits = [1000];
      }),
    );
    expect(summary.dbWaitsMean).toBe(3);
    expect(summary.dbWaitsMax).toBe(4);
    expect(summary.phases.calm.dbWaitsMax).toBe(1000);
  });

  test('answers after the last arrival count, but add no time', () => {
    const { good, goodputPerSecond } = summarise(play(() => {}));
    expect(good).toBe(77 * 8);
    expect(goodputPerSecond).toBeCloseTo((77 * 8) / 75, 1);
  });

  test('nothing measured is null, not zero', () => {
    const { p95Ms, errorRatio5xx, decisionP99Ms } = summarise(play(() => {}));
    expect([p95Ms, errorRatio5xx, decisionP99Ms]).toEqual([null, null, null]);
  });

  test('the settled p95 leaves out the first 5 s of each disturbance and all calm', () => {
    const record95 = play((s) => {
      const phase = storyOf(75, 100).find((p) => p.name === s.phase)!;
      const early = s.phase.startsWith('calm') || s.second < phase.from + 5;
      record(s.latency, early ? 1900 : 100);
    });
    expect(settledP95Ms(record95)).toBeCloseTo(100, -1);
  });
});

describe('breaker times', () => {
  const looks = (rateAt: (ms: number) => number) =>
    play((s) => {
      s.looks = [0, 250, 500, 750].map((ms) => ({
        state: 'closed',
        inFlightMax: 20,
        revision: 1,
        atMs: 1_000_000 + s.second * 1000 + ms,
        rate: rateAt(s.second * 1000 + ms),
      }));
    });
  const failedAt = storyOf(75, 100).find((p) => p.upstreamFails)!.from * 1000;

  test('zero and lasting return are measured from failure and return', () => {
    const rate = (ms: number) => {
      if (ms < failedAt + 2000) return 100;
      if (ms < failedAt + 13_000) return (ms - failedAt) % 2000 === 0 ? 2 : 0;
      return ms < failedAt + 16_500 ? 50 : 90;
    };
    expect(breakerTimes(looks(rate))).toEqual({
      zeroAfterMs: 2250,
      backAfterMs: 6500,
      rateBefore: 100,
    });
  });

  test('a rate that never came back is null', () => {
    const times = breakerTimes(looks((ms) => (ms < failedAt + 2000 ? 100 : 0)));
    expect(times.backAfterMs).toBeNull();
  });
});

describe('the knee of a machine that is too busy', () => {
  const measured = async (...fullSpeeds: number[]) => {
    const said: string[] = [];
    let runs = 0;
    const measure = async () => {
      const fullSpeed = fullSpeeds[runs++]!;
      return { fullSpeed, halfSpeed: fullSpeed / 2 };
    };
    const outcome = await measureKnee(measure, (line) => said.push(line)).catch(
      (error: Error & { code: string }) => `${error.code} ${error.message}`,
    );
    return { outcome, runs, said: said.length };
  };

  test('a plausible one is measured once', async () => {
    const outcome = { fullSpeed: 97, halfSpeed: 48.5 };
    expect(await measured(97)).toEqual({ outcome, runs: 1, said: 0 });
  });

  test('a low one is measured again, and the better one counts', async () => {
    const outcome = { fullSpeed: 70, halfSpeed: 35 };
    expect(await measured(0, 70)).toEqual({ outcome, runs: 2, said: 1 });
    expect((await measured(50, 30)).outcome).toEqual({ fullSpeed: 50, halfSpeed: 25 });
  });

  test.each([
    [0, 0],
    [3, 19],
  ])('%i and then %i ends the demo with a sentence, and no play', async (first, second) => {
    const { outcome } = await measured(first, second);
    expect(outcome).toMatch(
      new RegExp(`^FLYBALL_E_DEMO_KNEE .*${second} good answers/s.*too busy.*Try again`),
    );
    expect(exitFor('FLYBALL_E_DEMO_KNEE')).toBeGreaterThan(0);
  });
});
