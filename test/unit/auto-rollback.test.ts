/** The guard `autoRollback`: when goodput fell after the limits rose, and when it is something else. Stage: tests. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ProofMemory } from '../../src/decide/types.js';
import { observeProof, PROOF, settleProof } from '../../src/guard/auto-rollback.js';
import {
  createDecideState,
  guard,
  type Policy,
  type Proposal,
  reviveDecideState,
  type Sample,
} from '../../src/testing.js';
import { policyOf, type SampleParts, sampleOf } from '../sim/fixtures.js';

interface Tick {
  /** What the law wants; absent: what is in force. */
  rate?: number;
  cap?: number;
  ok: number;
  asked?: number;
  /** Somebody else has written since the last tick. */
  sets?: { rate?: number; cap?: number };
  adopted?: boolean;
  traffic?: SampleParts['traffic'];
  inForce?: SampleParts['inForce'];
}

/** A second a tick, unless told otherwise; what is decided is in force at the next. */
function play(
  ticks: readonly Tick[],
  policy: Policy = policyOf(),
  given?: ProofMemory,
  tickMs = 1000,
) {
  const inForce = { rate: 100, capacity: 50, inFlightMax: 24 };
  let proof = given;
  const decisions = ticks.map((tick, i) => {
    if (tick.sets?.rate !== undefined) inForce.rate = tick.sets.rate;
    if (tick.sets?.cap !== undefined) inForce.inFlightMax = tick.sets.cap;
    const { ok, asked = 400 } = tick;
    const sample: Sample = {
      ...sampleOf({
        nowMs: 1_000_000 + tickMs * i,
        dtMs: tickMs,
        traffic: {
          ...{ okRate: ok, answers: (ok * tickMs) / 1000, answerRate: ok, admittedRate: ok },
          ...{ intervalMs: tickMs, offeredRate: asked, deniedByRate: asked - ok },
          ...tick.traffic,
        },
        inForce: { mode: 'auto', ...tick.inForce, target: { ...inForce } },
      }),
      ...(tick.adopted ? { adopted: true } : {}),
    };
    const proposal: Proposal = {
      state: sample.inForce.state,
      ...{
        rate: tick.rate ?? inForce.rate,
        capacity: 50,
        inFlightMax: tick.cap ?? inForce.inFlightMax,
      },
      ...{ cause: 'law', reason: 'law_raise', why: 'test', terms: {} },
    };
    proof = observeProof(policy, proof, sample);
    const { decision } = guard(policy, createDecideState(policy), sample, proposal, proof);
    if (proof !== undefined) settleProof(proof, decision);
    if (decision.change) {
      Object.assign(inForce, { rate: decision.rate, inFlightMax: decision.inFlightMax });
    }
    return decision;
  });
  return { decisions, inForce, proof, back: decisions.filter((d) => d.reason === 'auto_rollback') };
}

const many = (count: number, tick: Tick): Tick[] => Array<Tick>(count).fill(tick);
/** Ten good seconds, then a raise. */
const raised = [...many(10, { ok: 100 }), { ok: 100, rate: 150, cap: 36 }];

