/** Shed in proportion: as much as the failures are above the level, down at once, back by feeling. */
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../src/report/metrics.js';
import { reportDecision } from '../../src/report/tick-metrics.js';
import {
  createDecideState,
  type DecideState,
  type PolicyInput,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

function shedding(more: Partial<NonNullable<PolicyInput['breaker']>> = {}) {
  return policyOf({
    signals: {
      errors: { source: 'telemetry', stat: 'errorRatio' },
      system: { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' },
    },
    objective: {},
    control: { law: 'fixed' },
    breaker: { on: 'errors', above: '50%', openFor: '5s', shed: 'proportional', ...more },
  });
}

type Numbers = { state: Sample['inForce']['state']; rate: number; inFlightMax: number };
const FULL: Numbers = { state: 'closed', rate: 100, inFlightMax: 24 };

/** Seconds of `share` failures of `answers`, each under what the last one put in force. */
function play(
  seconds: readonly (readonly [answers: number, share: number])[],
  { policy = shedding(), from = FULL, inForce = {} } = {},
) {
  let state: DecideState = createDecideState(policy);
  let now = from;
  return seconds.map(([answers, share]) => {
    const failed = Math.round(answers * share);
    const ok = answers - failed;
    const sample = sampleOf({
      traffic: { okRate: ok, answers, answerRate: answers },
      outcomes: { ok, failed, matching: failed, tick: { ok, matching: failed } },
      inForce: { state: now.state, rate: now.rate, target: { ...now, capacity: 50 }, ...inForce },
    });
    const turned = turn(policy, state, sample);
    state = turned.state;
    const { decision } = turned;
    now = { state: decision.state, rate: decision.rate, inFlightMax: decision.inFlightMax };
    return decision;
  });
}
const last = <T>(list: readonly T[]): T => list[list.length - 1]!;
const steady = (n: number, share: number, answers = 400) =>
  Array.from({ length: n }, () => [answers, share] as const);

test('70 % failures above a level of 50 % shed 40 %, in one step, and say so', () => {
  const [first, second] = play(steady(2, 0.7));
  expect(first).toMatchObject({ state: 'recovering', rate: 60, inFlightMax: 14, change: true });
  expect(first).toMatchObject({ reason: 'breaker_shed', cause: 'breaker' });
  expect(first!.sentence).toBe(
    '280 failures of 400 answers in 2 s: 40 % are shed; closed → recovering; cap 24 → 14; rate ceiling 100 → 60/s.',
  );
  expect(first!.openForMs).toBeUndefined();
  // The share does not fall by itself, so the rate stays: it is of what was good, not of what is left.
  expect(second).toMatchObject({ state: 'recovering', rate: 60, change: false });
});

test('when all fail it goes down to the probe rate, never to nothing', () => {
  expect(play(steady(1, 1))[0]).toMatchObject({ state: 'recovering', rate: 1, inFlightMax: 2 });
  expect(play(steady(30, 1)).every(({ rate }) => rate === 1)).toBe(true);
});

test('it follows the share down at once, and up no faster than a slow start', () => {
  const decisions = play([...steady(2, 0.7), ...steady(2, 0.9), ...steady(8, 0.55)]);
  const rates = decisions.map(({ rate }) => rate);
  expect(rates.slice(0, 4)).toEqual([60, 60, 20, 20]);
  expect(rates.slice(4, 9)).toEqual([27, 36.5, 49.3, 66.6, 89.9]);
  expect(last(rates)).toBe(89.9);
});

test('below the level it feels its way back, and closes at what held before', () => {
  const back = play([...steady(1, 0.7), ...steady(10, 0.1)]);
  expect(back.map(({ rate }) => rate)).toEqual([60, 81, 100, ...Array(8).fill(100)]);
  expect(back[2]).toMatchObject({ state: 'closed', reason: 'breaker_closed', inFlightMax: 24 });
  expect(back.slice(3).every(({ change }) => !change)).toBe(true);
});

test('too few answers to prove it move nothing, neither way', () => {
  const thin = play([...steady(1, 1), ...steady(20, 1, 2)]);
  expect(thin.slice(1).every(({ change }) => !change)).toBe(true);
  expect(last(thin)).toMatchObject({ reason: 'breaker_shed', state: 'recovering', rate: 1 });
  expect(play(steady(5, 1, 6)).every(({ state }) => state === 'closed')).toBe(true);
});

test('a hair above the level is not worth leaving closed', () => {
  expect(play(steady(20, 0.51, 40_000)).every(({ change }) => !change)).toBe(true);
});

test('a level that is no share still opens it', () => {
  const policy = shedding({ or: [{ on: 'system', above: 20 }] });
  const sample = (system: number) => {
    const parts = sampleOf({
      outcomes: { ok: 100, failed: 300, matching: 300, tick: { ok: 1, matching: 3 } },
    });
    const trips = [
      { answers: 400, matching: 300, windowMs: 2000, tick: 3 },
      { answers: 400, matching: system, windowMs: 60_000, tick: 1 },
    ];
    return { ...parts, outcomes: { ...parts.outcomes, trips } };
  };
  const of = (system: number) => turn(policy, createDecideState(policy), sample(system)).decision;
  expect(of(5)).toMatchObject({ state: 'recovering', rate: 50, reason: 'breaker_shed' });
  expect(of(21)).toMatchObject({ state: 'open', reason: 'breaker_trip' });
});

describe('what a person holds', () => {
  test('is not shed from; it trips neither', () => {
    for (const held of ['pinned', 'frozen'] as const) {
      const decisions = play(steady(5, 1), { inForce: { held } });
      expect(decisions.every(({ change }) => !change)).toBe(true);
    }
  });
});

test('shed from a slow start, it leads back to where that led', () => {
  const policy = shedding();
  let state = createDecideState(policy);
  const resume = { rate: 100, inFlightMax: 24 };
  const breaker = { ...state.memory.breaker, state: 'recovering' as const, resume };
  state = { ...state, memory: { ...state.memory, breaker } };
  const target = { rate: 80, capacity: 50, inFlightMax: 19 };
  const bad = sampleOf({
    inForce: { state: 'recovering', target },
    outcomes: { ok: 100, failed: 300, matching: 300, tick: { ok: 1, matching: 3 } },
  });
  const turned = turn(policy, state, bad);
  expect(turned.decision).toMatchObject({ state: 'recovering', rate: 50 });
  expect(turned.state.memory.breaker.resume).toEqual(resume);
});

test('the metric tells what is shed now, and nothing once it is over', async () => {
  const metrics = createMetrics('test');
  const shedNow = async () => {
    const { values } = await metrics.shed.get();
    return values[0]?.value;
  };
  const [shed, over] = play([...steady(1, 0.7), ...steady(1, 0.1)]);
  reportDecision(metrics, 'search', shed!);
  expect(await shedNow()).toBeCloseTo(0.4, 6);
  reportDecision(metrics, 'search', over!);
  expect(await shedNow()).toBe(0);
});
