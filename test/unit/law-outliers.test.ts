/** One absurd reading through the whole pipeline: it moves nothing; said twice it is believed. */
import { describe, expect, test } from 'vitest';
import type { TelemetryReading } from '../../src/sense/readings.js';
import {
  createDecideState,
  createEstimateState,
  type Decision,
  estimate,
  type Policy,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';

const START_MS = 1_700_000_000_000;

/** Seconds of telemetry → the changes, and the samples they were decided on. */
function play(policy: Policy, seconds: readonly Partial<TelemetryReading & { ms: number }>[]) {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const cap = policy.limiter.inFlightMax ?? 0;
  let target = { rate: 100, capacity: 50, inFlightMax: cap };
  const changes: { second: number; decision: Decision }[] = [];
  const samples: Sample[] = [];
  seconds.forEach((parts, second) => {
    const toMs = START_MS + second * 1000;
    const next = estimate(
      policy,
      estimates,
      readingsOf(toMs + 100, telemetryOf(toMs, parts)),
      1000,
    );
    estimates = next.state;
    const base = sampleOf({ nowMs: toMs + 100, inForce: { target, ...target } });
    const sample = { ...base, ...next.estimates };
    samples.push(sample);
    const turned = turn(policy, state, sample);
    state = turned.state;
    if (!turned.decision.change) return;
    const { rate, capacity, inFlightMax } = turned.decision;
    target = { rate, capacity, inFlightMax };
    changes.push({ second, decision: turned.decision });
  });
  return { changes, samples, target };
}

const usual = { ok: 90, ms: 100, inFlight: 9 };
const calm = (seconds: number) => Array.from({ length: seconds }, () => usual);
const times = (factor: number) => ({
  ok: 90 * factor,
  ms: 100,
  inFlight: 9 * factor,
  denied: { rate: 5 * factor, in_flight: 5 * factor },
});

const FORMS: [string, Policy][] = [
  ['the cap form', policyOf()],
  [
    'the rate-only form',
    policyOf({
      limiter: { name: 'gateway', rate: 100, capacity: 50, completions: 'none' },
      bounds: { rate: { min: 20, max: 400 } },
    }),
  ],
  ['aimd', policyOf({ control: { law: 'aimd' } })],
  ['pi', policyOf({ control: { law: 'pi' } })],
  ['step', policyOf({ control: { law: 'step' } })],
];

describe.each(FORMS)('C61: %s', (_name, policy) => {
  const quiet = play(policy, calm(60)).changes;

  test('everything × 40 in one second moves nothing, then or later', () => {
    const { changes, samples } = play(policy, [...calm(30), times(40), ...calm(29)]);
    expect(samples[30]!.traffic.fresh).toBe(false);
    expect(samples[31]!.traffic.fresh).toBe(true);
    expect(changes).toEqual(quiet);
  });

  test('a gauge summed twice over moves nothing', () => {
    const { changes } = play(policy, [...calm(30), { ...usual, inFlight: 360 }, ...calm(29)]);
    expect(changes).toEqual(quiet);
  });

  test('times that sum up to 40 × in one second raise nothing', () => {
    const off = { ...usual, latencySumMs: 90 * 100 * 40 };
    const { changes } = play(policy, [...calm(30), off, ...calm(29)]);
    expect(changes).toEqual(quiet);
  });

  test('a counter that began anew (almost nothing for a second) moves nothing', () => {
    const { changes } = play(policy, [...calm(30), { ok: 3, ms: 100, inFlight: 9 }, ...calm(29)]);
    expect(changes).toEqual(quiet);
  });

  test('every other second × 40, as of workers scraped in turn, moves nothing', () => {
    const turns = Array.from({ length: 30 }, (_, i) => (i % 2 ? times(40) : usual));
    expect(play(policy, [...calm(30), ...turns]).changes).toEqual(play(policy, calm(60)).changes);
  });

  test('a jump that lasts is believed at the second reading', () => {
    const { samples } = play(policy, [...calm(30), times(10), times(10), times(10)]);
    expect(samples.slice(30).map((sample) => sample.traffic.fresh)).toEqual([false, true, true]);
    expect(samples[31]!.traffic.okRate).toBe(900);
  });

  test('a surge whose gauge agrees with what came and went is believed at once', () => {
    const surge = { ok: 400, ms: 400, offered: 4000, admitted: 4000, inFlight: 3609 };
    const { samples } = play(policy, [...calm(30), surge]);
    expect(samples[30]!.traffic).toMatchObject({ fresh: true, admittedRate: 4000 });
    const alone = play(policy, [...calm(30), { ...surge, inFlight: 9 }]);
    expect(alone.samples[30]!.traffic.fresh).toBe(false);
  });

  test('failures trip the breaker when they are said twice, and then those of both readings count', () => {
    const storm = (failed: number) => ({
      ok: 0,
      failed,
      ms: 5,
      generation: { id: 0, ok: 0, failed, codes: {} },
    });
    const once = play(policy, [...calm(30), storm(1800), ...calm(29)]);
    expect(once.changes).toEqual(quiet);
    const twice = play(policy, [...calm(30), storm(1800), storm(1700)]);
    expect(twice.changes.at(-1)).toMatchObject({
      second: 31,
      decision: { state: 'open', reason: 'breaker_trip' },
    });
    expect(twice.samples[31]!.outcomes.failed).toBe(3500);
  });
});
