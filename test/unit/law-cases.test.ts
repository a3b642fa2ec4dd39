/** Cases that users of such controllers met, on the whole of step and guard. */
import { describe, expect, test } from 'vitest';
import {
  createDecideState,
  type DecideState,
  type Decision,
  type Policy,
  reviveDecideState,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

interface Run {
  changes: { tick: number; decision: Decision }[];
  rate: number;
  cap: number;
  state: DecideState;
  sample: Sample;
}

function run(
  policy: Policy,
  ticks: number,
  parts: (tick: number, cap: number, rate: number) => SampleParts,
  start = { rate: 100, capacity: 50, inFlightMax: 24 },
): Run {
  let state = createDecideState(policy);
  let target = start;
  const changes: Run['changes'] = [];
  let sample = sampleOf();
  for (let tick = 1; tick <= ticks; tick++) {
    const given = parts(tick, target.inFlightMax, target.rate);
    sample = sampleOf({ ...given, inForce: { target, ...given.inForce } });
    const turned = turn(policy, state, sample);
    state = turned.state;
    if (!turned.decision.change) continue;
    const { rate, capacity, inFlightMax } = turned.decision;
    target = { rate, capacity, inFlightMax };
    changes.push({ tick, decision: turned.decision });
  }
  return { changes, rate: target.rate, cap: target.inFlightMax, state, sample };
}

const p95 = (value: number, more: object = {}) => ({
  p95: { value, fresh: true, ageMs: 300, count: 400, ...more },
});

describe('adaptive', () => {
  const policy = policyOf();

  test('C67: healthy at the maximum for an hour: it stays there', () => {
    const most = { rate: 400, capacity: 50, inFlightMax: 64 };
    const busy: SampleParts = {
      signals: p95(90),
      traffic: { offeredRate: 420, admittedRate: 400, answerRate: 400, okRate: 400, answers: 400 },
    };
    const result = run(
      policy,
      3600,
      () => ({ ...busy, traffic: { ...busy.traffic, deniedByRate: 20, inFlight: 36 } }),
      most,
    );
    expect(result.changes).toEqual([]);
  });

  test('I10: idle for an hour raises nothing and lowers nothing', () => {
    const idle = run(policy, 3600, () => ({
      signals: { p95: { value: null, fresh: false, ageMs: 0, count: 0, reason: 'no_traffic' } },
      traffic: {
        offeredRate: 0,
        admittedRate: 0,
        answerRate: 0,
        okRate: 0,
        answers: 0,
        meanMs: null,
        inFlight: null,
      },
      outcomes: { ok: 0, tick: { ok: 0, matching: 0 } },
    }));
    expect(idle.changes).toEqual([]);
  });

  test('C58: the sensor dies under load: hold, no raise, no trip, for as long as it lasts', () => {
    const dead = run(policy, 600, (tick) =>
      tick < 10
        ? { signals: p95(100), traffic: { deniedByCap: 50, inFlight: 23 } }
        : {
            signals: {
              p95: {
                value: 100,
                fresh: false,
                ageMs: tick * 1000,
                count: 0,
                reason: 'unreachable',
              },
            },
            traffic: { fresh: false, deniedByCap: 50, inFlight: 23 },
            outcomes: { fresh: false, tick: { ok: 0, matching: 0 } },
          },
    );
    expect(dead.changes.filter(({ tick }) => tick >= 10)).toEqual([]);
  });

  test('C73: a value 2 % around the aim moves nothing for an hour', () => {
    // Its mean says that nothing waits: there the aim is 0.87 of the setpoint.
    for (const share of [0.83, 0.87, 0.91]) {
      const wobble = run(policy, 3600, (tick) => ({
        signals: p95(250 * share * (tick % 2 ? 0.98 : 1.02)),
        traffic: { deniedByCap: 50, inFlight: 23 },
      }));
      expect(wobble.changes.length).toBeLessThanOrEqual(2);
    }
  });

  test('C73: a value 2 % around the setpoint itself is cut to rest, not to and fro', () => {
    const wobble = run(policy, 3600, (tick, cap) => ({
      signals: p95(tick % 2 ? 245 : 255),
      traffic: { deniedByCap: 50, inFlight: cap, inFlightNow: cap, okRate: 4 * cap },
    }));
    expect(wobble.changes.length).toBeLessThanOrEqual(25);
    expect(wobble.changes.filter(({ tick }) => tick > 1800)).toEqual([]);
    const caps = wobble.changes.map(({ decision }) => decision.inFlightMax);
    expect(caps).toEqual([...caps].sort((a, b) => b - a));
  });

  test('C73: 60 s of lag at a 10 s tick: at most one cut for what a cut has not yet reached', () => {
    const lagging = run(policy, 30, () => ({
      dtMs: 10_000,
      signals: p95(400, { ageMs: 60_000 }),
      traffic: { ageMs: 60_000, intervalMs: 10_000, deniedByCap: 50, inFlight: 23 },
    }));
    const ticks = lagging.changes.map(({ tick }) => tick);
    for (let i = 1; i < ticks.length; i++) {
      expect(ticks[i]! - ticks[i - 1]!).toBeGreaterThanOrEqual(6);
    }
  });

  test('C70: hopeless overload stops at the floor, exactly, and stays', () => {
    const hopeless = run(policy, 300, (_tick, cap) => ({
      signals: p95(5000),
      traffic: {
        okRate: 1,
        answerRate: 1,
        answers: 1,
        meanMs: 3000,
        inFlight: cap,
        inFlightNow: cap,
        deniedByCap: 9,
      },
    }));
    expect(hopeless.cap).toBe(2);
    expect(hopeless.rate).toBeGreaterThanOrEqual(20);
    // And it says so, tick by tick, for as long as it lasts.
    const { decision } = turn(policy, hopeless.state, hopeless.sample);
    expect(decision).toMatchObject({ change: false, reason: 'at_floor' });
    expect(decision.terms.atFloorTicks).toBeGreaterThan(100);
    expect(decision.sentence).toContain('at the least that the bounds allow for');
    const better = sampleOf({ inForce: { target: { ...decision } }, signals: p95(120) });
    expect(turn(policy, hopeless.state, better).decision.terms.atFloorTicks).toBe(0);
    const unseen = sampleOf({ ...hopeless.sample, traffic: { fresh: false } });
    expect(turn(policy, hopeless.state, unseen).decision.terms.atFloorTicks).toBeGreaterThan(100);
  });

  test('C70: a tick or two at the floor is no news', () => {
    const low = { rate: 100, capacity: 50, inFlightMax: 2 };
    const { state, sample } = run(policy, 9, () => ({ signals: p95(400) }), low);
    const { decision } = turn(policy, state, sample);
    expect(decision.reason).not.toBe('at_floor');
    expect(decision.terms.atFloorTicks).toBe(10);
    expect(turn(policy, turn(policy, state, sample).state, sample).decision.reason).toBe(
      'at_floor',
    );
  });

  test('errors are not congestion: 30 % errors do not move a healthy limiter', () => {
    const erring = run(policy, 300, () => ({
      signals: { ...p95(120), errors: { value: 0.3, fresh: true, ageMs: 300, count: 400 } },
      traffic: { errorRatio: 0.3, okRate: 70 },
      outcomes: { ok: 140, failed: 60, matching: 60, tick: { ok: 70, matching: 30 } },
    }));
    expect(erring.changes).toEqual([]);
  });

  test('a service that is slow by itself is not starved: cuts that do not help end, far above the floor', () => {
    const slow = run(policy, 3600, (_tick, cap) => ({
      signals: p95(300),
      traffic: { deniedByCap: 50, inFlight: cap, inFlightNow: cap, okRate: 4 * cap, meanMs: 250 },
    }));
    expect(slow.cap).toBeGreaterThanOrEqual(14);
    expect(slow.changes.length).toBeLessThanOrEqual(10);
  });

  test('a service that falls to half its speed is cut to within the setpoint, whatever was learnt before', () => {
    // A pool of servers: 50 ms each below the knee, in line beyond it. Demand always fills the cap.
    const p95s: number[] = [];
    run(policy, 240, (tick, cap) => {
      const most = tick <= 120 ? 200 : 100;
      const okRate = Math.min(cap / 0.05, most);
      const meanMs = (1000 * cap) / okRate;
      p95s.push(1.3 * meanMs);
      return {
        signals: p95(1.3 * meanMs),
        traffic: {
          ...{ okRate, answerRate: okRate, answers: okRate, meanMs },
          ...{ inFlight: cap, inFlightNow: cap, deniedByCap: 50 },
        },
      };
    });
    expect(Math.max(...p95s.slice(100, 120))).toBeLessThan(250);
    expect(Math.max(...p95s.slice(120))).toBeGreaterThan(250);
    expect(Math.max(...p95s.slice(132))).toBeLessThan(250);
  });

  test('database waits count: above their setpoint they cut, while the latency is still fine', () => {
    const waits = policyOf({
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        dbWait: { source: 'postgres', stat: 'waiting', url: 'postgres://db' },
      },
      objective: { p95: { below: '250ms' }, dbWait: { below: 5 } },
      breaker: undefined,
    });
    const { changes } = run(waits, 3, () => ({
      signals: { ...p95(100), dbWait: { value: 12, fresh: true, ageMs: 10, count: 3 } },
      traffic: { deniedByCap: 10, inFlight: 23 },
    }));
    expect(changes[0]?.decision.reason).toMatch(/law_(emergency_)?cut/);
    expect(changes[0]?.decision.sentence).toContain('dbWait 12 is 2.4 × the 5 setpoint');
  });

  test('after a release it starts from the held value: the first tick moves nothing', () => {
    const start = { rate: 33, capacity: 50, inFlightMax: 7 };
    const calm = { signals: p95(215), traffic: { inFlight: 5, okRate: 30 } };
    expect(run(policy, 10, () => calm, start).changes).toEqual([]);
  });
});

