/** The reservoir: everything up to its size, past it an even sample, and no more work for the rest. */
import { expect, test } from 'vitest';
import { createReservoir, MOST_READ } from '../../src/enforce/reservoir.js';

/** The same numbers each time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function kept(reservoir: ReturnType<typeof createReservoir>) {
  const all: [string, number][] = [];
  return { ...reservoir.drain((subject, weight) => all.push([subject, weight])), all };
}

test('up to its size all is read, in order; a drain empties it', () => {
  const reservoir = createReservoir(seeded(1));
  for (let i = 0; i < MOST_READ; i++) reservoir.offer(`s${i}`, i % 2 ? -1 : 0.5);
  const { seen, read, all } = kept(reservoir);
  expect([seen, read]).toEqual([MOST_READ, MOST_READ]);
  expect(all).toEqual(Array.from({ length: MOST_READ }, (_, i) => [`s${i}`, i % 2 ? -1 : 0.5]));
  expect(kept(reservoir)).toEqual({ seen: 0, read: 0, all: [] });
  reservoir.offer('again', 1);
  expect(kept(reservoir)).toEqual({ seen: 1, read: 1, all: [['again', 1]] });
});

test('past it each offer has the same chance, early or late, also in traffic that alternates', () => {
  const reservoir = createReservoir(seeded(7));
  const offers = 10 * MOST_READ;
  const rounds = 60;
  const tenths = new Array<number>(10).fill(0);
  let even = 0;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < offers; i++) reservoir.offer(i % 2 ? 'odd' : 'even', i);
    const { seen, read, all } = kept(reservoir);
    expect([seen, read]).toEqual([offers, MOST_READ]);
    expect(new Set(all.map(([, i]) => i)).size).toBe(MOST_READ);
    for (const [subject, i] of all) {
      tenths[Math.floor(i / MOST_READ)]! += 1;
      if (subject === 'even') even += 1;
    }
  }
  // 61,440 kept: 6,144 a tenth, standard deviation 74; the bound is five of them.
  const fair = (rounds * MOST_READ) / 10;
  for (const n of tenths) expect(Math.abs(n - fair)).toBeLessThan(375);
  expect(Math.abs(even / (rounds * MOST_READ) - 0.5)).toBeLessThan(0.011);
});

test('past it the work is by the logarithm: few offers draw a number', () => {
  let draws = 0;
  const random = seeded(3);
  const reservoir = createReservoir(() => {
    draws += 1;
    return random();
  });
  for (let i = 0; i < 100 * MOST_READ; i++) reservoir.offer('s', 1);
  // About 1024 × ln 100 = 4,716 are kept after the first 1,024, with three draws each.
  expect(draws).toBeGreaterThan(10_000);
  expect(draws).toBeLessThan(18_000);
});
