/** The guards: each alone, and what the chain says of them. */
import { describe, expect, test } from 'vitest';
import type { Proposal } from '../../src/testing.js';
import { createDecideState, guard } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

function judge(
  change: Partial<Proposal>,
  options: {
    policy?: Parameters<typeof policyOf>[0];
    sample?: SampleParts;
    guard?: Partial<{ sinceRaiseMs: number; budget: number; missingMs: number }>;
  } = {},
) {
  const policy = policyOf(options.policy);
  const sample = sampleOf(options.sample);
  const fresh = createDecideState(policy);
  const memory = { ...fresh.memory, guard: { ...fresh.memory.guard, ...options.guard } };
  const proposal: Proposal = {
    state: sample.inForce.state,
    rate: sample.inForce.target.rate,
    capacity: sample.inForce.target.capacity,
    inFlightMax: sample.inForce.target.inFlightMax,
    cause: 'law',
    reason: 'law_raise',
    why: 'test',

    terms: {},
    ...change,
  };
  return guard(policy, { ...fresh, memory }, sample, proposal);
}

const spoke = (result: ReturnType<typeof judge>) => result.decision.verdicts.map((v) => v.guard);

test('a sound proposal passes untouched and no guard speaks', () => {
  const result = judge({ rate: 150, inFlightMax: 30 });
  expect(result.decision).toMatchObject({ rate: 150, inFlightMax: 30, change: true, verdicts: [] });
  expect(result.decision.sentence).toBe('test; cap 24 → 30; rate ceiling 100 → 150/s.');
});

describe('bounds', () => {
  test('C70: the floor is the floor, exactly; the breaker is a path of its own', () => {
    const floor = { rate: 3, inFlightMax: 0 };
    expect(judge(floor).decision).toMatchObject({ rate: 20, inFlightMax: 2 });
    expect(spoke(judge(floor))).toContain('bounds');
    expect(judge({ rate: 900, inFlightMax: 900 }, { guard: {} }).decision.rate).toBeLessThanOrEqual(
      400,
    );
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -5])(
    'I1: %s never gets through',
    (bad) => {
      const { decision } = judge({ rate: bad, inFlightMax: bad });
      expect(decision.rate).toBeGreaterThanOrEqual(20);
      expect(decision.rate).toBeLessThanOrEqual(400);
      expect(Number.isInteger(decision.inFlightMax)).toBe(true);
    },
  );

  test('what a person pinned below the minimum is left alone', () => {
    const sample = {
      inForce: { held: 'pinned' as const, target: { rate: 0, capacity: 50, inFlightMax: 0 } },
    };
    expect(judge({}, { sample }).decision).toMatchObject({
      rate: 0,
      inFlightMax: 0,
      change: false,
    });
  });
});

describe('hold', () => {
  test.each(['frozen', 'pinned'] as const)(
    'I7: %s: the law changes nothing, a trip goes through',
    (held) => {
      const sample = { inForce: { held } };
      const refused = judge({ rate: 50, inFlightMax: 5 }, { sample });
      expect(refused.decision).toMatchObject({ rate: 100, inFlightMax: 24, change: false });
      expect(refused.decision.verdicts[0]).toMatchObject({ guard: 'hold', effect: 'refused' });
      const trip = { state: 'open' as const, cause: 'breaker' as const, reason: 'breaker_trip' };
      expect(judge(trip, { sample }).decision).toMatchObject({ state: 'open', change: true });
      const all = { inForce: { held, holdBreaker: true } };
      expect(judge(trip, { sample: all }).decision).toMatchObject({
        state: 'closed',
        change: false,
      });
    },
  );
});

