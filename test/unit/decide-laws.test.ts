/** Laws `aimd`, `pi` and the rate-only form of `adaptive`: their formulas, and the faults that such laws are known for. */
import { describe, expect, test } from 'vitest';
import { createDecideState, type Decision, type Policy, turn } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

/** Runs seconds of samples; what a decision changes is in force at the next. */
function run(
  policy: Policy,
  seconds: number,
  parts: (second: number, rate: number) => SampleParts,
  from = {},
) {
  let state = createDecideState(policy);
  let target = { rate: 100, capacity: 50, inFlightMax: 24, ...from };
  const decisions: Decision[] = [];
  for (let second = 1; second <= seconds; second++) {
    const given = parts(second, target.rate);
    const sample = sampleOf({ ...given, inForce: { ...given.inForce, target } });
    const turned = turn(policy, state, sample);
    state = turned.state;
    decisions.push(turned.decision);
    if (!turned.decision.change) continue;
    const { rate, capacity, inFlightMax } = turned.decision;
    target = { rate, capacity, inFlightMax };
  }
  return { ...target, decisions, changes: decisions.filter(({ change }) => change) };
}

const p95 = (value: number, fresh = true) => ({
  p95: { value, fresh, ageMs: 300, count: 400 },
});
const full = { deniedByRate: 20, deniedByCap: 20 };
const free = { guards: { deadBand: 0, cooldown: 0 } } as const;

describe('aimd', () => {
  const policy = policyOf({ ...free, control: { law: 'aimd', add: 5, addInFlight: 0.5 } });

  test('adds while a limit binds: 5/s and half a place a second', () => {
    const { rate, inFlightMax } = run(policy, 10, () => ({ signals: p95(125), traffic: full }));
    expect(rate).toBe(150);
    expect(inFlightMax).toBe(29);
  });

  test('cuts both by `down` and waits for answers of requests admitted since', () => {
    const { changes } = run(policy, 3, () => ({ signals: p95(500), traffic: full }));
    expect(changes[0]).toMatchObject({ rate: 70, inFlightMax: 16, reason: 'law_cut' });
    expect(changes.length).toBe(2);
    expect(changes[1]!.rate).toBeCloseTo(49, 5);
  });

  test('I10: nothing is learnt from idleness; what does not bind stays', () => {
    const { changes, decisions } = run(policy, 20, () => ({
      signals: p95(60),
      traffic: { admittedRate: 10, inFlight: 1 },
    }));
    expect(changes).toEqual([]);
    expect(decisions.at(-1)!.reason).toBe('idle');
  });

  test('I4: a stale signal moves nothing', () => {
    expect(run(policy, 20, () => ({ signals: p95(900, false), traffic: full })).changes).toEqual(
      [],
    );
  });
});

