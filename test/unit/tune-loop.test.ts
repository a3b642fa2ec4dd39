/** What is learnt of a loop from its own changes, and what of the law follows. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LoopMemory } from '../../src/decide/types.js';
import {
  createDecideState,
  LAW_VERSIONS,
  type Policy,
  reviveDecideState,
  type Sample,
  step,
  turn,
} from '../../src/testing.js';
import { loopIn, noLoop, observeLoop } from '../../src/tune/loop.js';
import {
  DEFAULT_LOOP,
  fitLoop,
  holdOffMs,
  type LoopFit,
  tuningOf,
} from '../../src/tune/loop-fit.js';
import { loopView } from '../../src/view/status-loop.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';
import { normalFrom, type Synthetic, watch } from '../support/synthetic-loop.js';

const usual: Synthetic = { deadMs: 1500, gain: 0.8, noise: 0.05, everyMs: 1000, seconds: 600 };
const fitOf = (loop: Partial<Synthetic>) => fitLoop(watch({ ...usual, ...loop }));

describe('a known loop', () => {
  test('dead time within a sample and a quarter, gain within three tenths, whatever they are', () => {
    const loops = fc.record({
      deadMs: fc.integer({ min: 300, max: 20_000 }),
      gain: fc.double({ min: 0.3, max: 1.5, noNaN: true }),
      share: fc.double({ min: 0.01, max: 0.1, noNaN: true }),
      seed: fc.integer({ min: 1, max: 1e6 }),
    });
    fc.assert(
      fc.property(loops, ({ share, ...loop }) => {
        // A step of the limit is 0.2: so much of what it does is lost in noise.
        const fit = fitOf({ ...loop, noise: share * loop.gain });
        expect(Math.abs(fit.deadMs - loop.deadMs)).toBeLessThan(1000 + 0.25 * loop.deadMs);
        expect(Math.abs(fit.gain - loop.gain)).toBeLessThan(0.3 * loop.gain);
        expect(fit.trust).toBeGreaterThan(0.3);
      }),
      { numRuns: 25 },
    );
  });

  test('samples of 15 s show it later than samples of 1 s, and hold off longer', () => {
    const slow = fitOf({ everyMs: 15_000, seconds: 7200, changeMs: 60_000 });
    const quick = fitOf({});
    expect(slow.trust).toBeGreaterThan(0.5);
    expect(slow.deadMs).toBeGreaterThan(4000);
    expect(slow.deadMs).toBeLessThan(16_500);
    expect(holdOffMs(tuningOf(slow), 5000)).toBeGreaterThan(2 * holdOffMs(tuningOf(quick), 5000));
  });

  test('what changed is learnt anew within minutes', () => {
    const before = watch(usual)!;
    expect(fitLoop(before).deadMs).toBeLessThan(2500);
    const after = watch({ ...usual, deadMs: 8000, seconds: 900 }, before);
    expect(fitLoop(after).deadMs).toBeGreaterThan(6000);
  });
});

describe('too little, or nothing: exactly the defaults', () => {
  const parts = (inForce: Partial<Sample['inForce']>, traffic: object = {}) => ({
    parts: { inForce, traffic },
  });

  test.each<[string, Partial<Synthetic>]>([
    ['a limit that never moves', { step: 0 }],
    ['a minute', { seconds: 40 }],
    ['nothing but noise', { gain: 0, noise: 0.2 }],
    ['noise that hides it', { gain: 0.3, noise: 1 }],
    ['a signal that falls when the limit rises', { gain: -0.8 }],
    ['would-be values, which nothing answers to', parts({ mode: 'recommend' })],
    ['a breaker that is open', parts({ state: 'open' })],
    ['a limit that does not bind', parts({}, { deniedByCap: 0, inFlight: 1 })],
    ['traffic that is not fresh', parts({}, { fresh: false })],
  ])('%s', (_name, loop) => {
    const fit = fitOf(loop);
    expect(fit.trust).toBe(0);
    expect(tuningOf(fit)).toBe(DEFAULT_LOOP);
    expect(holdOffMs(tuningOf(fit), 1234.5)).toBe(1234.5);
  });

  test('noise alone is trusted by none of a hundred seeds', () => {
    for (let seed = 1; seed <= 100; seed++) {
      expect(fitOf({ gain: 0, noise: 0.15, seed }).trust, `seed ${seed}`).toBe(0);
    }
  });

  test('the law with defaults decides as without: to the digit', () => {
    const policy = policyOf();
    const sample = sampleOf({
      signals: { p95: { value: 400, fresh: true, ageMs: 300, count: 400 } },
      traffic: { deniedByCap: 10, inFlight: 23 },
    });
    const shadow = { ...sample, inForce: { ...sample.inForce, mode: 'shadow' as const } };
    const { proposal } = step(policy, createDecideState(policy), sample);
    const { proposal: bare } = step(policy, createDecideState(policy), shadow);
    expect(bare.terms.loopTrust).toBeUndefined();
    expect(proposal.terms).toMatchObject({ ...bare.terms, loopTrust: 0, loopCut: 1 });
    expect({ ...proposal, terms: {} }).toEqual({ ...bare, terms: {} });
  });
});

describe('what follows', () => {
  const good: LoopFit = {
    ...{ deadMs: 1500, gain: 0.8, fit: 0.6, noise: 0.2, changes: 20, trust: 1 },
  };

  test('hold-off follows dead time, steps the gain, room the noise', () => {
    const late = tuningOf({ ...good, deadMs: 2500 });
    expect(holdOffMs(late, 1500)).toBeCloseTo(2500);
    expect(late.raise).toBeLessThan(tuningOf(good).raise);
    expect(late.cut).toBe(tuningOf(good).cut);
    const strong = tuningOf({ ...good, gain: 1.2 });
    expect(strong.cut).toBeLessThan(tuningOf(good).cut);
    expect(strong.raise).toBeLessThan(tuningOf(good).raise);
    const noisy = tuningOf({ ...good, noise: 0.25 });
    expect(noisy.headroom).toBeGreaterThan(tuningOf(good).headroom);
  });

  test('the rate-only form takes over the wait alone, never less than the samples are old', () => {
    const tuning = tuningOf({ ...good, gain: 3, noise: 0.5, deadMs: 2500 }, 1);
    expect(tuning).toEqual({ ...DEFAULT_LOOP, trust: 1, deadMs: 2500 });
    expect(holdOffMs(tuning, 2000)).toBe(2500);
    expect(holdOffMs({ ...tuning, deadMs: 600 }, 2000, 1800)).toBeCloseTo(1800);
  });

  test('never beyond half and twice, and in proportion to the trust', () => {
    const any = fc.record({
      deadMs: fc.double({ min: 1, max: 1e6, noNaN: true }),
      gain: fc.double({ min: 0.1, max: 10, noNaN: true }),
      fit: fc.double({ min: 0, max: 1, noNaN: true }),
      noise: fc.double({ min: 0, max: 10, noNaN: true }),
      changes: fc.nat(100),
      trust: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(any, fc.double({ min: 1, max: 1e6, noNaN: true }), (fit, reckonedMs) => {
        const tuning = tuningOf(fit);
        const hold = holdOffMs(tuning, reckonedMs) / reckonedMs;
        for (const factor of [tuning.cut, tuning.raise, tuning.headroom, hold]) {
          expect(factor).toBeGreaterThanOrEqual(0.5 ** fit.trust - 1e-9);
          expect(factor).toBeLessThanOrEqual(2 ** fit.trust + 1e-9);
        }
      }),
    );
  });

  test('a loop learnt is in the terms, and in what the law does', () => {
    const policy = policyOf();
    const loop = watch({ ...usual, gain: 1.4, noise: 0.02 })!;
    const fresh = createDecideState(policy);
    const learnt = { ...fresh, memory: { ...fresh.memory, loop } };
    const sample = sampleOf({
      signals: { p95: { value: 110, fresh: true, ageMs: 300, count: 400 } },
      traffic: { deniedByCap: 30, inFlight: 22 },
      inForce: { target: { rate: 100, capacity: 50, inFlightMax: 24 } },
    });
    const { proposal } = step(policy, learnt, sample);
    expect(proposal.terms.loopTrust).toBe(1);
    expect(proposal.terms.loopGain).toBeCloseTo(1.4, 0);
    const plain = step(policy, fresh, sample).proposal;
    expect(proposal.terms.over).not.toBe(plain.terms.over);
    expect(proposal.terms.cap).toBeGreaterThan(24);
    expect(JSON.stringify(step(policy, JSON.parse(JSON.stringify(learnt)), sample).proposal)).toBe(
      JSON.stringify(proposal),
    );
  });
});

describe('in a closed loop of the law itself', () => {
  /** Half an hour on a service of gain 0.9 that answers after a second, and is disturbed by what the law does not do. */
  function terms(disturbed: (s: number) => number): Record<string, number> {
    const policy = policyOf();
    const normal = normalFrom(5);
    const caps = [24];
    let state = createDecideState(policy);
    let last: Record<string, number> = {};
    for (let s = 1; s <= 1800; s++) {
      const cap = caps.at(-1)!;
      const felt = caps.at(-2) ?? cap;
      const answer = 0.9 * Math.log(felt / 24) + disturbed(s) + 0.03 * normal();
      const value = 200 * Math.exp(answer);
      const target = { rate: 100, capacity: 50, inFlightMax: cap };
      const sample = sampleOf({
        signals: { p95: { value, fresh: true, ageMs: 300, count: 400 } },
        traffic: { deniedByCap: 30, inFlight: cap, inFlightNow: cap, meanMs: value / 2 },
        inForce: { target, sinceChangeMs: 1000 },
      });
      const { decision, state: next } = turn(policy, state, sample);
      state = next;
      last = decision.terms;
      caps.push(decision.change ? decision.inFlightMax : cap);
    }
    return last;
  }

  test('a service that drifts all the time is not taken for its answer: the defaults hold', () => {
    const drift = (s: number) => 0.5 * Math.sin(s / 40) + 0.3 * Math.sign(Math.sin(s / 97));
    expect(terms(drift)).toMatchObject({ loopTrust: 0, loopCut: 1, loopRaise: 1, loopHeadroom: 1 });
  });

  test('nor one that jumps now and then, though the law answers each time', () => {
    const { loopTrust } = terms((s) => 0.25 * Math.sign(Math.sin(s / 47)));
    expect(loopTrust).toBe(0);
  });
});