describe('rate only', () => {
  const policy = policyOf({
    limiter: { name: 'gateway', rate: 100, capacity: 50, completions: 'none' },
    bounds: { rate: { min: 20, max: 400 } },
  });
  const start = { rate: 100, capacity: 50, inFlightMax: 0 };

  test('overload cuts to a share of the measured throughput, and waits for what it did', () => {
    const { changes } = run(
      policy,
      4,
      () => ({ signals: p95(900), traffic: { okRate: 60, inFlightNow: 90, deniedByRate: 40 } }),
      start,
    );
    expect(changes[0]?.decision.reason).toMatch(/cut/);
    expect(changes[0]?.decision.rate).toBeLessThan(80);
    for (const { decision } of changes) {
      expect(decision.inFlightMax).toBe(0);
      expect(decision.rate).toBeGreaterThanOrEqual(20);
    }
  });

  test('room and a rate that binds: it climbs, and never beyond 2.5 × what was verified', () => {
    const up = run(
      policy,
      600,
      (_tick, _cap, rate) => ({
        signals: p95(60),
        traffic: { okRate: Math.min(rate, 150), deniedByRate: 40, inFlightNow: 5, meanMs: 40 },
      }),
      start,
    );
    expect(up.rate).toBeGreaterThan(150);
    expect(up.rate).toBeLessThanOrEqual(376);
  });

  test('a cap whose callers stop reporting for 10 s under load is left alone, the rate takes over', () => {
    const silent: SampleParts = {
      signals: p95(600),
      traffic: {
        answers: 0,
        answerRate: 0,
        okRate: 0,
        meanMs: null,
        inFlight: null,
        inFlightNow: null,
      },
      outcomes: { ok: 0, tick: { ok: 0, matching: 0 } },
    };
    const { changes } = run(policyOf(), 40, (tick) => (tick > 12 ? silent : { signals: p95(180) }));
    const before = changes.filter(({ tick }) => tick < 22);
    const after = changes.filter(({ tick }) => tick >= 22);
    expect(before.every(({ decision }) => decision.rate === 100)).toBe(true);
    expect(after.length).toBeGreaterThan(0);
    const cap = before[before.length - 1]?.decision.inFlightMax ?? 24;
    for (const { decision } of after) expect(decision.inFlightMax).toBe(cap);
    expect(after[after.length - 1]!.decision.rate).toBeLessThan(60);
  });
});

