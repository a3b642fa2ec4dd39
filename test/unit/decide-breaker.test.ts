/** The breaker: every state against every event, and the samples that raise them. */
import { describe, expect, test } from 'vitest';
import type { LimiterState } from '../../src/redis/params.js';
import {
  BREAKER_TABLE,
  type BreakerEvent,
  createDecideState,
  type DecideState,
  transition,
  turn,
} from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const STATES: LimiterState[] = ['closed', 'open', 'half-open', 'recovering'];
const EVENTS: BreakerEvent[] = [
  'trip',
  'shed',
  'open_elapsed',
  'probes_passed',
  'probe_failed',
  'probe_deadline',
  'recovered',
  'none',
];

/** What the table must say, written out apart from it; absent: stays. */
const MOVES: Record<string, LimiterState> = {
  'closed trip': 'open',
  'closed shed': 'recovering',
  'open open_elapsed': 'half-open',
  'half-open probes_passed': 'recovering',
  'half-open probe_failed': 'open',
  'half-open probe_deadline': 'open',
  'recovering trip': 'open',
  'recovering recovered': 'closed',
};

describe.each(STATES)('%s', (state) => {
  test.each(EVENTS)('on %s', (event) => {
    expect(transition(state, event)).toBe(MOVES[`${state} ${event}`] ?? state);
  });
});

test('the table knows all states and no other event', () => {
  expect(Object.keys(BREAKER_TABLE).sort()).toEqual([...STATES].sort());
  for (const row of Object.values(BREAKER_TABLE)) {
    for (const event of Object.keys(row)) expect(EVENTS).toContain(event);
  }
});

const policy = policyOf();
const failing: SampleParts = {
  traffic: { okRate: 0, errorRatio: 1 },
  outcomes: { ok: 0, failed: 100, matching: 100, tick: { ok: 0, matching: 100 } },
};

/** A state in which the breaker is open or half-open after one trip. */
function trippedState(): DecideState {
  return turn(policy, createDecideState(policy), sampleOf(failing)).state;
}

function halfOpen(parts: SampleParts = {}) {
  return sampleOf({
    ...parts,
    inForce: { state: 'half-open', rate: 1, generation: 1, ...parts.inForce },
    outcomes: { generation: 1, ok: 0, failed: 0, matching: 0, ...parts.outcomes },
  });
}

