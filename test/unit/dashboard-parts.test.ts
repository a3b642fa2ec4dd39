/** The dashboard's plain parts: addresses, ages, charts' columns, verbs' requests, the story of a log. */
import { describe, expect, test } from 'vitest';
import type { AuditRecord, LastDecision, LimiterPoint, SeriesAnswer } from '../../src/api/types.js';
import {
  ceilingOf,
  markersOf,
  shownFrom,
  statesOf,
  tableRows,
  withChanges,
  withPoint,
} from '../../src/dashboard/charts/series.js';
import { ageMs, hear, isStale, redisNow, retryDelay } from '../../src/dashboard/data/freshness.js';
import { short } from '../../src/dashboard/data/numbers.js';
import {
  ago,
  countdown,
  lastedText,
  localTime,
  minutesText,
  utcTime,
} from '../../src/dashboard/data/times.js';
import { loopSentence, verdictSentences } from '../../src/dashboard/limiter/binds.js';
import {
  boundsStand,
  episodeOf,
  firstOf,
  leadOf,
  movedNumber,
  newestOf,
  stoodBefore,
  storyOf,
  undoOf,
  withNew,
} from '../../src/dashboard/limiter/told.js';
import { changeHash, limiterHash, overviewHash, parseRoute } from '../../src/dashboard/routing.js';
import {
  type Draft,
  holdChoices,
  NO_ENDS,
  requestOf,
  VERBS,
} from '../../src/dashboard/verbs/specs.js';
import { formWords, pinEnds } from '../../src/dashboard/verbs/words.js';

describe('addresses', () => {
  test('any name survives its address, and any address gives a page', () => {
    for (const name of ['checkout', 'a/b', 'ä?#%', '..', '<b>']) {
      expect(parseRoute(limiterHash(name))).toEqual({ page: 'limiter', name, change: null });
      const change = { epoch: 1_796_040_369_926, revision: 12 };
      expect(parseRoute(changeHash(name, change))).toEqual({ page: 'limiter', name, change });
    }
    const search = { page: 'overview', search: 'a&b=c', sort: '-rate' };
    expect(parseRoute(overviewHash('a&b=c', '-rate'))).toEqual(search);
    expect(parseRoute('')).toEqual({ page: 'overview', search: '', sort: '' });
    expect(parseRoute('#/fleet').page).toBe('fleet');
    for (const odd of ['#/nothing', '#/limiters/a/b', '#/limiters/a/changes/x', '#/%ff/%']) {
      expect(parseRoute(odd).page).toBe('unknown');
    }
  });
});

describe('C97: how old it is', () => {
  const tick = { atMs: 1000, lookMs: 1000, everyMs: 16_000, redisAway: null };

  test('stale after two looks without a word, however long all have their turn in, and well again with the next', () => {
    const heard = hear(null, tick, 50_000);
    expect(isStale(null, 99_999)).toBe(false);
    expect(ageMs(heard, 51_000)).toBe(1000);
    expect(isStale(heard, 52_000)).toBe(false);
    expect(isStale(heard, 52_600)).toBe(true);
    expect(isStale(hear(heard, { ...tick, atMs: 4000 }, 53_000), 53_100)).toBe(false);
  });

  test('a word that says the same time is no news: Redis is away', () => {
    const heard = hear(null, tick, 50_000);
    const again = hear(heard, { ...tick, redisAway: 'ECONNREFUSED' }, 53_000);
    expect(isStale(again, 53_000)).toBe(true);
    expect(again.redisAway).toBe('ECONNREFUSED');
  });

  test("Redis's time goes on from the last word", () => {
    expect(redisNow(hear(null, tick, 50_000), 50_700, 9)).toBe(1700);
    expect(redisNow(null, 0, 9)).toBe(9);
  });

  test('retries come later and later, up to eight seconds, each a little apart', () => {
    expect([1, 2, 3, 9].map((n) => retryDelay(n, 1))).toEqual([500, 1000, 2000, 8000]);
    expect(retryDelay(1, 0)).toBe(375);
  });
});

