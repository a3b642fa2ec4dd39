/** Reserves that the law moves: only where the policy bounds them, after sustained pressure, and back again. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Reserves } from '../../src/decide/types.js';
import {
  createDecideState,
  type Policy,
  type PolicyInput,
  parsePolicy,
  reviveDecideState,
  turn,
} from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

const bounds = { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } };
const policyWith = (reserve: NonNullable<PolicyInput['bounds']>['reserve'], own = {}) =>
  policyOf({
    limiter: { name: 'checkout', rate: 100, capacity: 50, inFlightMax: 24, reserve: own },
    control: { law: 'fixed' },
    bounds: { ...bounds, reserve },
  });

const PRESSED = { deniedByRate: 60, offeredRate: 160, admittedRate: 100 };
const RELAXED = { deniedByRate: 0, offeredRate: 70, admittedRate: 70 };
/** What is shed makes room: nobody of higher priority is denied, but all together would not fit. */
const SHED = { deniedByRate: 0, offeredRate: 160, admittedRate: 80 };

function run(policy: Policy, seconds: readonly SampleParts['traffic'][], inForce = {}) {
  let state = createDecideState(policy);
  let reserve: Reserves = policy.limiter.reserve;
  return seconds.map((traffic) => {
    const sample = sampleOf({ traffic: traffic ?? {}, inForce });
    sample.inForce.target = { ...sample.inForce.target, reserve };
    // As a checkpoint of another daemon would give it.
    const turned = turn(
      policy,
      reviveDecideState(policy, JSON.parse(JSON.stringify(state))),
      sample,
    );
    state = turned.state;
    if (turned.decision.change && turned.decision.reserve) reserve = turned.decision.reserve;
    return { ...turned.decision, now: reserve };
  });
}

const times = (n: number, traffic: SampleParts['traffic']) =>
  Array<SampleParts['traffic']>(n).fill(traffic);

describe('the way up and down', () => {
  const policy = policyWith({ sheddable: 0.4, default: 0.2 });

  test('five seconds of pressure: a quarter of the way, sheddable first, default after it', () => {
    const decided = run(policy, times(45, PRESSED));
    const moves = decided.filter(({ change }) => change);
    expect(decided.findIndex(({ change }) => change)).toBe(4);
    expect(moves.map(({ now }) => now.sheddable)).toEqual([0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4]);
    expect(moves.map(({ now }) => now.default)).toEqual([0, 0, 0, 0, 0.05, 0.1, 0.15, 0.2]);
    expect(moves[0]).toMatchObject({ reason: 'reserve_raise', rate: 100 });
    expect(moves[0]!.sentence).toBe(
      '160/s asked for, 100/s admitted: sheddable requests are shed first; reserve for above sheddable 0 → 10 %.',
    );
  });

  test('once what is shed makes room it stays; with room for all it goes back, default first', () => {
    const up = times(30, PRESSED);
    const decided = run(policy, [...up, ...times(60, SHED), ...times(60, RELAXED)]);
    expect(decided.slice(30, 90).some(({ change }) => change)).toBe(false);
    const back = decided.slice(90).filter(({ change }) => change);
    expect(back.map(({ now }) => now.default)).toEqual([0.05, 0, 0, 0, 0, 0].slice(0, back.length));
    expect(back.every(({ reason }) => reason === 'reserve_lower')).toBe(true);
    expect(back.at(-1)!.now).toEqual({ default: 0, sheddable: 0 });
  });

  test('a burst of four seconds, or pressure that breaks off, moves nothing', () => {
    const burst = [...times(4, PRESSED), RELAXED];
    expect(run(policy, [...burst, ...burst, ...burst]).some(({ change }) => change)).toBe(false);
  });

  test('from the policy’s own reserves, and never below them', () => {
    const own = policyWith({ sheddable: 0.5 }, { default: 0.1, sheddable: 0.3 });
    const decided = run(own, [...times(60, PRESSED), ...times(100, RELAXED)]);
    expect(decided[59]!.now).toEqual({ default: 0.1, sheddable: 0.5 });
    expect(decided.at(-1)!.now).toEqual({ default: 0.1, sheddable: 0.3 });
  });
});

describe('what leaves it alone', () => {
  const policy = policyWith({ sheddable: 0.4 });
  test('I4: nothing that is not fresh; I7: what a person holds; not while open', () => {
    expect(run(policy, times(60, { ...PRESSED, fresh: false })).some(({ change }) => change)).toBe(
      false,
    );
    expect(run(policy, times(60, PRESSED), { held: 'frozen' }).some(({ change }) => change)).toBe(
      false,
    );
    expect(run(policy, times(60, PRESSED), { state: 'open' }).some(({ change }) => change)).toBe(
      false,
    );
  });
  test('off by default: a policy without it decides as before, and says nothing of reserves', () => {
    const plain = policyOf({ control: { law: 'fixed' } });
    expect('reserve' in (plain.bounds ?? {})).toBe(false);
    const decided = run(plain, times(60, PRESSED));
    expect(decided.some((each) => each.change || 'reserve' in each)).toBe(false);
    expect(JSON.stringify(turn(plain, createDecideState(plain), sampleOf()).state)).not.toContain(
      'pressed',
    );
  });
});

test('any traffic: within the bounds, default never above sheddable, one step at a time', () => {
  const share = fc.double({ min: 0, max: 0.9, noNaN: true });
  fc.assert(
    fc.property(
      fc.record({ own: share, most: share, ownDefault: share, mostDefault: share }),
      fc.array(fc.constantFrom(PRESSED, RELAXED, SHED, { ...PRESSED, fresh: false }), {
        maxLength: 120,
      }),
      (shares, traffic) => {
        const sheddable = [shares.own, shares.most].sort((a, b) => a - b);
        const usual = [shares.ownDefault, shares.mostDefault].sort((a, b) => a - b);
        const own = { sheddable: sheddable[0]!, default: Math.min(usual[0]!, sheddable[0]!) };
        const policy = policyWith({ sheddable: sheddable[1]!, default: usual[1]! }, own);
        let before: Reserves = own;
        for (const { now } of run(policy, traffic)) {
          expect(now.default).toBeLessThanOrEqual(now.sheddable + 1e-9);
          expect(now.sheddable).toBeGreaterThanOrEqual(own.sheddable - 1e-4);
          expect(now.sheddable).toBeLessThanOrEqual(sheddable[1]! + 1e-4);
          expect(now.default).toBeGreaterThanOrEqual(own.default - 1e-4);
          const way =
            0.25 * Math.max(sheddable[1]! - own.sheddable, usual[1]! - own.default) + 2e-4;
          expect(Math.abs(now.sheddable - before.sheddable)).toBeLessThanOrEqual(way);
          before = now;
        }
      },
    ),
    { numRuns: 60 },
  );
});

test.each([
  [{ sheddable: 0.2 }, 'bounds.reserve.sheddable', 'below limiter.reserve (0.3)'],
  [{ sheddable: 0.99 }, 'bounds.reserve.sheddable', 'less than one take of that priority'],
])('a bound that cannot be is refused: %o', (reserve, field, message) => {
  const { faults = [] } = parsePolicy(
    {
      limiter: { name: 'a', rate: 40, capacity: 10, reserve: { sheddable: 0.3 } },
      bounds: { rate: { min: 30, max: 50 }, reserve },
    },
    'a.ts',
  );
  expect(faults.map((fault) => fault.field)).toEqual([field]);
  expect(faults[0]!.message).toContain(message);
});