describe('trips', () => {
  test('on a ratio above the threshold; the stored numbers stay, so that they come back', () => {
    const { decision } = turn(policy, createDecideState(policy), sampleOf(failing));
    expect(decision).toMatchObject({ state: 'open', reason: 'breaker_trip', openForMs: 5000 });
    expect(decision).toMatchObject({ rate: 100, inFlightMax: 24, change: true, cause: 'breaker' });
    expect(decision.sentence).toContain('closed → open');
  });

  test('C78: 1 error of 1 a minute for an hour stays closed', () => {
    let state = createDecideState(policy);
    for (let second = 0; second < 3600; second++) {
      const bad = second % 60 === 0 ? 1 : 0;
      const outcomes = { ok: 0, failed: bad, matching: bad, tick: { ok: 0, matching: bad } };
      const turned = turn(policy, state, sampleOf({ outcomes }));
      state = turned.state;
      expect(turned.decision.state).toBe('closed');
    }
  });

  test('C60: neither 0 of 0 nor 9 of 9 trips; 10 of 10 does', () => {
    const of = (failed: number) =>
      turn(
        policy,
        createDecideState(policy),
        sampleOf({
          outcomes: { ok: 0, failed, matching: failed, tick: { ok: 0, matching: failed } },
        }),
      ).decision.state;
    expect([of(0), of(9), of(10)]).toEqual(['closed', 'closed', 'open']);
  });

  test('on a count of a code in the window, whatever the other answers are', () => {
    const counting = policyOf({
      signals: { upstream: { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' } },
      objective: {},
      breaker: { on: 'upstream', above: 20, per: '5s' },
    });
    const of = (matching: number) =>
      turn(
        counting,
        createDecideState(counting),
        sampleOf({ outcomes: { ok: 5000, failed: 90, matching, tick: { ok: 5, matching: 1 } } }),
      ).decision.state;
    expect([of(20), of(21)]).toEqual(['closed', 'open']);
  });

  test('never on what is not fresh, of another generation, or already counted', () => {
    const not = (outcomes: SampleParts['outcomes']) =>
      turn(
        policy,
        createDecideState(policy),
        sampleOf({ ...failing, outcomes: { ...failing.outcomes, ...outcomes } }),
      ).decision.state;
    expect(not({ fresh: false })).toBe('closed');
    expect(not({ generation: 7 })).toBe('closed');
    expect(not({ generation: null })).toBe('closed');
    expect(not({ tick: { ok: 3, matching: 0 } })).toBe('closed');
  });

  test('a pinned limiter trips and comes back to the held value; one whose breaker is held does not trip', () => {
    const inForce = { held: 'pinned' as const, target: { rate: 10, capacity: 50, inFlightMax: 3 } };
    const tripped = turn(policy, createDecideState(policy), sampleOf({ ...failing, inForce }));
    expect(tripped.decision).toMatchObject({
      state: 'open',
      rate: 10,
      inFlightMax: 3,
      change: true,
    });
    const back = turn(
      policy,
      tripped.state,
      halfOpen({ inForce, outcomes: { ok: 3, tick: { ok: 3, matching: 0 } } }),
    );
    expect(back.decision).toMatchObject({ state: 'closed', rate: 10, inFlightMax: 3 });
    const held = { ...inForce, holdBreaker: true };
    const kept = turn(policy, createDecideState(policy), sampleOf({ ...failing, inForce: held }));
    expect(kept.decision).toMatchObject({ state: 'closed', change: false });
  });
});

describe('half-open', () => {
  test('probes pass: a slow start toward the last good values, raised only by answered traffic', () => {
    let { state, decision } = turn(
      policy,
      trippedState(),
      halfOpen({ outcomes: { ok: 3, tick: { ok: 3, matching: 0 } } }),
    );
    expect(decision).toMatchObject({ state: 'recovering', rate: 50, inFlightMax: 12 });
    const rates: number[] = [];
    for (let i = 0; i < 8 && decision.state === 'recovering'; i++) {
      const target = { rate: decision.rate, capacity: 50, inFlightMax: decision.inFlightMax };
      const idle = sampleOf({
        inForce: { state: 'recovering', generation: 1, target },
        traffic: { okRate: 0, answers: 0 },
        outcomes: { generation: 1 },
      });
      expect(turn(policy, state, idle).decision).toMatchObject({ change: false });
      const next = sampleOf({
        inForce: { state: 'recovering', generation: 1, target },
        outcomes: { generation: 1 },
      });
      ({ state, decision } = turn(policy, state, next));
      rates.push(decision.rate);
    }
    expect(rates).toEqual([67.5, 91.1, 100]);
    expect(decision).toMatchObject({ state: 'closed', rate: 100, inFlightMax: 24 });
  });

  test('at ten ticks a second the way back takes as long: a reading stands for its second', () => {
    const passed = halfOpen({ dtMs: 100, outcomes: { ok: 3, tick: { ok: 3, matching: 0 } } });
    let { state, decision } = turn(policy, trippedState(), passed);
    let ticks = 0;
    for (; decision.state === 'recovering' && ticks < 100; ticks++) {
      const target = { rate: decision.rate, capacity: 50, inFlightMax: decision.inFlightMax };
      const fresh = ticks % 10 === 9;
      const next = sampleOf({
        dtMs: 100,
        inForce: { state: 'recovering', generation: 1, target },
        traffic: { fresh, intervalMs: 1000 },
        outcomes: { generation: 1 },
      });
      ({ state, decision } = turn(policy, state, next));
    }
    expect(ticks).toBe(30);
    expect(decision).toMatchObject({ state: 'closed', rate: 100 });
  });

  test('a failed probe opens again for twice as long, up to the most, and it decays', () => {
    let state = trippedState();
    const times: number[] = [];
    for (let i = 0; i < 6; i++) {
      const failed = { ok: 0, failed: 1, matching: 1, tick: { ok: 0, matching: 1 } };
      const turned = turn(policy, state, halfOpen({ outcomes: failed }));
      expect(turned.decision).toMatchObject({ state: 'open', reason: 'breaker_probe_failed' });
      times.push(turned.decision.openForMs!);
      state = turn(policy, turned.state, sampleOf({ inForce: { state: 'open', rate: 0 } })).state;
    }
    expect(times).toEqual([10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
    for (let i = 0; i < 7; i++) {
      state = turn(policy, state, sampleOf({ dtMs: 60_000 })).state;
    }
    expect(turn(policy, state, sampleOf(failing)).decision.openForMs).toBe(5000);
  });

  test('one failure among successes asks for another probe', () => {
    const mixed = { ok: 2, failed: 1, matching: 1, tick: { ok: 2, matching: 1 } };
    const { state, decision } = turn(policy, trippedState(), halfOpen({ outcomes: mixed }));
    expect(decision).toMatchObject({ state: 'half-open', change: false });
    const more = halfOpen({ outcomes: { ok: 3, tick: { ok: 1, matching: 0 } } });
    expect(turn(policy, state, more).decision.state).toBe('recovering');
  });

  test('C79: a probe that hangs opens again after the deadline; no traffic and no sensor never do', () => {
    const hang = (traffic: SampleParts['traffic'], ticks: number) => {
      let state = trippedState();
      let decision = turn(
        policy,
        state,
        halfOpen({ outcomes: { tick: { ok: 0, matching: 0 } } }),
      ).decision;
      for (let i = 0; i < ticks; i++) {
        const tick = halfOpen({ traffic, outcomes: { tick: { ok: 0, matching: 0 } } });
        ({ state, decision } = turn(policy, state, tick));
        if (decision.state !== 'half-open') return { decision, i };
      }
      return { decision, i: ticks };
    };
    const hung = hang({ admittedRate: 1, answers: 0, okRate: 0 }, 60);
    expect(hung.decision).toMatchObject({ state: 'open', reason: 'breaker_probe_deadline' });
    expect(hung.decision.openForMs).toBe(10_000);
    expect(hung.i).toBeLessThanOrEqual(32);
    expect(hang({ admittedRate: 0, answers: 0, okRate: 0 }, 200).decision.state).toBe('half-open');
    expect(hang({ fresh: false, admittedRate: 1 }, 200).decision.state).toBe('half-open');
  });

  test('C83: fewer probes than the least answers of the ratio still decide', () => {
    const tight = policyOf({
      breaker: { on: 'errors', above: '50%', minAnswers: 10, successes: 1, probeRate: 1 },
    });
    const state = turn(tight, createDecideState(tight), sampleOf(failing)).state;
    const passed = halfOpen({ outcomes: { ok: 1, tick: { ok: 1, matching: 0 } } });
    expect(turn(tight, state, passed).decision.state).toBe('recovering');
    const failed = halfOpen({ outcomes: { failed: 1, tick: { ok: 0, matching: 1 } } });
    expect(turn(tight, state, failed).decision.state).toBe('open');
  });

  test('results that began before the trip count for nothing', () => {
    const late = halfOpen({ outcomes: { generation: 0, ok: 9, tick: { ok: 9, matching: 0 } } });
    expect(turn(policy, trippedState(), late).decision).toMatchObject({
      state: 'half-open',
      change: false,
    });
  });
});

test('open waits for time alone, and writes nothing', () => {
  const open = sampleOf({ inForce: { state: 'open', rate: 0, generation: 1 } });
  const { decision } = turn(policy, trippedState(), open);
  expect(decision).toMatchObject({ state: 'open', change: false, rate: 100, inFlightMax: 24 });
});

test('a trip that a person made, and a reset, lead back by the same slow start', () => {
  const open = sampleOf({ inForce: { state: 'open', rate: 0, generation: 1 } });
  let { state, decision } = turn(policy, createDecideState(policy), open);
  expect(decision).toMatchObject({ state: 'open', change: false });
  const passed = halfOpen({ outcomes: { ok: 3, tick: { ok: 3, matching: 0 } } });
  ({ state, decision } = turn(policy, state, passed));
  expect(decision).toMatchObject({ state: 'recovering', rate: 50, inFlightMax: 12 });
  const half = sampleOf({
    inForce: {
      state: 'recovering',
      generation: 1,
      target: { rate: 50, capacity: 200, inFlightMax: 12 },
    },
    outcomes: { generation: 1 },
  });
  // Half of the rate is the beginning of the way, not its end.
  expect(turn(policy, state, half).decision).toMatchObject({ state: 'recovering', rate: 67.5 });
  const reset = turn(policy, turn(policy, createDecideState(policy), open).state, half);
  expect(reset.decision).toMatchObject({ state: 'recovering', rate: 67.5 });
});

test("a person's trip out of a slow start leads back to where that led, unless they stored other numbers", () => {
  const low = { rate: 12.5, capacity: 200, inFlightMax: 3 };
  const open = (target: typeof low) =>
    sampleOf({ inForce: { state: 'open', rate: 0, generation: 1, target } });
  const ramping = turn(
    policy,
    turn(policy, createDecideState(policy), open({ rate: 100, capacity: 200, inFlightMax: 24 }))
      .state,
    sampleOf({ inForce: { state: 'recovering', generation: 1, target: low } }),
  ).state;
  const tripped = turn(policy, ramping, open(low));
  // Not lifted to the minimum either: nothing moves what is stored while it is open.
  expect(tripped.decision).toMatchObject({ state: 'open', change: false });
  const passed = halfOpen({ outcomes: { ok: 3, tick: { ok: 3, matching: 0 } } });
  const back = (state: DecideState, target: typeof low) =>
    turn(policy, state, { ...passed, inForce: { ...passed.inForce, target } }).decision;
  expect(back(tripped.state, low)).toMatchObject({ state: 'recovering', rate: 50 });
  const chosen = { rate: 40, capacity: 200, inFlightMax: 8 };
  const stored = turn(policy, tripped.state, open(chosen)).state;
  expect(back(stored, chosen)).toMatchObject({ state: 'recovering', rate: 20 });
});

test('a slow start that overload ends says what the law saw, as any cut does', () => {
  const policy = policyOf();
  const fresh = createDecideState(policy);
  const resume = { rate: 100, inFlightMax: 24 };
  const breaker = { ...fresh.memory.breaker, state: 'recovering' as const, resume };
  const sample = sampleOf({
    signals: { p95: { value: 600, fresh: true, ageMs: 300, count: 400 } },
    traffic: { deniedByCap: 20, inFlight: 15, inFlightNow: 15 },
    inForce: { state: 'recovering', target: { rate: 60, capacity: 50, inFlightMax: 16 } },
  });
  const { decision } = turn(policy, { ...fresh, memory: { ...fresh.memory, breaker } }, sample);
  expect(decision).toMatchObject({ state: 'closed', reason: 'law_emergency_cut', rate: 60 });
  expect(decision.inFlightMax).toBeLessThan(16);
  expect(decision.over).toEqual({ signal: 'p95', value: '600 ms', setpoint: '250 ms', ratio: 2.4 });
  expect(decision.sentence).toMatch(/^slow start ends: p95 600 ms is 2\.4 × the 250 ms setpoint/);
});