describe('goes back', () => {
  test('when goodput falls after its own raise, to what proved good, in a sentence with the numbers', () => {
    const { back, inForce } = play([...raised, ...many(15, { ok: 60 })]);
    expect(back).toHaveLength(1);
    expect(inForce).toMatchObject({ rate: 100, inFlightMax: 24 });
    expect(back[0]!.sentence).toMatch(
      /^100 → 60 good answers\/s since the limits rose \d+ s ago, at 400\/s asked for; back to the last good values; cap 36 → 24; rate ceiling 150 → 100\/s\.$/,
    );
    expect(back[0]!.verdicts).toMatchObject([{ guard: 'autoRollback', effect: 'lowered' }]);
  });

  test('to the last of several raises that proved good', () => {
    const { inForce } = play([
      ...raised,
      ...many(10, { ok: 140 }),
      { ok: 140, rate: 200 },
      ...many(15, { ok: 70 }),
    ]);
    expect(inForce.rate).toBe(150);
  });

  test('when goodput falls within five minutes of an adoption that let the limits rise, and says so', () => {
    const { back, inForce } = play([
      ...many(10, { ok: 100 }),
      { ok: 100, adopted: true, sets: { rate: 150 } },
      ...many(20, { ok: 95 }),
      ...many(70, { ok: 94 }),
      ...many(12, { ok: 60 }),
    ]);
    expect(inForce.rate).toBe(100);
    expect(back[0]!.sentence).toContain('since a policy was adopted');
  });

  test('when hardly anything is answered any more, for that is no pause', () => {
    expect(play([...raised, ...many(25, { ok: 3 })]).back).toHaveLength(1);
    const large = many(10, { ok: 2000, asked: 9000 }).concat({ ok: 2000, asked: 9000, rate: 150 });
    expect(play([...large, ...many(25, { ok: 30, asked: 9000 })]).back).toHaveLength(1);
    const after = [...many(4, { ok: 0 }), ...many(30, { ok: 60 })];
    expect(play([...raised, ...after]).back).toHaveLength(1);
  });

  const again = (times: number, of: readonly Tick[]) => many(times, { ok: 0 }).flatMap(() => of);

  test('where a tick in which one of ten processes had nothing to tell is no pause', () => {
    const idle = { ok: 0, asked: 0 };
    const good = again(200, [...many(9, { ok: 1000, asked: 4000 }), idle]);
    const after = again(20, [...many(9, { ok: 500, asked: 4000 }), idle]);
    const rises = { ok: 1000, asked: 4000, rate: 1500 };
    const policy = policyOf({ bounds: { rate: { min: 20, max: 4000 } } });
    const first = { ...good[0]!, sets: { rate: 1000 } };
    expect(play([first, ...good, rises, ...after], policy, undefined, 100).back).toHaveLength(1);
  });

  test('where all ask in one second of five, as they did while it was good', () => {
    const second = (ok: number) => [{ ok, asked: 1500 }, ...many(4, { ok: 0, asked: 0 })];
    const rises = { ok: 0, asked: 0, rate: 150 };
    expect(play([...again(4, second(500)), rises, ...again(6, second(300))]).back).toHaveLength(1);
    expect(play([...again(4, second(500)), rises, ...again(6, second(490))]).back).toEqual([]);
  });

  test('never below the bounds of today', () => {
    const policy = policyOf({
      bounds: { rate: { min: 120, max: 400 }, inFlight: { min: 30, max: 64 } },
    });
    const { inForce } = play([...raised, ...many(15, { ok: 60 })], policy);
    expect(inForce).toMatchObject({ rate: 120, inFlightMax: 30 });
  });
});

describe('stays', () => {
  const bad = many(40, { ok: 60 });
  const on = (part: Partial<Tick>) => [...raised, ...many(40, { ok: 60, ...part })];
  const cases: [string, readonly Tick[], Policy?][] = [
    ['as good as before', [...raised, ...many(40, { ok: 99 })]],
    ['a little worse', [...raised, ...many(40, { ok: 92 })]],
    [
      'a pause of one window',
      [...raised, ...many(4, { ok: 100 }), ...many(5, { ok: 20 }), ...many(30, { ok: 100 })],
    ],
    // As where a collector stops the service: nothing is answered, then what has waited, late.
    [
      'a longer pause, and what it leaves behind',
      [
        ...[...raised, ...many(3, { ok: 100 }), { ok: 40 }, ...many(11, { ok: 0 })],
        ...[...many(11, { ok: 60 }), ...many(30, { ok: 100 })],
      ],
    ],
    // A second in which all ask at once makes up for none in which nobody does.
    [
      'nobody asks but now and then',
      [...raised, ...many(1, { ok: 100 })].concat(
        ...many(12, { ok: 0 }).map((_, i) =>
          i % 2 === 0 ? many(3, { ok: 2, asked: 2 }) : many(2, { ok: 150, asked: 900 }),
        ),
      ),
    ],
    ['nothing rose', [...many(10, { ok: 100 }), ...bad]],
    // After a quiet time the bucket is full: what it held is answered beside the rate, once.
    [
      'a full bucket was spent before it',
      [300, 100, 100, 100, 100]
        .map((ok) => ({ ok }))
        .concat([{ ok: 100, rate: 105 } as Tick], many(40, { ok: 105 })),
    ],
    ['it rose long ago', [...raised, ...many(70, { ok: 95 }), ...bad]],
    ['too little is asked for to be as good', on({ asked: 90 })],
    ['slower routes are asked for', on({ traffic: { mix: { shift: 1.5, slowdown: 1 } } })],
    ['fewer processes report', on({ traffic: { reporting: 0 } })],
    ['nothing is fresh', on({ traffic: { fresh: false } })],
    ['a person holds it', on({ inForce: { held: 'pinned' } })],
    ['it is frozen', on({ inForce: { held: 'frozen' } })],
    [
      'recommend',
      on({ inForce: { mode: 'recommend' } }).map((t) => ({
        ...t,
        inForce: { mode: 'recommend' as const },
      })),
    ],
    ['switched off', [...raised, ...bad], policyOf({ guards: { autoRollback: false } })],
    ['the law is fixed', [...raised, ...bad], policyOf({ control: { law: 'fixed' } })],
    [
      'too few answers to tell',
      many(60, { ok: 1, asked: 4 }).map((t, i) =>
        i === 30 ? { ...t, rate: 150 } : i > 30 ? { ...t, ok: 0.5, traffic: { answers: 0.5 } } : t,
      ),
    ],
    ['a cut has come before it', [...raised, { ok: 60, rate: 80, cap: 20 }, ...bad]],
  ];
  test.each(cases)('%s', (_, ticks, policy) => {
    expect(play(ticks, policy).back).toEqual([]);
  });

  test('while the breaker is not closed', () => {
    const { back } = play(on({ inForce: { state: 'recovering' } }));
    expect(back).toEqual([]);
  });
});

