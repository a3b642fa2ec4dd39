/** Times on the dashboard: gaps of a chart, minutes between what was seen, which time the history is asked for, how a canary stands. */
import { describe, expect, test } from 'vitest';
import type { SeriesAnswer } from '../../src/api/types.js';
import { gapsOf, gapsText, statesOf, withGaps } from '../../src/dashboard/charts/series.js';
import { fieldMs, fieldText, namedTimes } from '../../src/dashboard/history/spans.js';
import { canarySentence } from '../../src/dashboard/limiter/canary.js';
import { historyHash, isSamePage, parseRoute } from '../../src/dashboard/routing.js';
import { type SeriesPoint, withMinutes } from '../../src/view/series.js';

const MIN = 60_000;
const HOUR = 60 * MIN;

function seriesAt(timeMs: number[]): SeriesAnswer {
  const column = timeMs.map((_, i) => i);
  return {
    ...{ schema: 1, limiter: 'a', window: '24h', fromMs: 0, atMs: timeMs.at(-1)!, timeMs },
    ...{ bounds: null, changes: [], state: timeMs.map(() => 'open' as const) },
    ...{ rate: column, capacity: column, inFlightMax: column, inFlight: column },
    ...{ offered: column, admitted: column, denied: column },
    signals: [
      {
        ...{ signal: 'p95', unit: 'ms', setpoint: 1, side: 'below', tripsAbove: null },
        values: column,
      },
    ],
  };
}

describe('hours without samples are gaps', () => {
  // Two minutes, an hour of nothing, two minutes, and now.
  const times = [0.5, 1.5, 61.5, 62.5, 64.9].map((minutes) => minutes * MIN);

  test('a minute that came late or had no request is none; before the first and between the others they are', () => {
    expect(
      gapsOf(
        [0.5, 2.5, 5].map((m) => m * MIN),
        0,
      ),
    ).toEqual([]);
    expect(gapsOf(times, 0)).toEqual([{ fromMs: 2 * MIN, toMs: 61 * MIN }]);
    expect(gapsOf(times, -HOUR)[0]).toEqual({ fromMs: -HOUR, toMs: 0 });
    expect(gapsOf([], 0)).toEqual([]);
  });

  test('no column, signal or state reaches across one', () => {
    const series = seriesAt(times);
    expect(withGaps(series, [])).toBe(series);
    const shown = withGaps(series, gapsOf(times, -HOUR));
    expect(shown.timeMs).toEqual([0.5, 1.5, 2, 61.5, 62.5, 64.9].map((m) => m * MIN));
    expect(shown.offered).toEqual([0, 1, null, 2, 3, 4]);
    expect(shown.signals[0]!.values).toEqual([0, 1, null, 2, 3, 4]);
    expect(statesOf(shown).map(({ fromMs, toMs }) => [fromMs / MIN, toMs / MIN])).toEqual([
      [0.5, 2],
      [61.5, 64.9],
    ]);
  });

  test('a sentence says when, the longest by name', () => {
    const at = new Date(2026, 4, 4, 12).getTime();
    const gap = (from: number, to: number) => ({ fromMs: at - from * MIN, toMs: at - to * MIN });
    expect(gapsText([], at)).toBe(null);
    expect(gapsText([gap(180, 65)], at)).toBe(
      'Nothing was recorded 09:00–10:55: no requests came, or no daemon ran.',
    );
    const many = [gap(300, 297), gap(240, 200), gap(180, 130), gap(60, 30), gap(20, 16)];
    expect(gapsText(many, at)).toBe(
      'Nothing was recorded 08:00–08:40, 09:00–09:50, 11:00–11:30, and 2 shorter times (7 min): no requests came, or no daemon ran.',
    );
  });

  test('who watched, went and came again sees the minutes between', () => {
    const point = (minutes: number) => ({ timeMs: minutes * MIN }) as SeriesPoint;
    const seen = [1, 1.2, 1.4, 9.1, 9.2].map(point);
    const minutes = [0.5, 1.5, 2.5, 7.5, 8.5].map(point);
    expect(withMinutes(seen, minutes).map(({ timeMs }) => timeMs / MIN)).toEqual([
      ...[0.5, 1, 1.2, 1.4, 2.5, 7.5, 8.5, 9.1, 9.2],
    ]);
  });
});

describe('which time the history is asked for', () => {
  test('it stands in the address, in UTC; what is no time is none', () => {
    const night = { sinceMs: Date.UTC(2026, 4, 3, 18), untilMs: Date.UTC(2026, 4, 4, 9) };
    expect(historyHash(night)).toBe('#/history?since=2026-05-03T18:00Z&until=2026-05-04T09:00Z');
    const all = { sinceMs: null, untilMs: null };
    for (const shown of [night, all, { ...night, untilMs: null }, { ...night, sinceMs: null }]) {
      expect(parseRoute(historyHash(shown))).toEqual({ page: 'history', shown });
    }
    for (const odd of ['since=x', 'since=-1&until=', 'until=%ff', 'since=99999-99-99']) {
      expect(parseRoute(`#/history?${odd}`)).toEqual({ page: 'history', shown: all });
    }
    expect(isSamePage(historyHash(night), historyHash(all))).toBe(true);
    expect(isSamePage('#/fleet', historyHash(all))).toBe(false);
  });

  test('by a word, on the reader’s clock', () => {
    const now = new Date(2026, 4, 4, 7, 30, 12).getTime();
    const named = new Map(namedTimes(now).map(({ title, times }) => [title, times]));
    expect(named.get('Last night')).toEqual({
      sinceMs: new Date(2026, 4, 3, 18).getTime(),
      untilMs: new Date(2026, 4, 4, 9).getTime(),
    });
    expect(named.get('Yesterday')?.untilMs).toBe(named.get('Today')?.sinceMs);
    expect(named.get('Last hour')).toEqual({
      sinceMs: new Date(2026, 4, 4, 6, 30).getTime(),
      untilMs: null,
    });
    for (const { times } of namedTimes(now)) {
      expect(parseRoute(historyHash(times))).toEqual({ page: 'history', shown: times });
    }
  });

  test('a field holds the minute, or nothing', () => {
    const at = new Date(2026, 4, 4, 7, 30).getTime();
    expect(fieldText(at)).toBe('2026-05-04T07:30');
    expect(fieldMs(fieldText(at))).toBe(at);
    expect([fieldText(null), fieldMs('')]).toEqual(['', null]);
  });
});

test('a canary that goes on, rests, is over or has ended is told in words', () => {
  const at = new Date(2026, 4, 4, 12).getTime();
  const canary = {
    ...{ policy: 'abcdef0123456789', limiter: 'a.canary', percent: 12.5, sinceMs: at - 60_000 },
    ...{ judgedMs: at + 240_000, untilMs: at + 600_000, ended: null, rests: null },
  };
  expect(canarySentence(canary, at)).toBe(
    'Policy abcdef012345 is tried on 12.5 % of the subjects; it is judged after 12:04:00.',
  );
  expect(canarySentence({ ...canary, rests: 'a person holds the limiter' }, at)).toBe(
    'Policy abcdef012345 is tried on 12.5 % of the subjects. It rests, and its time does not count: a person holds the limiter.',
  );
  expect(canarySentence(canary, at + 600_000)).toMatch(/is over unjudged: no service asks it/);
  expect(canarySentence({ ...canary, ended: 'failed' }, at)).toBe(
    'Policy abcdef012345 failed, and was taken back; it waits for its file to change.',
  );
});
