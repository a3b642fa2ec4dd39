/** The judge of a canary: proven failures at once, slower only past the objective, nothing without evidence. Stage: tests. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type CanarySeen,
  ENOUGH_ANSWERS,
  type GroupSeen,
  judgeCanary,
} from '../../src/decide/canary.js';

const group = (more: Partial<GroupSeen> = {}): GroupSeen => ({
  ...{ offered: 1000, denied: 0, answers: 1000, failed: 0, responseMs: 80, slow: 0 },
  ...more,
});
const seen = (more: Partial<CanarySeen> = {}): CanarySeen => ({
  ...{ elapsedMs: 600_000, forMs: 600_000, mostMs: 1_800_000, tripped: false },
  ...{ canary: group({ answers: 100, offered: 100 }), others: group() },
  objective: { of: 0.95, belowMs: 250 },
  ...more,
});
const verdict = (more: Partial<CanarySeen>) => judgeCanary(seen(more)).verdict;

describe('verdicts', () => {
  test('it passes when its time is over and it is no worse, with the numbers of both groups', () => {
    expect(judgeCanary(seen())).toEqual({
      verdict: 'passed',
      why: 'no worse than the others: canary 100 answers, 0 % failed, p95 80 ms, 0 % denied; others 1000 answers, 0 % failed, p95 80 ms, 0 % denied',
    });
    expect(verdict({ elapsedMs: 599_999 })).toBe('waits');
  });

  test('an open breaker and proven failures end it at once; a failure or two prove nothing', () => {
    const early = { elapsedMs: 5_000 };
    expect(verdict({ ...early, tripped: true })).toBe('failed');
    expect(verdict({ ...early, canary: group({ answers: 40, failed: 20 }) })).toBe('failed');
    expect(verdict({ ...early, canary: group({ answers: 10, failed: 1 }) })).toBe('waits');
    // Both fail alike: the service is in trouble, not the change.
    const alike = { canary: group({ answers: 100, failed: 40 }), others: group({ failed: 400 }) };
    expect(verdict({ ...early, ...alike })).toBe('waits');
    // Without answers of the others there is nothing to be worse than.
    const alone = { canary: group({ failed: 900 }), others: group({ answers: 0 }) };
    expect(verdict({ ...early, ...alone })).toBe('waits');
  });

  test('while it rests nothing passes; the time that it rested is added, and at its end it is unproven', () => {
    const rests = 'a person holds the limiter';
    expect(verdict({ rests })).toBe('waits');
    expect(judgeCanary(seen({ rests, elapsedMs: 1_800_000 }))).toMatchObject({
      verdict: 'unproven',
      why: expect.stringMatching(/^a person holds the limiter: /),
    });
    expect(verdict({ rests, tripped: true })).toBe('failed');
    expect(verdict({ restedMs: 1 })).toBe('waits');
    expect(verdict({ restedMs: 60_000, elapsedMs: 660_000 })).toBe('passed');
    expect(verdict({ restedMs: 1_300_000, elapsedMs: 1_800_000 })).toBe('unproven');
  });

  test('slower counts only past the objective and a fifth above the others', () => {
    const slow = (responseMs: number, more: Partial<GroupSeen> = {}) => ({
      canary: group({ answers: 100, responseMs, ...more }),
    });
    expect(verdict(slow(240))).toBe('passed');
    expect(verdict(slow(300))).toBe('failed');
    expect(verdict({ ...slow(300), others: group({ responseMs: 280 }) })).toBe('passed');
    expect(verdict({ ...slow(300), objective: null })).toBe('passed');
    expect(verdict({ ...slow(300), elapsedMs: 5_000 })).toBe('waits');
    expect(verdict({ ...slow(300, { slow: 60 }), elapsedMs: 5_000 })).toBe('failed');
    const mean = { objective: { of: 'mean' as const, belowMs: 250 } };
    expect(verdict({ ...slow(300, { slow: 60 }), ...mean, elapsedMs: 5_000 })).toBe('waits');
    expect(verdict({ ...slow(300), ...mean })).toBe('failed');
  });

  test('without evidence it waits three times as long, and is then unproven', () => {
    const thin = { canary: group({ answers: ENOUGH_ANSWERS - 1 }) };
    expect(verdict({ ...thin, elapsedMs: 1_799_999 })).toBe('waits');
    expect(verdict({ ...thin, elapsedMs: 1_800_000 })).toBe('unproven');
    expect(verdict({ others: group({ answers: 0, responseMs: null }) })).toBe('waits');
  });

  test('denials are told, and not judged', () => {
    const judged = judgeCanary(
      seen({ canary: group({ answers: 100, offered: 200, denied: 100 }) }),
    );
    expect(judged.verdict).toBe('passed');
    expect(judged.why).toContain('50 % denied');
  });
});

const groups = fc
  .record({
    answers: fc.nat(5000),
    failedShare: fc.double({ min: 0, max: 1, noNaN: true }),
    slowShare: fc.double({ min: 0, max: 1, noNaN: true }),
    denied: fc.nat(5000),
    responseMs: fc.option(fc.double({ min: 0.1, max: 1e5, noNaN: true })),
  })
  .map(({ answers, failedShare, slowShare, denied, responseMs }): GroupSeen => {
    const part = (share: number) => Math.floor(answers * share);
    const failed = part(failedShare);
    return {
      offered: answers + denied,
      denied,
      answers,
      failed,
      slow: part(slowShare),
      responseMs,
    };
  });
const anySeen = fc.record<CanarySeen>({
  elapsedMs: fc.nat(4_000_000),
  forMs: fc.integer({ min: 1000, max: 1_200_000 }),
  mostMs: fc.integer({ min: 1_200_000, max: 3_600_000 }),
  tripped: fc.boolean(),
  canary: groups,
  others: groups,
  objective: fc.option(
    fc.record({ of: fc.constantFrom('mean' as const, 0.5, 0.95, 0.99), belowMs: fc.nat(1000) }),
  ),
});

test('property: it always ends, never passes early or on little, and groups that saw the same never fail', () => {
  fc.assert(
    fc.property(anySeen, (one) => {
      const { verdict, why } = judgeCanary(one);
      const few = Math.min(one.canary.answers, one.others.answers) < ENOUGH_ANSWERS;
      expect(why).toMatch(/canary \d+ answers.*others \d+ answers/);
      if (verdict === 'passed') expect(few || one.tripped || one.elapsedMs < one.forMs).toBe(false);
      if (one.elapsedMs >= one.mostMs) expect(verdict).not.toBe('waits');
      if (verdict === 'unproven') expect(few).toBe(true);
      if (one.tripped) expect(verdict).toBe('failed');
      const same = judgeCanary({ ...one, tripped: false, others: one.canary });
      expect(same.verdict).not.toBe('failed');
    }),
  );
});

test('property: more failures never turn failed into passed', () => {
  fc.assert(
    fc.property(anySeen, fc.nat(1000), (one, more) => {
      if (judgeCanary(one).verdict !== 'failed') return;
      const { canary } = one;
      const failed = Math.min(canary.answers, canary.failed + more);
      expect(judgeCanary({ ...one, canary: { ...canary, failed } }).verdict).toBe('failed');
    }),
  );
});
