import { describe, expect, test } from 'vitest';
import { restingNumbers } from '../../src/actuate/person-policy.js';
import { dueRepair } from '../../src/daemon/repairs.js';
import { inForceView } from '../../src/daemon/view.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { policySchema } from '../../src/policy/schema.js';
import { byPersonText } from '../../src/redis/by-person.js';
import type { Params } from '../../src/redis/params.js';

const policy = policySchema.parse({
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  whenLost: { after: 1000, over: 1000, rate: 50, inFlight: 10 },
  mode: 'auto',
});
const NOW = 1_700_000_000_000;

function params(overrides: Partial<Params> = {}): Params {
  return {
    v: 1,
    epoch: 1,
    revision: 7,
    accrued: 0,
    subjectAccrued: 0,
    floor: 0,
    subjectFloor: 0,
    changedAt: (NOW - 10_000) * 1000,
    validUntil: NOW + 500,
    fence: 3,
    policyHash: 'abc',
    ...paramsFromPolicy(policy),
    ...overrides,
  } as Params;
}

function due(overrides: Partial<Params>) {
  const p = params(overrides);
  const { view } = inForceView(p, NOW, null);
  return dueRepair(policy, p, view, NOW * 1000, restingNumbers(policy, p));
}

test('nothing is due in a plain tick', () => {
  expect(due({})).toBeNull();
  expect(due({ state: 'open', openUntil: NOW + 1000 })).toBeNull();
  expect(due({ pinnedUntil: NOW + 1000, rate: 5 })).toBeNull();
  expect(due({ pinnedUntil: -1, frozenUntil: NOW - 5 })).toBeNull();
});

test('I7: a lapsed pin is cleared, and the law goes on from the held value within bounds', () => {
  const inside = due({ pinnedUntil: NOW - 1, rate: 70, heldBy: 'kim' });
  expect(inside).toMatchObject({
    reason: 'hold_lapsed',
    cause: 'settle',
    change: { pinnedUntil: 0, frozenUntil: 0, heldBy: '', holdBreaker: 0, rate: 70 },
  });
  expect(inside!.sentence).toContain('by kim is over');
  expect(due({ pinnedUntil: NOW - 1, rate: 5 })!.change.rate).toBe(20);
  expect(due({ frozenUntil: NOW - 1, rate: 70 })!.change).not.toHaveProperty('rate');
});

test('a clock that went back: one write, which the script uses to bring its clock along', () => {
  const repair = due({ changedAt: (NOW + 23 * 3_600_000) * 1000 });
  expect(repair).toMatchObject({ reason: 'clock_regression', cause: 'settle', change: {} });
  expect(repair!.detail).toEqual({ behindMs: 23 * 3_600_000 });
});

describe('I11: after a glide the entry says what held meanwhile', () => {
  test('half way and at its end', () => {
    const half = due({ validUntil: NOW - 1500 })!;
    expect(half.reason).toBe('glide_settled');
    expect(half.change).toMatchObject({ state: 'closed', rate: 75, inFlightMax: 15 });
    expect(half.detail).toMatchObject({
      heldMeanwhile: { fromRate: 100, toRate: 75, safeRate: 50, validUntil: NOW - 1500 },
    });
    expect(due({ validUntil: NOW - 60_000 })!.change).toMatchObject({ rate: 50, inFlightMax: 10 });
  });

  test('from half-open it is a slow start, between probe rate and safe rate', () => {
    const repair = due({ state: 'open', openUntil: NOW - 1500, validUntil: NOW - 9000 })!;
    expect(repair.change).toMatchObject({ state: 'recovering', rate: 25.5 });
  });
});

describe('modes in which the law writes nothing', () => {
  test('a trip that is over ends: nobody else would end it', () => {
    const repair = due({ mode: 'recommend', state: 'open', openUntil: NOW - 1 });
    expect(repair).toMatchObject({ reason: 'trip_over', change: { state: 'closed', rate: 100 } });
    expect(due({ mode: 'recommend', state: 'open', openUntil: -1 })).toBeNull();
  });

  test('I12: once nobody holds others, the policy’s numbers are in force', () => {
    expect(due({ mode: 'recommend', rate: 70 })).toMatchObject({
      reason: 'policy_numbers',
      change: { rate: 100, capacity: 200, inFlightMax: 20 },
    });
    expect(due({ mode: 'recommend', rate: 70, pinnedUntil: -1 })).toBeNull();
    // What a person approved stands in place of the policy's, and their bounds are kept.
    const mode = { is: 'recommend', over: 'auto', by: 'ada' } as const;
    const approved = byPersonText({ mode, rate: { is: 70, over: 100, by: 'ada' } });
    expect(due({ mode: 'recommend', rate: 70, byPerson: approved })).toBeNull();
    expect(due({ mode: 'recommend', rate: 100, maxRate: 80 })).toMatchObject({
      change: { rate: 80, capacity: 200 },
    });
    expect(due({ mode: 'auto', rate: 70 })).toBeNull();
  });
});
