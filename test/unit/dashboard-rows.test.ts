/** What the dashboard says of a limiter, and in which order it shows many. */
import { describe, expect, test } from 'vitest';
import { attentions, pageTitle, worstAttention } from '../../src/dashboard/data/attention.js';
import {
  matches,
  nextSort,
  parseSort,
  rowOf,
  sorted,
  sortText,
  USUAL_SORT,
  visibleRange,
} from '../../src/dashboard/data/rows.js';
import type { StatusView } from '../../src/view/status.js';

const NOW = 1_800_000_000_000;

function viewOf(part: Partial<StatusView> & { limiter?: string } = {}): StatusView {
  return {
    limiter: 'checkout',
    group: null,
    managed: true,
    mode: 'auto',
    state: 'closed',
    epoch: 1,
    revision: 7,
    policyHash: 'abc',
    file: 'same',
    faults: [],
    law: 'adaptive@4',
    clocks: null,
    loop: null,
    inForce: { rate: 100, capacity: 50, inFlightMax: 20 },
    target: { rate: 100, capacity: 50, inFlightMax: 20 },
    bounds: { rate: [20, 400], capacity: [20, 400], inFlight: [2, 64] },
    binds: 'nothing',
    traffic: {
      ...{ seen: true, offeredPerSecond: 50, admittedPerSecond: 50, inFlight: 2 },
      ...{ deniedPerSecond: {}, wouldDenyPerSecond: {}, processes: 1, reporting: 1 },
    },
    worst: null,
    missing: [],
    holds: [],
    rollout: null,
    canary: null,
    routes: [],
    profile: null,
    openUntilMs: null,
    daemon: { alive: true, owner: 'east:1:a', lastTickAgeMs: 100, heartbeatLeftMs: 3000 },
    gliding: false,
    safe: null,
    rateOnly: null,
    wouldBe: null,
    lastChange: null,
    ...part,
  };
}

describe('what needs a person', () => {
  test('nothing, while all is well', () => {
    expect(attentions(viewOf(), NOW)).toEqual([{ level: 'well', words: '' }]);
  });

  test('an open breaker says when it probes; one held open says so', () => {
    const open = viewOf({ state: 'open', openUntilMs: NOW + 12_000 });
    expect(worstAttention(open, NOW)).toEqual({
      level: 'act',
      words: 'breaker open, probes in 12 s',
    });
    expect(worstAttention(viewOf({ state: 'open', openUntilMs: -1 }), NOW).words).toBe(
      'breaker held open',
    );
  });

  test('the worst comes first, a hold last', () => {
    const view = viewOf({
      ...{ state: 'half-open', file: 'pending' },
      daemon: { alive: false, owner: null, lastTickAgeMs: null, heartbeatLeftMs: 0 },
      holds: [{ kind: 'pinned', by: 'ann', untilMs: NOW + 60_000, leftMs: 1, breakerHeld: false }],
    });
    expect(attentions(view, NOW).map(({ level }) => level)).toEqual([
      ...['act', 'look', 'look', 'held'],
    ]);
    expect(attentions(view, NOW).at(-1)!.words).toBe('pinned for 1 min');
  });

  test('a changed policy waits for a person, unless a part of the subjects tries it', () => {
    const waits = viewOf({ file: 'pending' });
    expect(worstAttention(waits, NOW).words).toBe('a changed policy waits to be applied');
    const canary = {
      ...{ policy: 'abc', limiter: 'a.canary', percent: 5, sinceMs: NOW, judgedMs: NOW + 1 },
      ...{ untilMs: NOW + 2, ended: null, rests: null },
    };
    expect(worstAttention({ ...waits, canary }, NOW).level).toBe('well');
  });

  test('a signal over its setpoint counts while it has evidence, from a fifth over on', () => {
    const worst = { signal: 'p95', value: 150, setpoint: 100, ratio: 1.5, unit: 'ms' as const };
    const missed = viewOf({ worst: { ...worst, fresh: true } });
    expect(worstAttention(missed, NOW).words).toBe('p95 150 ms, 1.5 × its setpoint');
    expect(worstAttention(viewOf({ worst: { ...worst, fresh: false } }), NOW).level).toBe('look');
    const near = viewOf({ worst: { ...worst, ratio: 1.1, fresh: true } });
    expect(worstAttention(near, NOW).level).toBe('well');
    const lost = viewOf({
      worst: { ...worst, fresh: false },
      missing: [{ signal: 'p95', reason: 'source_error' }],
    });
    expect(attentions(lost, NOW)).toEqual([
      { level: 'look', words: 'no evidence of p95: source error' },
    ]);
  });

  test('a quiet signal is no fault', () => {
    const view = viewOf({ missing: [{ signal: 'p95', reason: 'no_traffic' }] });
    expect(worstAttention(view, NOW).level).toBe('well');
  });

  test('the title says what is wrong before what is shown', () => {
    expect(pageTitle('Limiters', [])).toBe('Limiters · Flyball');
    const one = [{ name: 'checkout', words: 'breaker open' }];
    expect(pageTitle('Limiters', one)).toBe('checkout: breaker open · Limiters · Flyball');
    expect(pageTitle('Limiters', [...one, ...one])).toBe(
      '2 limiters need you · Limiters · Flyball',
    );
  });
});