describe('afterwards', () => {
  const { proof } = play([...raised, ...many(12, { ok: 60 })]);
  const wish = { ok: 100, rate: 140, cap: 30 };

  test('no raise goes beyond it for a minute, and each says why', () => {
    const { decisions, inForce } = play(many(45, wish), policyOf(), proof);
    expect(inForce).toMatchObject({ rate: 100, inFlightMax: 24 });
    expect(decisions.at(-1)!.verdicts).toMatchObject([{ guard: 'autoRollback', effect: 'held' }]);
    expect(play(many(70, wish), policyOf(), proof).inForce.rate).toBe(140);
  });

  test('again and again it waits longer: 1, 2, 4 … at most 60 minutes, and forgets with time', () => {
    let memory: ProofMemory | undefined;
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      const run = play(
        [...many(10, { ok: 100 }), ...raised, ...many(15, { ok: 60 })],
        policyOf(),
        memory,
      );
      expect(run.back).toHaveLength(1);
      waits.push(Math.round(run.proof!.coolMs / 60_000));
      memory = { ...run.proof!, coolMs: 0 };
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    const calm = play(many(PROOF.calmMs / 1000 + 10, { ok: 100 }), policyOf(), memory);
    expect(calm.proof!.level).toBe(PROOF.levels - 1);
  });

  test('a person or a policy that goes beyond it ends the wait', () => {
    const run = play(
      [{ ok: 100, sets: { rate: 150 } }, ...many(5, { ok: 150 }), { ...wish, rate: 180 }],
      policyOf(),
      proof,
    );
    expect(run.inForce.rate).toBe(180);
  });
});

test('property: it never raises, never acts without a rise, and stays within the bounds', () => {
  const tick: fc.Arbitrary<Tick> = fc.record(
    {
      ok: fc.integer({ min: 0, max: 300 }),
      asked: fc.integer({ min: 0, max: 600 }),
      rate: fc.integer({ min: 20, max: 400 }),
      cap: fc.integer({ min: 2, max: 64 }),
      adopted: fc.boolean(),
      traffic: fc.record({ fresh: fc.boolean() }, { requiredKeys: [] }),
      inForce: fc.record({ held: fc.constantFrom('none', 'none', 'none', 'pinned') }),
    },
    { requiredKeys: ['ok'] },
  );
  fc.assert(
    fc.property(fc.array(tick, { minLength: 30, maxLength: 80 }), fc.boolean(), (ticks, falls) => {
      const steps = falls
        ? [...raised, ...ticks.map((t) => ({ ...t, ok: t.ok / 4, asked: 400 }))]
        : ticks;
      let before = { rate: 100, inFlightMax: 24 };
      let highest = before;
      for (const decision of play(steps).decisions) {
        if (decision.reason === 'auto_rollback') {
          expect(decision.rate).toBeLessThanOrEqual(before.rate);
          expect(decision.inFlightMax).toBeLessThanOrEqual(before.inFlightMax);
          expect(highest.rate > decision.rate || highest.inFlightMax > decision.inFlightMax).toBe(
            true,
          );
        }
        expect(decision.rate).toBeGreaterThanOrEqual(20);
        if (decision.change) before = decision;
        highest = {
          rate: Math.max(highest.rate, before.rate),
          inFlightMax: Math.max(highest.inFlightMax, before.inFlightMax),
        };
      }
    }),
  );
});

test('what proved good outlives a checkpoint and another law; what is not whole begins anew', () => {
  const { proof } = play(raised);
  const state = createDecideState(policyOf());
  const stored = { ...state, memory: { ...state.memory, proof } };
  expect(reviveDecideState(policyOf(), stored).memory.proof).toEqual(proof);
  const other = policyOf({ control: { law: 'aimd' } });
  expect(reviveDecideState(other, stored).memory.proof).toEqual(proof);
  const { peak: _, goodPeak: __, ...older } = proof!;
  const ofOlder = { ...state, memory: { ...state.memory, proof: older } };
  expect(reviveDecideState(policyOf(), ofOlder).memory.proof).toEqual(older);
  for (const broken of [{ ...proof, ms: 'x' }, { ...proof, peak: 'x' }, { rate: 1 }, 7, null]) {
    const text = JSON.parse(
      JSON.stringify({ ...stored, memory: { ...stored.memory, proof: broken } }),
    );
    expect(reviveDecideState(policyOf(), text).memory.proof).toBeUndefined();
  }
});
