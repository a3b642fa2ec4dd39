/** Which word of an upstream's other limiters counts: the newest that can be true. Stage: tests. */
import { expect, test } from 'vitest';
import { newestWord, type ToldBreaker } from '../../src/decide/upstream-news.js';

const NOW = 1_700_000_000_000;
const word = (more: Partial<ToldBreaker> = {}): ToldBreaker => ({
  ...{ state: 'open', round: NOW - 5_000, untilMs: NOW + 3_000 },
  ...more,
});
const newest = (others: Record<string, ToldBreaker>) =>
  newestWord('bank', new Map(Object.entries(others)), NOW);

test('of several the newest round, and of one round who says most', () => {
  const others = {
    old: word({ round: NOW - 60_000 }),
    probing: word({ state: 'probing' }),
    pay: word(),
    passed: word({ state: 'passed' }),
  };
  expect(newest(others)).toMatchObject({ by: 'pay', round: NOW - 5_000, leftMs: 3_000 });
  expect(newest({ none: word({ round: 0 }) })).toBeUndefined();
});

test('a round of a time that has not come is nobody’s: after it none would ever be newer', () => {
  for (const round of [NOW + 90_000_000, Number.MAX_SAFE_INTEGER, 1e300]) {
    const strange = word({ round, untilMs: 1e300 });
    expect(newest({ strange })).toBeUndefined();
    expect(newest({ strange, pay: word() })).toMatchObject({ by: 'pay' });
  }
  // A clock that was set back by less than a day is none of that.
  expect(newest({ pay: word({ round: NOW + 3_600_000 }) })).toMatchObject({ by: 'pay' });
});