describe('rows', () => {
  const rows = [
    viewOf({ limiter: 'a', inForce: { rate: 5, capacity: 1, inFlightMax: null } }),
    viewOf({ limiter: 'b', state: 'open' }),
    viewOf({ limiter: 'c', inForce: { rate: 300, capacity: 1, inFlightMax: 3 }, group: 'orders' }),
    viewOf({ limiter: 'd', managed: false, state: null, inForce: null, mode: null }),
  ].map((view) => rowOf(view, NOW));
  const names = (text: string) => sorted(rows, parseSort(text)).map(({ view }) => view.limiter);

  test('what needs a person first, else by any column, equal ones by name', () => {
    expect(names('')).toEqual(['b', 'd', 'a', 'c']);
    expect(names('name')).toEqual(['a', 'b', 'c', 'd']);
    expect(names('-rate')).toEqual(['c', 'b', 'a', 'd']);
    expect(names('-offered')).toEqual(['a', 'b', 'c', 'd']);
    expect(names('constructor')).toEqual(names(''));
  });

  test('a sort and its text are one', () => {
    for (const text of ['', 'name', '-rate', '-denied', 'change']) {
      expect(sortText(parseSort(text))).toBe(text);
    }
    expect(nextSort(USUAL_SORT, 'rate')).toEqual({ by: 'rate', descending: true });
    expect(nextSort({ by: 'rate', descending: true }, 'rate').descending).toBe(false);
    expect(nextSort(USUAL_SORT, 'name').descending).toBe(false);
  });

  test('each word must be found, in whatever the row says', () => {
    const found = (search: string) => rows.filter((row) => matches(row, search)).length;
    expect(found('')).toBe(4);
    expect(found('OPEN breaker')).toBe(1);
    expect(found('orders')).toBe(1);
    expect(found('unmanaged')).toBe(1);
    expect(found('orders open')).toBe(0);
  });

  test('only what the window shows is drawn, and never nothing', () => {
    expect(visibleRange(0, 900, 50, 1000)).toEqual({ from: 0, to: 26 });
    expect(visibleRange(25_000, 900, 50, 1000)).toEqual({ from: 492, to: 526 });
    expect(visibleRange(1e9, 900, 50, 1000)).toEqual({ from: 999, to: 1000 });
    expect(visibleRange(0, 900, 50, 3)).toEqual({ from: 0, to: 3 });
    expect(visibleRange(0, 900, 50, 0)).toEqual({ from: 0, to: 0 });
  });
});