describe('staleness (I4)', () => {
  const gone = {
    p95: { value: 100, fresh: false, ageMs: 9000, count: 10, reason: 'stale' as const },
  };
  const sample = { signals: gone };

  test('C58: a missing signal of the objective holds raises, not cuts', () => {
    const raise = judge({ rate: 150, inFlightMax: 30 }, { sample });
    expect(raise.decision).toMatchObject({ change: false, reason: 'signal_missing' });
    expect(raise.decision.verdicts[0]?.sentence).toContain('p95 missing');
    expect(judge({ inFlightMax: 10 }, { sample }).decision).toMatchObject({
      inFlightMax: 10,
      change: true,
    });
  });

  test('ignore lets the other signals decide, but nothing fresh at all still raises nothing', () => {
    const policy = {
      onMissing: 'ignore' as const,
      objective: { p95: { below: '250ms' }, errors: { below: '1%' } },
    } satisfies Parameters<typeof policyOf>[0];
    const errors = { value: 0, fresh: true, ageMs: 300, count: 100 };
    const known = { signals: { ...gone, errors } };
    expect(judge({ rate: 150 }, { sample: known, policy }).decision.change).toBe(true);
    const blind = { signals: { ...gone, errors }, traffic: { fresh: false } };
    expect(judge({ rate: 150 }, { sample: blind, policy }).decision).toMatchObject({
      change: false,
      reason: 'no_evidence',
    });
  });

  test('when no signal of the objective is known there is nothing left to decide by', () => {
    const raise = judge({ rate: 150 }, { sample, policy: { onMissing: 'ignore' } });
    expect(raise.decision).toMatchObject({ change: false, reason: 'signal_missing' });
  });

  test('an objective says for its own signal what is done while it is missing', () => {
    const policy = {
      objective: { p95: { below: '250ms', onMissing: 'ignore' }, errors: { below: '1%' } },
    } satisfies Parameters<typeof policyOf>[0];
    const errors = { value: 0, fresh: true, ageMs: 300, count: 100 };
    const known = { signals: { ...gone, errors } };
    expect(judge({ rate: 150 }, { sample: known, policy }).decision.change).toBe(true);
    const lost = { ...errors, fresh: false, reason: 'timeout' as const };
    const both = judge({ rate: 150 }, { sample: { signals: { ...gone, errors: lost } }, policy });
    expect(both.decision).toMatchObject({ change: false, reason: 'signal_missing' });
  });

  test('the law `step` needs no objective: the waits that it reads count as if they had one', () => {
    const policy = {
      signals: { waits: { source: 'postgres', stat: 'waiting', url: 'postgres://db' } },
      objective: {},
      breaker: undefined,
      control: { law: 'step', dbWaitsAbove: 2 },
    } satisfies Parameters<typeof policyOf>[0];
    const waits = { value: 1, fresh: false, ageMs: 9000, count: 1, reason: 'timeout' as const };
    const raise = judge({ rate: 150 }, { sample: { signals: { waits } }, policy });
    expect(raise.decision).toMatchObject({ change: false, reason: 'signal_missing' });
    const off = { ...policy, control: { law: 'step' } } as const;
    expect(
      judge({ rate: 150 }, { sample: { signals: { waits } }, policy: off }).decision.change,
    ).toBe(true);
  });

  test('glide goes down to the safe values and never up', () => {
    const policy = {
      onMissing: 'glide',
      whenLost: { after: '10s', over: '10s', rate: 60, inFlight: 12 },
    } as const;
    const held = judge({}, { sample, policy, guard: { missingMs: 5_000 } });
    expect(held.decision.change).toBe(false);
    const on = judge({}, { sample, policy, guard: { missingMs: 14_000 } });
    expect(on.decision.rate).toBeLessThan(100);
    expect(on.decision.rate).toBeGreaterThan(60);
    const end = judge({}, { sample, policy, guard: { missingMs: 25_000 } });
    expect(end.decision).toMatchObject({ rate: 60, inFlightMax: 12, reason: 'glide_missing' });
    const low = { signals: gone, inForce: { target: { rate: 30, capacity: 50, inFlightMax: 4 } } };
    const stay = judge({}, { sample: low, policy, guard: { missingMs: 25_000 } });
    expect(stay.decision).toMatchObject({ rate: 30, inFlightMax: 4, change: false });
  });
});

describe('pace', () => {
  test('slew: one raise at most doubles, and a cap of 1 may become 2', () => {
    expect(judge({ rate: 390, inFlightMax: 60 }).decision).toMatchObject({
      rate: 200,
      inFlightMax: 48,
    });
    const low = { inForce: { target: { rate: 100, capacity: 50, inFlightMax: 2 } } };
    const gentle = { guards: { raiseMax: 1.1 } };
    expect(judge({ inFlightMax: 9 }, { sample: low, policy: gentle }).decision.inFlightMax).toBe(3);
  });

  test('cool-down: raises wait, cuts do not', () => {
    const soon = { guard: { sinceRaiseMs: 500 } };
    expect(judge({ rate: 150, inFlightMax: 12 }, soon).decision).toMatchObject({
      rate: 100,
      inFlightMax: 12,
      change: true,
    });
    expect(spoke(judge({ rate: 150 }, soon))).toEqual(['cooldown']);
  });

  test('budget: beyond it raises wait; it refills, and cuts spend it too', () => {
    const empty = { guard: { budget: 0 } };
    expect(judge({ rate: 150 }, empty).decision.change).toBe(false);
    const cut = judge({ inFlightMax: 12 }, empty);
    expect(cut.decision.change).toBe(true);
    expect(cut.state.memory.guard.budget).toBe(0);
    const full = judge({ inFlightMax: 12 }, { guard: { budget: 7 } });
    expect(full.state.memory.guard.budget).toBeCloseTo(7 + 15 / 60 - 1, 5);
  });
});

test('dead band: small changes wait for more, each number by itself', () => {
  expect(judge({ rate: 102 }).decision.change).toBe(false);
  const one = judge({ rate: 102, inFlightMax: 20 });
  expect(one.decision).toMatchObject({ rate: 100, inFlightMax: 20, change: true });
});

test('taking over a glide: what really held is settled, in one change', () => {
  const sample = { inForce: { gliding: true, rate: 70, inFlightMax: 20 } };
  const { decision } = judge({ rate: 70, inFlightMax: 20, cause: 'settle' }, { sample });
  expect(decision).toMatchObject({ rate: 70, inFlightMax: 20, change: true });
});

test('capacity follows the rate only when it has bounds', () => {
  expect(judge({ rate: 50 }).decision.capacity).toBe(50);
  const bounds = {
    rate: { min: 20, max: 400 },
    inFlight: { min: 2, max: 64 },
    capacity: { min: 10, max: 80 },
  };
  expect(judge({ rate: 50 }, { policy: { bounds } }).decision.capacity).toBe(25);
  expect(judge({ rate: 200 }, { policy: { bounds } }).decision.capacity).toBe(80);
});

test('I4: what lies below the minimum comes up to it on fresh telemetry alone', () => {
  const inForce = { target: { rate: 5, capacity: 50, inFlightMax: 1 } };
  const blind = judge({}, { sample: { inForce, traffic: { fresh: false } } });
  expect(blind.decision).toMatchObject({ rate: 5, inFlightMax: 1, change: false });
  const seen = judge({}, { sample: { inForce } });
  expect(seen.decision).toMatchObject({ rate: 20, inFlightMax: 2, change: true });
});

test('a number that nothing moves is not rounded: that would be a change without a cause', () => {
  const target = { rate: 203.71, capacity: 50, inFlightMax: 24 };
  expect(judge({}, { sample: { inForce: { target } } }).decision.change).toBe(false);
});
