/** Objectives: `sustain` waits, `above` turns the sign, goodput tells a shortage of load from overload. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { goodputOverload } from '../../src/decide/goodput.js';
import { overloadOf } from '../../src/decide/overload.js';
import {
  createDecideState,
  createEstimateState,
  estimate,
  type Policy,
  type PolicyInput,
  policySchema,
  turn,
} from '../../src/testing.js';
import { binsOf, policyOf, readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';

const at = (second: number) => 1_000_000 + second * 1000;
const LAWS = ['adaptive', 'aimd', 'pi'] as const;
const free = { guards: { deadBand: 0, cooldown: 0 } } as const;

/** Runs seconds of telemetry through estimate, law and guards; what is decided is in force at the next. */
function run(policy: Policy, seconds: readonly Parameters<typeof telemetryOf>[1][]) {
  let seen = createEstimateState();
  let state = createDecideState(policy);
  let target = { rate: 100, capacity: 50, inFlightMax: 24 };
  return seconds.map((parts, i) => {
    const given = telemetryOf(at(i), {
      denied: { rate: 20, in_flight: 20 },
      inFlight: 20,
      ...parts,
    });
    const estimated = estimate(policy, seen, readingsOf(at(i), given), 1000);
    seen = estimated.state;
    const sample = { ...sampleOf({ inForce: { target } }), ...estimated.estimates, nowMs: at(i) };
    const turned = turn(policy, state, sample);
    state = turned.state;
    const { rate, capacity, inFlightMax, change } = turned.decision;
    if (change) target = { rate, capacity, inFlightMax };
    return { ...turned.decision, estimates: estimated.estimates, sample };
  });
}

const cut = ({ rate, inFlightMax }: { rate: number; inFlightMax: number }) =>
  rate < 100 || inFlightMax < 24;

describe('sustain', () => {
  const with3s = (law: (typeof LAWS)[number], more: Partial<PolicyInput> = {}) =>
    policyOf({
      ...free,
      control: { law },
      objective: { p95: { below: 250, sustain: 3000 } },
      ...more,
    });
  const slow = { ok: 100, ms: 600 };
  const quick = { ok: 100, ms: 100 };

  test.each(LAWS)('%s: missed for less than that, nothing moves; then it is cut', (law) => {
    const decided = run(with3s(law), [slow, slow, slow, slow, slow, slow]);
    expect(decided.slice(0, 3).some(({ change }) => change)).toBe(false);
    expect(decided.slice(0, 3).map(({ reason }) => reason)).not.toContain('law_raise');
    expect(decided.slice(3).some(cut)).toBe(true);
    const without = policyOf({ ...free, control: { law } });
    expect(run(without, [slow, slow, slow]).some(cut)).toBe(true);
  });

  test('a second that holds begins it anew; the sample says how long', () => {
    const decided = run(with3s('adaptive'), [slow, slow, slow, quick, slow, slow, slow]);
    expect(decided.some(cut)).toBe(false);
    const missed = decided.map(({ estimates }) => estimates.signals.p95!.missedMs);
    expect(missed).toEqual([0, 1000, 2000, undefined, 0, 1000, 2000]);
  });

  test('silence is no evidence: it neither counts as missed nor as held', () => {
    const policy = with3s('adaptive');
    let state = createEstimateState();
    const tick = (second: number, telemetry: ReturnType<typeof telemetryOf> | null) => {
      const reading = telemetry ?? ({ kind: 'missing', reason: 'no_data' } as const);
      const next = estimate(policy, state, readingsOf(at(second), reading), 1000);
      state = next.state;
      return next.estimates.signals.p95!;
    };
    tick(0, telemetryOf(at(0), slow));
    expect(tick(1, null).missedMs).toBe(0);
    expect(tick(2, telemetryOf(at(2), slow)).missedMs).toBe(2000);
    for (let second = 3; second < 9; second++) tick(second, null);
    expect(tick(9, telemetryOf(at(9), slow)).missedMs).toBe(0);
  });

  test('between what the law aims at and the setpoint it holds: no cut before it is missed', () => {
    const decided = run(with3s('adaptive'), Array(8).fill({ ok: 100, ms: 230 }));
    expect(decided.some(({ change }) => change)).toBe(false);
    expect(decided.at(-1)!.sentence).toContain('missed for 0 of 3 s');
  });

  test('another objective that is missed counts meanwhile', () => {
    const policy = with3s('adaptive', {
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        errors: { source: 'telemetry', stat: 'errorRatio' },
        pool: { source: 'telemetry', stat: 'poolWaiting' },
      },
      objective: { p95: { below: 250, sustain: 60_000 }, pool: { below: 5 } },
    });
    const waits = { ok: 100, ms: 600, poolWaiting: 20 };
    expect(run(policy, [waits, waits, waits]).some(cut)).toBe(true);
  });
});

