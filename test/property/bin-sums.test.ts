/** Bins added up in a table against a plain model: in order, complete, and empty again. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packBins, quantileOfFrames } from '../../src/estimate/bins.js';
import { binsIn, clearBins, createBinSums, quantileOfPacked, sumBin } from '../../src/histogram.js';

const bin = fc.oneof(
  fc.integer({ min: -350, max: 700 }),
  fc.constantFrom(-351, 701, 0.5, Number.NaN),
);
const count = fc.oneof(
  fc.integer({ min: 1, max: 1000 }),
  fc.constantFrom(0, -1, 1e13, Number.NaN, Number.POSITIVE_INFINITY),
);
const pairs = fc.array(fc.tuple(bin, count), { maxLength: 40 });

function model(all: readonly (readonly [number, number])[]): number[] {
  const counts = new Map<number, number>();
  for (const [at, n] of all) {
    const isBin = Number.isInteger(at) && at >= -350 && at <= 700;
    if (isBin && n > 0 && n <= 1e12) counts.set(at, (counts.get(at) ?? 0) + n);
  }
  return [...counts].sort(([a], [b]) => a - b).flat();
}

const sums = createBinSums();

test('what was added comes out in order, and nothing of the time before', () => {
  fc.assert(
    fc.property(pairs, (all) => {
      clearBins(sums);
      for (const [at, n] of all) sumBin(sums, at, n);
      const expected = model(all);
      expect(binsIn(sums)).toEqual(expected);
      expect(sums.total).toBe(expected.reduce((sum, n, i) => (i % 2 ? sum + n : sum), 0));
    }),
  );
});

test('bins of any form are packed alike, and packed ones stay as they are', () => {
  fc.assert(
    fc.property(pairs, (all) => {
      const packed = packBins(all.flat());
      expect(packed).toEqual(model(all));
      expect(packBins(packed)).toBe(packed);
      const byBin = Object.fromEntries(
        model(all).flatMap((at, i, of) => (i % 2 ? [] : [[at, of[i + 1]!]])),
      );
      expect(packBins(byBin)).toEqual(packed);
    }),
  );
});

test('the quantile of frames together is that of all their bins', () => {
  const q = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(pairs, { maxLength: 5 }),
      pairs,
      q,
      fc.nat(5),
      (frames, also, of, skip) => {
        const from = Math.min(skip, frames.length);
        const packed = frames.map((all) => ({ bins: model(all) }));
        const together = model([...frames.slice(from).flat(), ...also]);
        expect(quantileOfFrames(packed, from, of, model(also))).toBe(
          quantileOfPacked(together, of),
        );
      },
    ),
  );
});
