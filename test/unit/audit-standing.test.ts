/** What a report counts from the changes of a time: time at the bounds, trips, who changed, what guards held back. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { heldNow, type StandingBounds, standingOf } from '../../src/audit/standing.js';
import { csvCell } from '../../src/cli/audit-csv.js';
import type { Decision, Proposal } from '../../src/decide/types.js';
import { heldBack, heldBackText } from '../../src/guard/held-back.js';
import { ceilingsOf } from '../../src/view/report-ceilings.js';
import { AT, entriesOf, STEADY, type Step } from '../support/episode-entries.js';

const BOUNDS: StandingBounds = { rate: { min: 100, max: 400 }, inFlight: { min: 4, max: 64 } };
const day = { fromMs: AT - 1000_000, toMs: AT + 1000_000 };
const of = (steps: Step[], start: typeof STEADY | null = STEADY) =>
  standingOf(entriesOf(steps), start, day, BOUNDS);

describe('time at the bounds', () => {
  test('from what stood before the time to its end', () => {
    expect(of([])).toMatchObject({ knownMs: 2_000_000, atCeilingMs: 2_000_000, atFloorMs: 0 });
    expect(of([], null)).toMatchObject({ knownMs: 0, atCeilingMs: 0 });
    const told = of([
      { s: 0, to: { rate: 100 } },
      { s: 10, to: { rate: 200, inFlightMax: 4 } },
      { s: 30, to: { inFlightMax: 20 } },
    ]);
    expect(told).toMatchObject({ atCeilingMs: 1_000_000, atFloorMs: 30_000, knownMs: 2_000_000 });
  });

  test('a breaker that is open is at no bound; its times and trips are counted', () => {
    const told = of([
      { s: 0, to: { state: 'open' } },
      { s: 10, to: { state: 'half-open' } },
      { s: 12, to: { state: 'open' } },
      { s: 20, to: { state: 'recovering', rate: 100 } },
      { s: 30, to: { state: 'closed' } },
    ]);
    expect(told).toMatchObject({ trips: 2, openMs: 20_000, atFloorMs: 970_000 });
  });

  test('without a cap there is no floor of it', () => {
    const bounds = { ...BOUNDS, inFlight: null };
    const steps = [{ s: 0, to: { inFlightMax: 0, rate: 200 } }];
    expect(standingOf(entriesOf(steps), STEADY, day, bounds).atFloorMs).toBe(0);
  });

  test('no time is counted twice, and none beyond the time asked for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 900 }), fc.constantFrom(50, 100, 250, 400))),
        (list) => {
          const times = list.map(([s]) => s).sort((a, b) => a - b);
          const told = of(times.map((s, i) => ({ s, to: { rate: list[i]![1] } })));
          expect(told.knownMs).toBe(2_000_000);
          expect(told.atFloorMs + told.atCeilingMs).toBeLessThanOrEqual(told.knownMs);
          expect(told.changes.total).toBe(list.length);
        },
      ),
    );
  });
});

describe('what was held back', () => {
  const wanted = { rate: 520, inFlightMax: 80 } as Proposal;
  const decided = {
    ...{ rate: 400, inFlightMax: 64, change: true, why: 'p99 fine' },
    verdicts: [{ guard: 'bounds', effect: 'lowered', sentence: 'rate kept in 100 … 400/s' }],
  } as unknown as Decision;

  test('is counted as the guards write it', () => {
    const kept = heldBack(wanted, decided)!;
    expect(heldNow(kept)).toEqual([{ guard: 'bounds', times: 1, rate: 520, inFlightMax: 80 }]);
    const detail = JSON.parse(JSON.stringify({ heldBack: kept }));
    const told = of([
      { s: 0, to: { rate: 400 }, detail },
      { s: 1, to: {}, detail },
    ]);
    expect(told.held).toEqual([{ guard: 'bounds', times: 2, rate: 520, inFlightMax: 80 }]);
    expect(heldBackText(kept, decided)).toBe(
      'would be cap 80, rate 520/s: guard bounds held the rest (rate kept in 100 … 400/s)',
    );
  });

  test('entries that do not say it, or say it in another form, tell nothing of it', () => {
    const sentence = 'p99 fine; would be rate 520/s: guard bounds held the rest.';
    const strange = [
      undefined,
      null,
      'rate',
      {},
      { guards: 'bounds' },
      { guards: [], rate: '520' },
    ];
    const steps = strange.map((heldBack, s) => ({ s, to: {}, sentence, detail: { heldBack } }));
    expect(of([{ s: 0, to: {}, sentence }, ...steps]).held).toEqual([]);
    expect(heldNow(undefined)).toEqual([]);
  });

  test('would be 520; bounds.rate.max holds 400', () => {
    const held = heldNow(heldBack(wanted, decided));
    expect(ceilingsOf(BOUNDS, held, null)).toEqual([
      { bound: 'bounds.rate.max', wouldBe: 520, holds: 400, by: 'law', setBy: null },
      { bound: 'bounds.inFlight.max', wouldBe: 80, holds: 64, by: 'law', setBy: null },
    ]);
    expect(ceilingsOf(BOUNDS, [{ ...held[0]!, guard: 'slew' }], null)).toEqual([]);
    const timed = { by: 'ada', fromMs: 0, untilMs: 1, rate: { max: 400 }, inFlight: { min: 2 } };
    expect(ceilingsOf(BOUNDS, held, null, timed).map(({ setBy }) => setBy)).toEqual(['ada', null]);
  });

  test('what the history says counts where the law says nothing', () => {
    const rate = { value: 400, wanted: 700, inForce: 400, binds: 'bounds.rate.max', why: '' };
    const suggested = { status: 'ready' as const, rate, capacity: null, inFlightMax: null };
    expect(ceilingsOf(BOUNDS, [], suggested)).toEqual([
      { bound: 'bounds.rate.max', wouldBe: 700, holds: 400, by: 'history', setBy: null },
    ]);
    expect(ceilingsOf(BOUNDS, heldNow(heldBack(wanted, decided)), suggested)[0]).toMatchObject({
      wouldBe: 520,
      by: 'law',
    });
  });
});

test('a cell of a CSV is never a formula, and never breaks its line', () => {
  for (const [cell, written] of [
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-x', "'-x"],
    ['@sum', "'@sum"],
    ['\t=1', "'\\t=1"],
    ['\r\nx', "'\\r\\nx"],
    ['  =1', "'  =1"],
    ['＝1', "'＝1"],
    ['\u202e=1', '\\u202e=1'],
    ['a,"b"', '"a,""b"""'],
    [-3, '-3'],
    [null, ''],
    [undefined, ''],
  ] as const) {
    expect(csvCell(cell)).toBe(written);
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const cell = csvCell(text);
      expect(cell).not.toMatch(/[\r\n]/);
      expect(cell).not.toMatch(/^"?[=+\-@\t]/);
    }),
  );
});
