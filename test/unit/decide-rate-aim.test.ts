/** The rate-only form of `adaptive`: what mean response time tells it of a quantile near the setpoint, and its way back. */
import { describe, expect, test } from 'vitest';
import {
  createDecideState,
  type DecideState,
  type Policy,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

const policy = policyOf({
  limiter: { name: 'plain', rate: 100, capacity: 50, completions: 'none' },
  bounds: { rate: { min: 5, max: 400 } },
  guards: { deadBand: 0, changesPerMinute: 1000 },
});

/** Requests a second that are asked for and may be let in. */
const LOAD = 100;

/** What the service does with the rate in force: its p95 and mean, and what it answers a second. */
interface Told {
  p95: number;
  meanMs: number;
  failed?: number;
  underWay?: number;
  intervalMs?: number;
}

function sampleAt(rate: number, told: Told): Sample {
  const { failed = 0, intervalMs = 1000 } = told;
  const admittedRate = Math.min(rate, LOAD);
  const okRate = admittedRate * (1 - failed);
  const inFlight = (admittedRate * told.meanMs) / 1000;
  return sampleOf({
    dtMs: intervalMs,
    signals: { p95: { value: told.p95, fresh: true, ageMs: 300, count: 400 } },
    traffic: {
      ...{ intervalMs, ageMs: 300, offeredRate: 1.5 * rate, admittedRate, okRate },
      ...{ answerRate: admittedRate, answers: Math.round((admittedRate * intervalMs) / 1000) },
      ...{ errorRatio: failed, meanMs: told.meanMs, inFlight },
      inFlightNow: Math.round(told.underWay ?? inFlight),
      deniedByRate: admittedRate < rate ? 0 : 0.5 * rate,
    },
    inForce: { target: { rate, capacity: 50, inFlightMax: 0 } },
  });
}

/** Plays so many samples; what is in force follows each decision. */
function play(
  from: { policy: Policy; state: DecideState; rate: number },
  samples: number,
  service: (rate: number, second: number) => Told,
) {
  let { state, rate } = from;
  const decisions = [];
  for (let second = 1; second <= samples; second++) {
    const turned = turn(from.policy, state, sampleAt(rate, service(rate, second)));
    state = turned.state;
    decisions.push(turned.decision);
    if (turned.decision.change) rate = turned.decision.rate;
  }
  return { policy: from.policy, state, rate, decisions };
}

const fresh = (rate = 100) => ({ policy, state: createDecideState(policy), rate });

describe('a p95 of 0.8 of the setpoint of 250 ms', () => {
  // Seen at a tenth of the rate: 60 ms is what a request takes when nothing waits.
  const known = play(fresh(10), 60, () => ({ p95: 120, meanMs: 60 }));
  const at100 = { ...known, rate: 100 };

  test('is the service’s own where the mean is near what it is at leisure: nothing is cut', () => {
    const { rate, decisions } = play(at100, 30, () => ({ p95: 200, meanMs: 66 }));
    expect(decisions.filter(({ reason }) => /cut/.test(reason))).toEqual([]);
    expect(rate).toBeGreaterThanOrEqual(100);
  });

  test('is a queue where the mean is twice that: it is cut', () => {
    const { decisions } = play(at100, 10, () => ({ p95: 200, meanMs: 130 }));
    expect(decisions.some(({ reason }) => /cut/.test(reason))).toBe(true);
  });

  test('is cut for when it is old, whatever the mean: older data need a larger margin', () => {
    const sample = sampleAt(100, { p95: 200, meanMs: 66 });
    sample.traffic.ageMs = 12_000;
    const old = turn(policy, known.state, sample).decision;
    expect(old.terms.over).toBeCloseTo(Math.log(0.8 / 0.7), 2);
  });
});

describe('response time at leisure', () => {
  const leisureMs = ({ decisions }: ReturnType<typeof play>) => decisions.at(-1)!.terms.leisureMs!;

  test('is less than the mean while a service may be near its knee, and hardly moves by queues', () => {
    const full = play(fresh(), 20, () => ({ p95: 150, meanMs: 80 }));
    expect(leisureMs(full)).toBeCloseTo(60, 0);
    const queue = play(full, 20, () => ({ p95: 9000, meanMs: 8000 }));
    expect(leisureMs(queue)).toBeLessThan(61);
    const idle = play({ ...full, rate: 8 }, 60, () => ({ p95: 90, meanMs: 45 }));
    expect(leisureMs(idle)).toBeLessThan(50);
  });

  test('is what the service takes now once cuts have proved futile', () => {
    const quick = play(fresh(10), 60, () => ({ p95: 80, meanMs: 40 }));
    const slow = play({ ...quick, rate: 100 }, 120, () => ({ p95: 230, meanMs: 100 }));
    const futile = slow.decisions.findIndex(({ terms }) => terms.futile === 1);
    expect(futile).toBeGreaterThan(0);
    expect(slow.decisions[futile]!.terms.leisureMs).toBe(slow.decisions[futile]!.terms.meanMs);
  });
});

describe('the way back to what was carried', () => {
  // At leisure it takes 60 ms, and carries 100 requests a second as well.
  const idle = play(fresh(10), 60, () => ({ p95: 120, meanMs: 60 }));
  const well = play({ ...idle, rate: 100 }, 60, () => ({ p95: 130, meanMs: 65 }));
  /** Half a minute at a sixth of the speed. */
  const dip = play(well, 30, (rate) => ({
    ...{ p95: 120 * Math.max(1, rate / 8), meanMs: 360 },
    underWay: Math.max(0, (rate - 16) * 3),
  }));
  test('in great strides once nothing waits, and it says so', () => {
    expect(dip.rate).toBeLessThan(30);
    const back = play(dip, 30, () => ({ p95: 120, meanMs: 60 }));
    expect(back.rate).toBeGreaterThan(80);
    expect(back.decisions.some(({ sentence }) => /back to the .*\/s carried/.test(sentence))).toBe(
      true,
    );
  });

  test('step by step while the service is still slow', () => {
    const { rate } = play(dip, 30, () => ({ p95: 120, meanMs: 120 }));
    expect(rate).toBeLessThan(2 * dip.rate);
  });

  test('the shorter its strides the later samples come', () => {
    const one = (intervalMs: number) =>
      play(dip, 40, () => ({ p95: 120, meanMs: 60, intervalMs })).decisions.find(
        ({ terms }) => (terms.strides ?? 0) > 0,
      )!.terms.strides!;
    expect(one(5000)).toBeLessThan(0.25 * one(1000));
  });

  test('when it ends in a queue, so much is not carried any more', () => {
    const carried = (played: ReturnType<typeof play>) => played.decisions.at(-1)!.terms.verified!;
    const failed = play(dip, 60, (rate) => ({
      ...{ p95: 120, meanMs: 60 },
      underWay: rate > 50 ? 200 : 3,
    }));
    expect(carried(dip)).toBeGreaterThan(90);
    expect(carried(failed)).toBeLessThan(75);
  });
});

test('answers that mostly fail are no queue, however long they take: the breaker’s business', () => {
  const well = play(fresh(), 20, () => ({ p95: 120, meanMs: 60 }));
  const failing = { p95: 120, meanMs: 500, underWay: 160 };
  const queue = play(well, 1, () => failing);
  expect(queue.decisions[0]!.reason).toBe('law_emergency_cut');
  const failed = play(well, 1, () => ({ ...failing, failed: 0.98 }));
  expect(failed.decisions[0]!.rate).toBe(well.rate);
});
