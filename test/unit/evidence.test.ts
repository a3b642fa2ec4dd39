/** Evidence for a promotion: what the law's rate would have denied minute by minute, its cuts and trips, what is lacking. */
import { expect, test } from 'vitest';
import type { EntryValues, StoredEntry } from '../../src/actuate/entry.js';
import { evidenceOf, evidenceText, isRecommendation, lacking } from '../../src/actuate/evidence.js';
import type { HistoryRow } from '../../src/redis/history-rows.js';

const IN_FORCE = { rate: 100, inFlightMax: 24 };
const row = (minute: number, admitted: number, more: Partial<HistoryRow> = {}) =>
  ({ minute, admitted, watchedS: 60, freshS: 60, ...more }) as HistoryRow;
const note = (minute: number, after: Partial<EntryValues>) =>
  ({
    ...{ id: `${minute * 60_000}-0`, kind: 'note' },
    body: { law: 'aimd@1', before: IN_FORCE, after: { ...IN_FORCE, state: 'closed', ...after } },
  }) as StoredEntry;

test('each minute is held against the values noted by its end; nobody watched, nothing is counted', () => {
  const rows = [
    row(1, 5000),
    row(2, 5000),
    row(3, 5000),
    row(4, 5000),
    row(5, 900, { watchedS: 0 }),
  ];
  const notes = [
    note(2, { rate: 50 }),
    note(3, { rate: 50, state: 'open' }),
    note(4, { rate: 80 }),
  ];
  // At 100/s 6,000 pass; at 50/s 3,000; open none; at 80/s 4,800.
  expect(evidenceOf(rows, notes, IN_FORCE, 0)).toEqual({
    ...{ sinceMs: 0, hours: 4 / 60, fresh: 1, cuts: 1, trips: 1 },
    ...{ admitted: 20_000, denied: 2000 + 5000 + 200 },
  });
});

test('cuts and trips are told from the note before; a cap that falls is a cut, too', () => {
  const notes = [
    ...[note(1, { rate: 80 }), note(2, { rate: 90 }), note(3, { rate: 90, inFlightMax: 12 })],
    ...[note(4, { rate: 90, state: 'open' }), note(5, { rate: 90, state: 'open' })],
  ];
  expect(evidenceOf([], notes, IN_FORCE, 0)).toMatchObject({ cuts: 2, trips: 1, fresh: null });
});

test('24 hours and 99 % are enough; a share is never rounded up to that', () => {
  const day = (freshS: number | undefined, minutes = 1440) =>
    evidenceOf(
      Array.from({ length: minutes }, (_, i) => row(i, 1, { freshS } as Partial<HistoryRow>)),
      ...([[], IN_FORCE, 0] as const),
    );
  expect(lacking(day(59.4))).toEqual([]);
  expect(lacking(day(59.399))).toEqual(['98.9 % of the readings were fresh, 99 % are needed']);
  expect(lacking(day(60, 1439))).toEqual(['watched 23.9 h of 24 h']);
  expect(lacking(day(undefined))).toEqual(['how many readings were fresh is not known']);
  expect(lacking(day(60, 2))).toEqual(['watched 2 min of 24 h']);
  const none = evidenceText(evidenceOf([], [], IN_FORCE, 0));
  expect(none).toMatch(
    /^watched 0 min, .* tripped 0 times; no whole minute with requests is known/,
  );
  expect(evidenceText(day(60))).toMatch(
    /^watched 24 h, 100 % of the readings fresh; .* cut 0 times/,
  );
});

test('only what the law or tuning would have put in force is a recommendation', () => {
  expect(isRecommendation(note(1, {}))).toBe(true);
  expect(isRecommendation({ ...note(1, {}), kind: 'change' })).toBe(false);
  const { body } = note(1, {});
  const { law: _, ...refused } = { ...body, reason: 'write_refused' };
  expect(isRecommendation({ ...note(1, {}), body: refused })).toBe(false);
  expect(isRecommendation({ ...note(1, {}), body: { ...refused, reason: 'tune' } })).toBe(true);
  expect(isRecommendation({ ...note(1, {}), body: { ...body, after: null } })).toBe(false);
});