test('times and numbers as people read them', () => {
  const now = new Date(2026, 4, 4, 13, 2, 11).getTime();
  expect(localTime(now, now)).toBe('13:02:11');
  expect(localTime(now - 86_400_000, now)).toBe('2026-05-03 13:02:11');
  expect(utcTime(Date.UTC(2026, 4, 4, 13, 2, 11))).toBe('2026-05-04 13:02:11 UTC');
  expect([localTime(Number.NaN, now), utcTime(Number.NaN)]).toEqual(['?', '?']);
  expect([ago(now - 200, now), ago(now - 90_000, now), ago(now + 5000, now)]).toEqual([
    ...['now', '1 min ago', 'in 5 s'],
  ]);
  expect([countdown(61_000), countdown(3_661_000), countdown(-5)]).toEqual([
    ...['01:01', '1:01:01', '00:00'],
  ]);
  expect([0, 7.256, 67.64, 167.68, 9870, 12_345.6, 123_456, 999_700].map(short)).toEqual([
    ...['0', '7.26', '67.6', '168', '9870', '12.3k', '123k', '1M'],
  ]);
});

const series = (part: Partial<SeriesAnswer> = {}): SeriesAnswer => {
  const timeMs = [1000, 2000, 3000];
  const column = timeMs.map(() => 1);
  return {
    ...{ schema: 1, limiter: 'a', window: '15m', fromMs: 0, atMs: 3000, timeMs, bounds: null },
    state: ['closed', 'open', 'open'],
    ...{ rate: column, capacity: column, inFlightMax: column, inFlight: column },
    ...{ offered: column, admitted: column, denied: [null, 2, null], changes: [] },
    signals: [
      {
        ...{ signal: 'p95', unit: 'ms', setpoint: 1, side: 'below', tripsAbove: null },
        values: [1, 2, 3],
      },
    ],
    ...part,
  };
};
const point = (timeMs: number): LimiterPoint => ({
  ...{ limiter: 'a', timeMs, state: 'closed', rate: 9, capacity: 9, inFlightMax: 9, inFlight: 9 },
  ...{ offered: 9, admitted: 9, denied: 9, signals: { p95: 9 } },
});

describe('charts', () => {
  test('a live point is added to each column; what left the window goes', () => {
    const moved = withPoint(series(), point(902_500));
    expect(moved.timeMs).toEqual([3000, 902_500]);
    expect(moved.denied).toEqual([null, 9]);
    expect(moved.signals[0]!.values).toEqual([3, 9]);
    const lengths = [moved.state, moved.rate, moved.offered, moved.inFlight].map((c) => c.length);
    expect(lengths).toEqual([2, 2, 2, 2]);
    const same = series();
    expect(withPoint(same, point(3000))).toBe(same);
    expect(withPoint(same, point(2000_000)).timeMs).toEqual([2_000_000]);
  });

  test('states are stretches, unknown ones are gaps', () => {
    expect(statesOf(series())).toEqual([
      { state: 'closed', fromMs: 1000, toMs: 2000 },
      { state: 'open', fromMs: 2000, toMs: 3000 },
    ]);
    expect(statesOf(series({ state: ['open', null, 'open'] })).map(({ fromMs }) => fromMs)).toEqual(
      [1000, 3000],
    );
  });

  test('markers lie apart; each change is told once', () => {
    const change = (id: string, atMs: number) => ({
      ...{ id, atMs, epoch: 1, revision: 1, reason: 'pin', sentence: '' },
      actor: { kind: 'person' as const, name: 'ann' },
    });
    const changes = [change('1', 100), change('2', 110), change('3', 900), change('4', 5000)];
    const found = markersOf(changes, 0, 1000, 0.05);
    expect(found.map((marker) => marker.changes.length)).toEqual([2, 1]);
    const once = withChanges(series({ changes }), [change('3', 900), change('5', 950)]);
    expect(once.changes).toHaveLength(5);
  });

  test('a young limiter fills the chart, an old one its window', () => {
    expect(shownFrom(series({ fromMs: -900_000, atMs: 0, timeMs: [-30_000] }))).toBe(-120_000);
    expect(shownFrom(series({ fromMs: -900_000, atMs: 0, timeMs: [-899_000] }))).toBe(-899_000);
  });

  test('the table has the newest and at most so many; an axis ends above all', () => {
    expect(tableRows(5, 60)).toEqual([4, 3, 2, 1, 0]);
    expect(tableRows(900, 60)).toHaveLength(60);
    expect(tableRows(900, 60)[0]).toBe(899);
    expect(tableRows(0, 60)).toEqual([]);
    expect(ceilingOf([[null, 100], [3]])).toBeCloseTo(112);
    expect(ceilingOf([[null]])).toBe(1);
  });
});