test('an error ratio is above its objective once its answers prove it, and not by one in ten', () => {
  const policy = policyOf({ objective: { errors: { below: '1%' } } });
  const missed = (seconds: Parameters<typeof telemetryOf>[1][]) =>
    run(policy, seconds).at(-1)!.estimates.signals.errors!;
  expect(missed([{ ok: 19, failed: 1 }])).toMatchObject({ value: 0.05, fresh: true });
  expect(missed([{ ok: 19, failed: 1 }]).missedMs).toBeUndefined();
  expect(missed([{ ok: 180, failed: 20 }]).missedMs).toBe(0);
  expect(missed(Array(3).fill({ ok: 180, failed: 20 })).missedMs).toBe(2000);
});

describe('above', () => {
  test('z is the mirror of below, times the weight', () => {
    const policy = policyOf({
      signals: {
        spare: { source: 'telemetry', stat: 'inFlight' },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
      objective: { spare: { above: 10, weight: 2 } },
    });
    const z = (value: number) =>
      overloadOf(
        policy,
        sampleOf({ signals: { spare: { value, fresh: true, ageMs: 300, count: 1 } } }),
      ).z;
    expect(z(5)).toBeCloseTo(2 * Math.log(2), 12);
    expect(z(20)).toBeCloseTo(-2 * Math.log(2), 12);
  });
});

describe('goodput', () => {
  const signals = {
    good: { source: 'telemetry', stat: 'goodput', within: '250ms' },
    errors: { source: 'telemetry', stat: 'errorRatio' },
  } as const;
  const policy = policyOf({ ...free, signals, objective: { good: { above: 80 } } });
  const of = (parts: Parameters<typeof telemetryOf>[1]) =>
    run(policy, [parts])[0]!.estimates.signals.good!.value;

  test('good answers within the time, failures left out by their own bins', () => {
    const values = [...Array(60).fill(100), ...Array(30).fill(400), ...Array(10).fill(20)];
    const parts = { ok: 90, failed: 10, latency: binsOf(values) };
    expect(of({ ...parts, failedLatency: binsOf(Array(10).fill(20)) })).toBe(60);
    expect(of({ ...parts, failedLatency: binsOf(Array(10).fill(400)) })).toBe(70);
    // Nobody said how long the failures took: they were the quick ones.
    expect(of(parts)).toBe(60);
  });

  test('a bin that holds the time itself is off by at most 1 %', () => {
    expect(of({ ok: 100, ms: 247 })).toBe(100);
    expect(of({ ok: 100, ms: 253 })).toBe(0);
  });

  test('too few because they come too late: cut', () => {
    const late = { ok: 100, latency: binsOf([...Array(30).fill(100), ...Array(70).fill(500)]) };
    expect(run(policy, [late, late, late]).some(cut)).toBe(true);
  });

  test('too few because few are let in, all of them in time: raise, never a cut', () => {
    for (const law of LAWS) {
      const low = policyOf({
        ...free,
        signals,
        control: { law },
        objective: { good: { above: 80 } },
      });
      const decided = run(low, Array(10).fill({ ok: 40, ms: 100 }));
      expect(decided.some(cut)).toBe(false);
      expect(decided.at(-1)!.rate + decided.at(-1)!.inFlightMax).toBeGreaterThan(124);
    }
  });

  test('I10: no answers prove nothing, and quick errors are not congestion', () => {
    const none = run(policy, [{ ok: 0, latency: {} }]);
    expect(overloadOf(policy, none[0]!.sample).fresh).toBe(false);
    const errors = { ok: 50, failed: 50, failedLatency: binsOf(Array(50).fill(100)) };
    expect(run(policy, [errors, errors, errors]).some(cut)).toBe(false);
  });

  test('z: finite, above 0 only when short and losing more than 5 %, and monotone in both', () => {
    const signal = policy.signals.good!;
    const number = fc.double({ min: 0.001, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(
        number,
        number,
        number,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (setpoint, okRate, less, share) => {
          const z = (goodput: number, ok = okRate) =>
            goodputOverload(signal, goodput, setpoint, sampleOf({ traffic: { okRate: ok } }))!;
          const goodput = share * okRate;
          expect(Number.isFinite(z(goodput))).toBe(true);
          if (z(goodput) > 1e-9) {
            expect(goodput).toBeLessThan(setpoint);
            expect(goodput).toBeLessThan(0.95 * okRate * (1 + 1e-9));
          }
          expect(z(Math.max(0, goodput - less))).toBeGreaterThanOrEqual(z(goodput) - 1e-12);
        },
      ),
    );
  });

  test('what its author may write', () => {
    const parse = (within: unknown) =>
      policySchema.safeParse({
        ...policy,
        signals: { ...signals, good: { ...signals.good, within } },
      });
    expect(parse('250ms').data!.signals.good).toMatchObject({ within: 250 });
    expect(parse(0).success).toBe(false);
    expect(parse('soon').error!.issues[0]!.message).toContain('"soon"');
  });
});
