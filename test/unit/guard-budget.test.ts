/** What bounds changes beyond one raise: drift within an hour, the fleet's budget, the ceiling after a failover, a profile. */
import { describe, expect, test } from 'vitest';
import { turnWithin } from '../../src/daemon/fleet-budget.js';
import { policyNow } from '../../src/daemon/put-right.js';
import { turn } from '../../src/guard/turn.js';
import { parsePolicy } from '../../src/policy/parse.js';
import type { Params } from '../../src/redis/params.js';
import { createDecideState, guard, type Proposal } from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

type Target = { rate: number; capacity: number; inFlightMax: number };

function proposed(change: Partial<Proposal>, target: Target): Proposal {
  return {
    ...{ state: 'closed', ...target, cause: 'law', reason: 'law_raise', why: 'test' },
    ...{ sentence: 'test.', terms: {} },
    ...change,
  } as Proposal;
}

describe('driftPerHour', () => {
  const policy = policyOf({
    bounds: { rate: { min: 1, max: 100_000 }, inFlight: { min: 1, max: 10_000 } },
    guards: { driftPerHour: 4, cooldown: 0, changesPerMinute: 10_000, deadBand: 0, raiseMax: 10 },
  });

  /** Asks for `want` each minute; returns what was in force after each. */
  function climb(minutes: number, want: (rate: number, minute: number) => number): number[] {
    let state = createDecideState(policy);
    let target = { rate: 100, capacity: 100, inFlightMax: 20 };
    const rates: number[] = [];
    for (let minute = 0; minute < minutes; minute++) {
      const sample = sampleOf({
        inForce: { target, rate: target.rate },
        dtMs: 60_000,
      } as SampleParts);
      const rate = want(target.rate, minute);
      const turned = guard(policy, state, sample, proposed({ rate }, target));
      state = turned.state;
      target = { ...target, rate: turned.decision.rate };
      rates.push(target.rate);
    }
    return rates;
  }

  test('however a law climbs, no hour sees more than the factor; half at once, half over the time', () => {
    const rates = [100, ...climb(360, (rate) => rate * 3)];
    expect(rates[1]).toBe(200);
    for (let i = 0; i + 60 < rates.length; i++) {
      expect(rates[i + 60]! / rates[i]!).toBeLessThanOrEqual(4.05);
    }
    expect(rates.at(-1)! / 100).toBeGreaterThan(2 ** 6);
  });

  test('a cut never waits, and the way back up after it is no drift', () => {
    const rates = climb(20, (rate, minute) => (minute === 5 ? rate / 8 : minute < 5 ? rate : 1000));
    expect(rates[5]).toBe(12.5);
    expect(rates[6]).toBe(125);
    expect(rates[7]).toBeGreaterThan(180);
    expect(rates[7]).toBeLessThanOrEqual(201);
  });

  test('without it the memory is as it was, and nothing is held', () => {
    const plain = policyOf({});
    const turned = guard(
      plain,
      createDecideState(plain),
      sampleOf({}),
      proposed({}, sampleOf({}).inForce.target),
    );
    expect(turned.state.memory.guard).not.toHaveProperty('driftRate');
  });
});

describe('the fleet’s budget', () => {
  const policy = policyOf({});
  const { target } = sampleOf({}).inForce;
  const waiting = { ...sampleOf({}), raisesWait: true };
  const judge = (change: Partial<Proposal>) =>
    guard(policy, createDecideState(policy), waiting, proposed(change, target)).decision;

  test('raises wait, and say why; cuts and trips do not', () => {
    const raise = judge({ rate: 150, inFlightMax: 10 });
    expect(raise).toMatchObject({ rate: target.rate, inFlightMax: 10 });
    expect(raise.verdicts.map((verdict) => verdict.guard)).toContain('fleet');
    expect(judge({ rate: 50 })).toMatchObject({ rate: 50, change: true });
    expect(judge({ state: 'open', cause: 'breaker', rate: 150 }).state).toBe('open');
  });

  test('who leads asks for a raise once, tells of a cut, and asks nothing for a trip or for no change', async () => {
    const asked: number[] = [];
    const spend = async (factor: number) => {
      asked.push(factor);
      return false;
    };
    const fixed = policyOf({ control: { law: 'fixed' } });
    const still = sampleOf({});
    await turnWithin(spend, fixed, createDecideState(fixed), still);
    expect([asked, still.raisesWait]).toEqual([[], undefined]);
    // Above the policy: the turn brings it down.
    const above = sampleOf({
      inForce: { target: { ...target, rate: 800 }, rate: 800 },
    } as SampleParts);
    const { decision } = await turnWithin(spend, fixed, createDecideState(fixed), above);
    expect(decision.rate).toBe(100);
    // The larger of the two factors: the cap stays.
    expect(asked).toEqual([1]);
    expect(above.raisesWait).toBeUndefined();
    expect(turn(fixed, createDecideState(fixed), above).decision).toEqual(decision);
    expect(
      (await turnWithin(null, fixed, createDecideState(fixed), sampleOf({}))).decision.change,
    ).toBe(false);
  });

  test('where nobody answers for the budget a cut goes through at once, and a raise waits', async () => {
    const fixed = policyOf({ control: { law: 'fixed' } });
    const from = (rate: number) =>
      sampleOf({ inForce: { target: { ...target, rate }, rate } } as SampleParts);
    const away = () => Promise.reject(new Error('CLUSTERDOWN'));
    const hangs = () => new Promise<boolean>(() => {});
    for (const spend of [away, hangs]) {
      const cut = await turnWithin(spend, fixed, createDecideState(fixed), from(800));
      expect([cut.decision.change, cut.decision.rate]).toEqual([true, 100]);
    }
    const low = from(1);
    expect(turn(fixed, createDecideState(fixed), low).decision.rate).toBeGreaterThan(1);
    const raise = await turnWithin(away, fixed, createDecideState(fixed), low);
    // What was refused is in the sample, so that the decision can be explained from its entry.
    expect(low.raisesWait).toBe(true);
    expect(turn(fixed, createDecideState(fixed), low).decision).toEqual(raise.decision);
  });
});

test('the ceiling after a failover is the most that the law may ask for, never below the bounds', () => {
  const policy = policyOf({ control: { law: 'fixed' } });
  const state = createDecideState(policy);
  const at = (ceiling: number) => turn(policy, state, { ...sampleOf({}), ceiling }).decision.rate;
  expect([at(60), at(5), at(900)]).toEqual([60, 20, 100]);
});

test('a profile in the sample is the policy that decides, and the one in the params is named there', () => {
  const parsed = parsePolicy(
    {
      limiter: { name: 'checkout', rate: 100, capacity: 200 },
      bounds: { rate: { min: 20, max: 400 } },
      mode: 'auto',
      profiles: { low: { times: 0.1 } },
    },
    'x.ts',
  );
  if (!('policy' in parsed)) throw new Error('faults');
  const { policy } = parsed;
  const state = createDecideState(policy);
  const turned = (profile?: string) =>
    turn(policy, state, { ...sampleOf({}), profile }).decision.rate;
  expect([turned(), turned('low')]).toEqual([100, 10]);
  const windows = JSON.stringify({ profile: { name: 'low', fromMs: 1, untilMs: 2 } });
  expect(policyNow(policy, { windows } as Params).profile).toBe('low');
  expect(policyNow(policy, { windows: '' } as Params)).toEqual({ policy, profile: undefined });
});