describe('verbs', () => {
  const draft: Draft = {
    ...{ hold: 1, holdBreaker: false, rate: '', inFlight: '', to: '', reason: ' why ' },
    ...{ mode: 'auto', anyway: false, clear: false, ends: NO_ENDS },
  };

  test('each says what is missing, or becomes its request', () => {
    expect(requestOf('rollback', draft)).toMatch(/Choose the revision/);
    expect(requestOf('rollback', { ...draft, to: '7.12' })).toEqual({
      ...{ forMs: 3_600_000, reason: 'why', toEpoch: 7, toRevision: 12 },
    });
    expect(requestOf('pin', draft)).toMatch(/rate, a cap, or both/);
    expect(requestOf('pin', { ...draft, rate: 'x' })).toMatch(/no number/);
    expect(requestOf('pin', { ...draft, rate: '-1' })).toMatch(/no number/);
    expect(requestOf('pin', { ...draft, rate: '80', hold: 4, holdBreaker: true })).toEqual({
      ...{ hold: true, holdBreaker: true, reason: 'why', rate: 80 },
    });
    expect(requestOf('trip', { ...draft, hold: 0, reason: '' })).toEqual({});
    expect(requestOf('bounds', draft)).toMatch(/at least one bound/);
    const ends = { ...NO_ENDS, rateMax: '600', inFlightMin: ' 4 ' };
    expect(requestOf('bounds', { ...draft, ends, reason: '' })).toEqual({
      ...{ forMs: 3_600_000, rateMax: 600, inFlightMin: 4 },
    });
    expect(requestOf('bounds', { ...draft, ends: { ...ends, rateMin: '0' } })).toMatch(/above 0/);
    expect(requestOf('bounds', { ...draft, ends, clear: true })).toEqual({
      ...{ clear: true, reason: 'why' },
    });
    expect(holdChoices('bounds').every(({ forMs }) => typeof forMs === 'number')).toBe(true);
    expect(requestOf('release', draft)).toEqual({ reason: 'why' });
    expect(requestOf('promote', draft)).toEqual({ reason: 'why', mode: 'auto' });
    expect(requestOf('promote', { ...draft, anyway: true, reason: '' })).toMatch(/reason/);
  });

  test('each says how it is undone', () => {
    for (const spec of Object.values(VERBS)) expect(spec.undo.length).toBeGreaterThan(10);
  });
});

test('what the law has learnt is said in words, as far as it goes by it', () => {
  expect(loopSentence({ deadMs: 2_940, trust: 1 })).toBe(
    'A change of the limits shows after 2.9 s, and the law takes its steps by it.',
  );
  expect(loopSentence({ deadMs: 3_000, trust: 0.4 })).toMatch(/after 3 s.*as far as it is sure/);
  for (const unsure of [
    { deadMs: null, trust: 0.4 },
    { deadMs: 3_000, trust: 0 },
  ]) {
    expect(loopSentence(unsure)).toMatch(/^Not yet .* defaults\.$/);
  }
});

test('what a verb refuses is said in the words of its form; commands and fields of a policy stay', () => {
  expect(
    formWords(
      'rateMin is 900, but the most is 400: give rateMax too. Or: flyball pin a --in-flight 5.',
    ),
  ).toBe(
    'the least rate is 900, but the most is 400: give the most of the rate too. Or: flyball pin a --in-flight 5.',
  );
  expect(formWords('say why (anyway, reason).')).toBe('say why (the box above, and a reason).');
  expect(formWords('inFlight is 0; 1 … 64 (bounds.inFlight.max). No limiter.inFlightMax.')).toBe(
    'the cap is 0; 1 … 64 (bounds.inFlight.max). No limiter.inFlightMax.',
  );
});

