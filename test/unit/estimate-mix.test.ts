/** What is asked for may change, and requests may still run: neither is mistaken for what it is not. */
import { describe, expect, test } from 'vitest';
import type { TelemetryReading } from '../../src/sense/readings.js';
import {
  createDecideState,
  createEstimateState,
  type Decision,
  type Estimates,
  estimate,
  type Policy,
  turn,
} from '../../src/testing.js';
import { binsOf, policyOf, readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';

const at = (second: number) => 1_000_000_000 + second * 1000;
const free = { guards: { deadBand: 0, cooldown: 0 } } as const;
const many = (n: number, ms: number) => Array<number>(n).fill(ms);

/** Runs seconds through estimate, law and guards; what is decided is in force at the next. */
function run(policy: Policy, seconds: readonly Partial<TelemetryReading>[]) {
  let seen = createEstimateState();
  let state = createDecideState(policy);
  let target = { rate: 100, capacity: 50, inFlightMax: 24 };
  return seconds.map((parts, i): { estimates: Estimates; decision: Decision } => {
    const telemetry = telemetryOf(at(i), { inFlight: 20, ...parts });
    const next = estimate(policy, seen, readingsOf(at(i), telemetry), 1000);
    seen = next.state;
    const sample = { ...sampleOf({ inForce: { target } }), ...next.estimates, nowMs: at(i) };
    const turned = turn(policy, state, sample);
    state = turned.state;
    const { rate, capacity, inFlightMax, change } = turned.decision;
    if (change) target = { rate, capacity, inFlightMax };
    return { estimates: next.estimates, decision: turned.decision };
  });
}
const cuts = (ticks: ReturnType<typeof run>) =>
  ticks.filter(({ decision }) => /cut/.test(decision.reason)).length;

describe('a change of the mix of routes', () => {
  /** `ping` takes 50 ms and `report` 400, each × `slower`; the limits bind when they deny. */
  const second = (pings: number, reports: number, slower = 1, denied = 0) => {
    const times = [...many(pings, 50 * slower), ...many(reports, 400 * slower)];
    return {
      ok: times.length,
      latency: binsOf(times),
      latencySumMs: times.reduce((sum, ms) => sum + ms, 0),
      denied: { in_flight: denied },
      routes: {
        GET__ping: { n: pings, sumMs: pings * 50 * slower },
        GET__report: { n: reports, sumMs: reports * 400 * slower },
      },
    };
  };
  const usual = Array(20).fill(second(97, 3));
  const LAWS = ['adaptive', 'aimd', 'pi'] as const;

  test.each(LAWS)('%s: more slow routes, each at its usual time: neither cut nor raise', (law) => {
    const policy = policyOf({ ...free, control: { law } });
    const ticks = run(policy, [...usual, ...Array(30).fill(second(60, 40, 1, 20))]);
    const shifted = ticks.slice(22);
    expect(shifted.at(-1)!.estimates.signals.p95!.value).toBeGreaterThan(380);
    expect(shifted.some(({ decision }) => decision.change)).toBe(false);
    expect(shifted.at(-1)!.decision.why).toBe(
      'p95 400 ms beside the 250 ms setpoint, but slower routes are asked for, each at 1 × its usual time: hold',
    );
    const { mix } = shifted.at(-1)!.estimates.traffic;
    expect(mix!.shift).toBeGreaterThan(2);
    expect(mix!.slowdown).toBeCloseTo(1, 2);
    // The same seconds of a service that names no routes are read as congestion.
    const unnamed = [...usual, ...Array(30).fill(second(60, 40, 1, 20))].map(
      ({ routes: _, ...rest }) => rest,
    );
    expect(cuts(run(policy, unnamed))).toBeGreaterThan(0);
  });

  test.each(LAWS)('%s: slow routes that have become slower themselves are cut for', (law) => {
    const policy = policyOf({ ...free, control: { law } });
    const ticks = run(policy, [...usual, ...Array(10).fill(second(60, 40, 3, 20))]);
    expect(cuts(ticks)).toBeGreaterThan(0);
    expect(ticks.at(-1)!.estimates.traffic.mix!.slowdown).toBeGreaterThan(2);
  });

  test.each(LAWS)('%s: the usual mix, all of it slower, is congestion in full', (law) => {
    const policy = policyOf({ ...free, control: { law } });
    const slow = Array(10).fill(second(97, 3, 6, 20));
    const with_ = run(policy, [...usual, ...slow]);
    const without = run(
      policy,
      [...usual, ...slow].map(({ routes: _, ...rest }) => rest),
    );
    expect(cuts(with_)).toBeGreaterThan(0);
    const numbers = (ticks: ReturnType<typeof run>) =>
      ticks.map(({ decision }) => [decision.rate, decision.inFlightMax]);
    expect(numbers(with_)).toEqual(numbers(without));
  });

  test('I10: nothing is learnt while a limit denies or the objective is missed', () => {
    const policy = policyOf({ ...free, mode: 'recommend' });
    const limited = run(policy, Array(100).fill(second(60, 40, 0.5, 20)));
    expect(limited.at(-1)!.estimates.traffic.mix).toBeUndefined();
    const missed = run(policy, Array(100).fill(second(60, 40, 1)));
    expect(missed.at(-1)!.estimates.traffic.mix).toBeUndefined();
  });

  test('a new route that nobody knows yet is no excuse: as without routes', () => {
    const news = () => {
      const { routes, ...rest } = second(60, 40, 1, 20);
      return { ...rest, routes: { GET__ping: routes.GET__ping, GET__new: routes.GET__report } };
    };
    const ticks = run(policyOf(free), [...usual, ...Array(12).fill(news())]);
    expect(cuts(ticks)).toBeGreaterThan(0);
  });

  test('counts and times that are none are left out', () => {
    const bad = {
      ...second(97, 3),
      routes: { a: { n: Number.NaN, sumMs: 1 }, b: { n: 5, sumMs: -1 } },
    };
    const ticks = run(policyOf(free), [...usual, bad, ...usual]);
    for (const { estimates } of ticks)
      expect(JSON.stringify(estimates)).not.toContain('null,"slow');
    expect(ticks.at(-1)!.estimates.traffic.mix!.slowdown).toBeCloseTo(1, 6);
  });
});

describe('requests that are still running', () => {
  const fast = { ok: 100, admitted: 100, ms: 60, inFlight: 6, oldestMs: 80 };
  /** Nothing is answered any more: what is admitted stays. */
  const hung = (seconds: number, more: Partial<TelemetryReading> = {}) =>
    Array.from({ length: seconds }, (_, i) => ({
      ...{ ok: 0, admitted: i === 0 ? 18 : 0, offered: 100, denied: { in_flight: 82 } },
      ...{ inFlight: 24, oldestMs: (i + 1) * 1000, ...more },
    }));
  const secondsOf = (parts: readonly Partial<TelemetryReading>[]) =>
    parts.map((each) => each as Partial<TelemetryReading>);
  const p95 = (ticks: ReturnType<typeof run>, i: number) => ticks.at(i)!.estimates.signals.p95!;

  test('a service that hangs shows before it answers: the estimate rises with their age, and it is cut', () => {
    const ticks = run(policyOf(free), secondsOf([...Array(10).fill(fast), ...hung(6)]));
    expect(p95(ticks, 9).value).toBeLessThan(70);
    expect(p95(ticks, 12)).toMatchObject({ fresh: true });
    expect(p95(ticks, 12).value).toBeGreaterThan(1_000);
    expect(p95(ticks, 15).value).toBeGreaterThan(4_000);
    expect(cuts(ticks)).toBeGreaterThan(0);
  });

  test('the mean counts them too', () => {
    const policy = policyOf({
      ...free,
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 'mean' },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
    });
    const ticks = run(policy, secondsOf([...Array(10).fill(fast), ...hung(6)]));
    expect(p95(ticks, 15).value).toBeGreaterThan(3_000);
  });

  test('they are judged beside what was answered meanwhile: one in a hundred is no p95', () => {
    const few = Array.from({ length: 8 }, (_, i) => ({
      ...fast,
      inFlight: 10,
      oldestMs: i * 1000,
    }));
    const ticks = run(policyOf(free), secondsOf([...Array(10).fill(fast), ...few]));
    expect(p95(ticks, -1).value).toBeLessThan(70);
    expect(cuts(ticks)).toBe(0);
  });

  test('streams that are always there are no slow answers', () => {
    const streams = { ...fast, inFlight: 506, oldestMs: 3_600_000 };
    const ticks = run(policyOf(free), secondsOf(Array(90).fill(streams)));
    expect(p95(ticks, -1).value).toBeLessThan(70);
    expect(cuts(ticks)).toBe(0);
  });

  test('processes that report no ends, and ages that nobody told, prove nothing', () => {
    for (const untold of [{ reporting: 0 }, { oldestMs: 0 }, { oldestMs: Number.NaN }]) {
      const ticks = run(policyOf(free), secondsOf([...Array(10).fill(fast), ...hung(6, untold)]));
      expect(p95(ticks, -1)).toMatchObject({ fresh: false, reason: 'no_traffic' });
      expect(cuts(ticks)).toBe(0);
    }
  });

  test('a queue that answers slowly but surely is not counted twice', () => {
    // 100 in and 100 out a second, each after 3 s: 300 under way, the answers say so themselves.
    const slow = { ok: 100, admitted: 100, ms: 3000, inFlight: 300, oldestMs: 3000 };
    const ticks = run(policyOf(free), secondsOf(Array(20).fill(slow)));
    expect(p95(ticks, -1).value).toBeLessThan(3_100);
  });
});