describe('whatever comes', () => {
  const odd = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1e308, 1e-300);
  const num = fc.oneof(fc.double({ min: 0, max: 5000, noNaN: true }), odd);
  const one = fc.record({
    value: num,
    fresh: fc.boolean(),
    dtMs: num,
    intervalMs: num,
    cap: fc.oneof(fc.integer({ min: 1, max: 64 }), odd),
    sinceChangeMs: num,
    deniedByCap: num,
    state: fc.constantFrom('closed', 'open', 'half-open', 'recovering'),
  });

  test('finite, bounded, as JSON, and small', () => {
    fc.assert(
      fc.property(fc.array(one, { maxLength: 200 }), (ticks) => {
        let memory: LoopMemory | undefined;
        for (const { value, fresh, cap, state, ...rest } of ticks) {
          const sample = sampleOf({
            dtMs: rest.dtMs,
            signals: { p95: { value, fresh, ageMs: 0, count: 100 } },
            traffic: { intervalMs: rest.intervalMs, deniedByCap: rest.deniedByCap },
            inForce: {
              state: state as Sample['inForce']['state'],
              sinceChangeMs: rest.sinceChangeMs,
              target: { rate: 100, capacity: 50, inFlightMax: cap },
            },
          });
          memory = observeLoop(policyOf(), memory, {}, sample);
          const text = JSON.stringify(memory);
          expect(text).not.toMatch(/null|NaN|Infinity/);
          expect(text.length).toBeLessThan(1600);
          const { deadMs, gain, fit, noise, trust } = fitLoop(memory);
          for (const of of [deadMs, gain, fit, noise, trust]) expect(of).toBeGreaterThanOrEqual(0);
          for (const of of Object.values(tuningOf(fitLoop(memory)))) {
            expect(Number.isFinite(of)).toBe(true);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a checkpoint brings it back; one of none, or a broken one, begins anew', () => {
    const policy = policyOf();
    const loop = watch(usual)!;
    const state = createDecideState(policy);
    const stored = JSON.parse(JSON.stringify({ ...state, memory: { ...state.memory, loop } }));
    expect(reviveDecideState(policy, stored).memory.loop).toEqual(loop);
    expect(reviveDecideState(policy, state).memory.loop).toBeUndefined();
    for (const bad of [
      { ...loop, uu: [1, 2] },
      { ...loop, limits: [1] },
      { ...loop, yy: null },
      { ...loop, means: ['x'] },
      'loop',
      7,
    ]) {
      expect(loopIn(bad)).toBeUndefined();
      const broken = { ...state, memory: { ...state.memory, loop: bad } };
      expect(reviveDecideState(policy, broken)).toEqual(state);
    }
  });

  test('the rate-only form learns of the rate, and begins anew when the form changes', () => {
    const policy: Policy = policyOf({
      limiter: { name: 'plain', rate: 100, capacity: 50, completions: 'none' },
      bounds: { rate: { min: 20, max: 400 } },
    });
    expect(observeLoop(policy, undefined, {}, sampleOf())?.limits[0]).toBeCloseTo(Math.log(100));
    const learnt = { ...watch(usual)! };
    expect(observeLoop(policyOf(), learnt, { rateOnly: 1 }, sampleOf())).toMatchObject({
      ...{ rateOnly: 1, changes: 0, weight: 0 },
    });
    expect(noLoop(1).rateOnly).toBe(1);
  });

  test('other laws are not tuned, and carry nothing of it', () => {
    const policy = policyOf({ control: { law: 'aimd' } });
    const { state, decision } = turn(policy, createDecideState(policy), sampleOf());
    expect(state.memory.loop).toBeUndefined();
    expect(decision.terms.loopTrust).toBeUndefined();
  });
});

describe('status', () => {
  const law = `adaptive@${LAW_VERSIONS.adaptive}`;
  const told = (terms: Record<string, number>) =>
    loopView({ law, decision: { terms } } as unknown as Parameters<typeof loopView>[0])!;

  test('says what is known, what follows it, or why it is the defaults', () => {
    const known = { loopDeadMs: 1445, loopGain: 0.8, loopFit: 0.62, loopChanges: 31 };
    const good = told({ ...known, loopTrust: 0.8, loopCut: 0.95, loopRaise: 1.3, loopHeadroom: 1 });
    expect(good).toMatchObject({ deadMs: 1445, gain: 0.8, fit: 0.62, trust: 0.8 });
    expect(good.follows).toEqual({ cut: 0.95, raise: 1.3, headroom: 1 });
    expect(good.text).toBe(
      'a change shows after 1.4 s, 10 % more limit is 8 % more signal (R² 0.62 of 31 changes); followed by 80 %: hold-off, cuts × 0.95, raises × 1.3, headroom × 1',
    );
    expect(told({ loopTrust: 0, loopChanges: 3 }).text).toContain('defaults: too few changes');
    const poor = told({ ...known, loopFit: 0.05, loopTrust: 0 });
    expect(poor).toMatchObject({ follows: null, text: expect.stringContaining('poor fit') });
    expect(told({}).text).toContain('mode auto');
    expect(loopView({ law: 'step@1' })).toBeNull();
    expect(loopView(null)).toBeNull();
  });
});