describe('what happened', () => {
  const values = (rate: number) => ({
    ...{ mode: 'auto' as const, state: 'closed' as const, rate, capacity: 9, inFlightMax: 9 },
  });
  const entry = (minute: number, revision: number, rates: [number, number]): AuditRecord => ({
    ...{ id: `${minute * 60_000}-0`, v: 1, kind: 'change', limiter: 'a', epoch: 1, revision },
    ...{ atMs: minute * 60_000, at: null, reason: 'law_cut', sentence: `r${revision}` },
    ...{ actor: { kind: 'autopilot', name: 'east' }, policyHash: 'x', hash: '', prev: '' },
    ...{ before: values(rates[0]), after: values(rates[1]), law: 'adaptive@4' },
  });
  const entries = [entry(100, 3, [60, 90]), entry(1, 2, [80, 60]), entry(0, 1, [100, 80])];

  test('episodes, newest first, each with its own entries', () => {
    const told = storyOf(entries, 200 * 60_000, false);
    expect(told.map((one) => one.entries.map(({ revision }) => revision))).toEqual([[3], [2, 1]]);
  });

  test('undoing an episode goes to what stood before its first change', () => {
    expect(stoodBefore(entries, { epoch: 1, revision: 3 })?.revision).toBe(2);
    expect(stoodBefore(entries, { epoch: 1, revision: 1 })).toBeNull();
    expect(stoodBefore(entries, { epoch: 2, revision: 1 })?.revision).toBe(3);
  });

  test('what a limiter began with is undone by going back to it, once something has moved', () => {
    const began = { ...entry(0, 1, [100, 100]), before: null, reason: 'params_created' };
    const later = [entry(3, 3, [80, 40]), entry(2, 2, [100, 80]), began];
    expect(undoOf(later, began)).toEqual({ to: '1.1', words: 'Roll back to how it began…' });
    expect(undoOf(later, later[0]!)).toEqual({ to: '1.2', words: 'Roll back to before this…' });
    expect(undoOf([began], began)).toBeNull();
    // Its beginning is not in what was read: nobody knows what stood before.
    expect(undoOf(entries, { epoch: 1, revision: 1 })).toBeNull();
    expect(undoOf([], { epoch: 1, revision: 1 })).toBeNull();
  });

  test('what stands is the later of the row and the log, whichever was read first', () => {
    const log = [entry(3, 3, [80, 40]), entry(2, 2, [100, 80])];
    expect(newestOf(log, { epoch: 1, revision: 2 })).toMatchObject({ epoch: 1, revision: 3 });
    expect(newestOf(log, { epoch: 1, revision: 5 })).toEqual({ epoch: 1, revision: 5 });
    expect(newestOf(log, { epoch: 2, revision: 1 })).toEqual({ epoch: 2, revision: 1 });
    expect(newestOf([], { epoch: 1, revision: 2 })).toEqual({ epoch: 1, revision: 2 });
  });

  test('an episode opens at what its sentence tells of: the last act of a person, else its cause', () => {
    const person = (minute: number, revision: number, reason: string): AuditRecord => ({
      ...entry(minute, revision, [80, 80 - revision]),
      ...{ reason, actor: { kind: 'person', name: 'ops' } },
    });
    const began = { ...entry(0, 1, [100, 100]), before: null, reason: 'params_created' };
    const acts = [person(3, 3, 'pin'), person(2, 2, 'pin'), began];
    const [told] = storyOf([entry(4, 4, [77, 80]), ...acts], 200 * 60_000, false);
    expect(leadOf(told!.episode)).toEqual({ epoch: 1, revision: 3 });
    expect(firstOf(told!.episode)).toEqual({ epoch: 1, revision: 1 });
    const raised = { ...entry(0, 1, [70, 80]), reason: 'law_raise' };
    const cut = storyOf([entry(1, 2, [80, 60]), raised], 200 * 60_000, false);
    expect(leadOf(cut[0]!.episode)).toEqual({ epoch: 1, revision: 2 });
    expect(episodeOf(cut, { epoch: 1, revision: 1 })).toBe(cut[0]);
    expect(episodeOf(cut, { epoch: 1, revision: 9 })).toBeUndefined();
  });

  test('a rollback is offered of what moved a number; of timed bounds that hold, their end', () => {
    expect(movedNumber(entry(0, 1, [100, 80]))).toBe(true);
    expect(movedNumber(entry(0, 1, [80, 80]))).toBe(false);
    const tripped = { ...values(80), state: 'open' as const };
    expect(movedNumber({ before: values(80), after: tripped })).toBe(false);
    expect(movedNumber({ before: null, after: values(80) })).toBe(true);
    expect(movedNumber({ before: values(80), after: null })).toBe(false);

    const set = (revision: number) => ({
      ...entry(revision, revision, [9, 9]),
      reason: 'bounds_set',
    });
    const hold = [{ kind: 'bounds' as const }];
    expect(boundsStand([set(4), set(2)], set(4), hold)).toBe(true);
    expect(boundsStand([set(4), set(2)], set(2), hold)).toBe(false);
    expect(boundsStand([set(4)], set(4), [{ kind: 'pinned' }])).toBe(false);
    expect(boundsStand([entry(4, 4, [9, 8])], set(4), hold)).toBe(false);
  });

  test('live entries stand before those read, each once', () => {
    const live = [entry(101, 4, [90, 95]), entries[0]!];
    expect(withNew(entries, live).map(({ revision }) => revision)).toEqual([4, 3, 2, 1]);
  });
});