describe('pi', () => {
  const policy = policyOf({ ...free, control: { law: 'pi' } });
  const gains = (kp: number, ki: number) => policyOf({ ...free, control: { law: 'pi', kp, ki } });

  test('the formula: Δ ln u = kp·(e − e₁) + ki·e·s', () => {
    const { decisions } = run(policy, 2, (s) => ({
      signals: p95(s === 1 ? 250 : 275),
      traffic: full,
    }));
    const e = Math.log(250 / 275);
    expect(decisions[1]!.terms.change).toBeCloseTo(0.3 * e + 0.1 * e, 12);
    expect(decisions[1]!.rate).toBeCloseTo(100 * Math.exp(0.4 * e), 1);
  });

  test('C73: zero gains move nothing and give no NaN', () => {
    const { changes, decisions } = run(gains(0, 0), 30, (s) => ({
      signals: p95(s % 2 ? 900 : 50),
      traffic: full,
    }));
    expect(changes).toEqual([]);
    for (const { rate, terms } of decisions) {
      expect(rate).toBe(100);
      expect(Object.values(terms).every(Number.isFinite)).toBe(true);
    }
  });

  test('the sign: above the setpoint it falls, below it rises; of an `above` objective likewise', () => {
    expect(run(policy, 10, () => ({ signals: p95(400), traffic: full })).rate).toBeLessThan(70);
    expect(run(policy, 10, () => ({ signals: p95(120), traffic: full })).rate).toBeGreaterThan(150);
    const goodput = policyOf({
      ...free,
      control: { law: 'pi' },
      signals: {
        good: { source: 'telemetry', stat: 'goodput' },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
      objective: { good: { above: 80 } },
    });
    const good = (value: number) => ({
      signals: { good: { value, fresh: true, ageMs: 300, count: 400 } },
      traffic: full,
    });
    expect(run(goodput, 10, () => good(40)).rate).toBeLessThan(70);
    expect(run(goodput, 10, () => good(160)).rate).toBeGreaterThan(150);
  });

  test('wind-up: an hour at a bound is forgotten at once', () => {
    const short = run(policy, 61, (s) => ({ signals: p95(s <= 60 ? 900 : 150), traffic: full }));
    const long = run(policy, 3601, (s) => ({
      signals: p95(s <= 3600 ? 900 : 150),
      traffic: full,
    }));
    expect(short.decisions[59]!.rate).toBe(20);
    expect(long.rate).toBe(short.rate);
    expect(long.rate).toBeGreaterThan(20);
  });

  test('C67: pinned at the maximum it neither grows in hiding nor halves when all is well', () => {
    const { rate, changes } = run(policy, 600, () => ({ signals: p95(100), traffic: full }), {
      rate: 400,
      inFlightMax: 64,
    });
    expect(rate).toBe(400);
    expect(changes).toEqual([]);
  });

  test('after a gap of data the first error has no proportional part', () => {
    const { decisions } = run(policy, 12, (s) => ({
      signals: p95(s === 1 ? 125 : 500, s === 1 || s === 12),
      traffic: full,
    }));
    expect(decisions[11]!.terms.change).toBeCloseTo(0.1 * Math.log(0.5), 12);
  });
});

describe('steps smaller than the dead band add up', () => {
  const slightly = (value: number) => () => ({ signals: p95(value), traffic: full });

  test.each([
    ['pi', policyOf({ control: { law: 'pi', ki: 0.05 } })],
    ['aimd', policyOf({ control: { law: 'aimd' } })],
  ])('%s comes up to the top, one dead band at a time', (_name, policy) => {
    const up = run(policy, 1200, slightly(220), { rate: 100, inFlightMax: 50 });
    expect(up.rate).toBe(400);
    expect(up.inFlightMax).toBe(64);
    for (const [i, { rate }] of up.changes.entries()) {
      expect(rate / (up.changes[i - 1]?.rate ?? 100)).toBeLessThan(1.07);
    }
  });

  test('pi comes down for a signal that is a little too slow for long', () => {
    const down = run(policyOf({ control: { law: 'pi' } }), 600, slightly(262));
    expect(down.rate).toBe(20);
    expect(down.inFlightMax).toBe(2);
  });

  test('ticks without a fresh sample in between lose nothing', () => {
    const policy = policyOf({ control: { law: 'pi' } });
    const { rate } = run(policy, 3000, (s) => ({
      signals: p95(262, s % 5 === 0),
      traffic: { ...full, fresh: s % 5 === 0, intervalMs: 5000 },
    }));
    expect(rate).toBe(20);
  });

  test('nothing is pending after a hold, or after another has changed the number', () => {
    const policy = policyOf({ control: { law: 'pi', ki: 0.02 } });
    const start = { rate: 100, capacity: 50, inFlightMax: 64 };
    let state = createDecideState(policy);
    const tick = (value: number, inForce: object) => {
      const parts = { signals: p95(value), traffic: full, inForce: { target: start, ...inForce } };
      const turned = turn(policy, state, sampleOf(parts));
      state = turned.state;
      return turned.decision;
    };
    for (let i = 0; i < 60; i++) expect(tick(400, { held: 'pinned' }).change).toBe(false);
    expect(tick(250, {}).change).toBe(false);
    expect(tick(262, {}).change).toBe(false);
    expect(state.memory.law.rate).toBeLessThan(100);
    tick(250, { target: { ...start, rate: 60 } });
    expect(state.memory.law.rate).toBe(60);
  });
});

describe('monotone', () => {
  for (const law of ['aimd', 'pi'] as const) {
    test(`${law}: the higher the overload, the lower what it wants`, () => {
      const policy = policyOf({ ...free, control: { law } });
      let last = { rate: Number.POSITIVE_INFINITY, inFlightMax: Number.POSITIVE_INFINITY };
      for (let value = 20; value < 2000; value *= 1.15) {
        const { decisions } = run(policy, 1, () => ({ signals: p95(value), traffic: full }));
        const now = decisions[0]!;
        expect(now.rate).toBeLessThanOrEqual(last.rate);
        expect(now.inFlightMax).toBeLessThanOrEqual(last.inFlightMax);
        last = now;
      }
    });
  }
});

describe('adaptive, the rate alone', () => {
  const limiter = { name: 'plain', rate: 400, capacity: 50, completions: 'none' } as const;
  const bounds = { rate: { min: 20, max: 400 } };
  const unstated = policyOf({ ...free, limiter, bounds });
  const stated = policyOf({ ...free, limiter: { ...limiter, rate: 399 }, bounds });
  const calm = { admittedRate: 40, okRate: 40, answers: 40, meanMs: 200, inFlight: 8 };
  const start = { rate: 400, inFlightMax: 0 };

  test('a rate that is only the upper bound comes down to 2.5 × what was seen to work', () => {
    const { rate, changes } = run(
      unstated,
      30,
      () => ({ signals: p95(120), traffic: { ...calm, inFlightNow: 8 } }),
      start,
    );
    expect(rate).toBe(100);
    expect(changes.map(({ reason }) => reason)).toEqual(['unverified']);
  });

  test('a rate that the policy states stays, and so does one without bounds', () => {
    const parts = () => ({ signals: p95(120), traffic: { ...calm, inFlightNow: 8 } });
    expect(run(stated, 30, parts, { ...start, rate: 399 }).changes).toEqual([]);
    const { bounds: _, ...rest } = { ...free, limiter, bounds };
    const boundless = policyOf({ ...rest, bounds: undefined });
    expect(run(boundless, 30, parts, start).changes).toEqual([]);
  });

  test('C70: a service that is slow by itself is not cut to the floor', () => {
    // 230 ms whatever the rate: near the setpoint of 250 ms, above the aim.
    const { rate } = run(
      stated,
      300,
      (_, now) => ({
        signals: p95(230),
        traffic: {
          deniedByRate: 5,
          inFlightNow: now / 10,
          meanMs: 100,
          admittedRate: now,
          okRate: now,
        },
      }),
      { rate: 200, inFlightMax: 0 },
    );
    expect(rate).toBeGreaterThan(50);
  });
});