describe('determinism and size', () => {
  const busy = (tick: number, cap: number): SampleParts => ({
    signals: p95(tick % 40 < 20 ? 330 : 120),
    traffic: { deniedByCap: 50, inFlight: cap, okRate: 80 + (tick % 7), meanMs: 140 },
  });

  test('I13: the same input gives the same decision, and the state given is not touched', () => {
    const { state, sample } = run(policyOf(), 100, busy);
    const before = JSON.stringify(state);
    const first = turn(policyOf(), state, sample);
    const again = turn(policyOf(), JSON.parse(before), JSON.parse(JSON.stringify(sample)));
    expect(JSON.stringify(again)).toBe(JSON.stringify(first));
    expect(JSON.stringify(state)).toBe(before);
  });

  test('sample and state are at most 4 KB of JSON after hours of changes', () => {
    const { state, sample } = run(policyOf(), 3 * 3600, busy);
    expect(JSON.stringify({ state, sample }).length).toBeLessThanOrEqual(4096);
  });

  test('a checkpoint comes back as it was; a broken or foreign one gives a fresh state', () => {
    const policy = policyOf();
    const { state } = run(policy, 100, busy);
    expect(reviveDecideState(policy, JSON.parse(JSON.stringify(state)))).toEqual(state);
    const fresh = createDecideState(policy);
    for (const bad of [
      null,
      7,
      {},
      { law: 'step', memory: {} },
      { ...state, memory: { law: {} } },
    ]) {
      expect(reviveDecideState(policy, bad)).toEqual(fresh);
    }
    const { proof, ...others } = state.memory;
    const broken = JSON.parse(JSON.stringify(others).replace(/"cap":[\d.]+/, '"cap":null'));
    expect(reviveDecideState(policy, { ...state, memory: broken })).toEqual(fresh);
    // What proved good is the limiter's, not the law's.
    const kept = { ...fresh, memory: { ...fresh.memory, proof } };
    expect(reviveDecideState(policy, { ...state, memory: { ...broken, proof } })).toEqual(kept);
  });
});