test('a rollback says whose pin it takes the place of, and what comes after', () => {
  const pin = [
    { kind: 'frozen' as const, by: 'eve' },
    { kind: 'pinned' as const, by: 'ops@host' },
  ];
  expect(pinEnds(pin, '50/s', '1 hour')).toBe(
    'Ends the pin of ops@host; holds 50/s for 1 hour, then the autopilot goes on.',
  );
  expect(pinEnds(pin, '50/s', 'until a person ends it')).toBe(
    'Ends the pin of ops@host; holds 50/s until a person ends it.',
  );
  expect(pinEnds([], '50/s', '1 hour')).toBeNull();
});

test('an episode: its minutes, with the date where it is not today, and how long it took', () => {
  const at = (day: number, hour: number, minute: number, second = 0) =>
    new Date(2026, 4, day, hour, minute, second).getTime();
  const now = at(4, 12, 0);
  expect(minutesText(at(4, 2, 22, 33), at(4, 2, 23, 35), now)).toBe('02:22–02:23');
  expect(minutesText(at(4, 2, 22, 1), at(4, 2, 22, 41), now)).toBe('02:22');
  expect(minutesText(at(3, 2, 22), at(3, 2, 23), now)).toBe('2026-05-03 02:22–02:23');
  expect(minutesText(at(3, 23, 58), at(4, 0, 3), now)).toBe('2026-05-03 23:58–2026-05-04 00:03');
  expect(lastedText(400)).toBe('');
  expect(lastedText(40_000)).toBe('40 s');
  expect(lastedText(62_000)).toBe('1 min');
  expect(lastedText(7_530_000)).toBe('2 h 5 min');
});

test('what a guard said is told once, though the sentence of the decision holds it', () => {
  const verdicts = [
    { guard: 'hold', effect: 'refused', sentence: 'pinned by a person' },
    { guard: 'pace', effect: 'clamped', sentence: 'no faster than 10 %' },
    { guard: 'bounds', effect: 'passed', sentence: 'within' },
  ];
  const decision = { sentence: 'guard hold held it (pinned by a person).', verdicts };
  expect(verdictSentences(decision as LastDecision)).toEqual(['no faster than 10 %']);
  expect(verdictSentences(null)).toEqual([]);
});
