/** What a turn means as an alert: when it is told, when it is taken back, and that it is told once. Stage: tests. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Alert,
  linesOf,
  ofItsLimiter,
  textOf,
  titleOf,
} from '../../src/report/notify/alert.js';
import { QUIET, turnCondition } from '../../src/report/notify/condition.js';
import { farAboveUsual, learnUsual, NOTHING_USUAL } from '../../src/report/notify/usual.js';
import {
  type Change,
  resumeWatch,
  startWatch,
  type WatchFacts,
  watch,
} from '../../src/report/notify/watch.js';

const T0 = 1_700_000_000_000;

function facts(changes: Partial<WatchFacts> = {}): WatchFacts {
  return {
    ...{ limiter: 'checkout', owner: 'payments', daemon: 'd1', nowMs: T0, state: 'closed' },
    ...{ rate: 400, inFlightMax: 44, revision: 7, change: null, news: [], holdEndsMs: null },
    ...{ heldBy: '', atFloorTicks: 0, signals: {}, traffic: null, subjectsMax: null },
    ...changes,
  } as WatchFacts;
}

function changed(more: Partial<Change> = {}): Change {
  return {
    ...{ epoch: 1, revision: 8, who: 'autopilot d1', reason: 'law_cut', sentence: 's' },
    ...{ atMs: T0, server: null, ...more },
  };
}

/** A second a turn. */
function run(turns: Partial<WatchFacts>[], from = startWatch()): Alert[] {
  let memory = from;
  return turns.flatMap((turn, i) => {
    const looked = watch(memory, facts({ nowMs: T0 + i * 1000, ...turn }));
    memory = looked.memory;
    return looked.alerts;
  });
}

const many = (count: number, turn: Partial<WatchFacts>) =>
  Array<Partial<WatchFacts>>(count).fill(turn);
const told = (alerts: Alert[]) => alerts.map(({ kind, state }) => `${kind} ${state}`);

test('of what a canary runs on the limiter is told, and that it is its canary', () => {
  const open = { limiter: 'api.canary', state: 'open', rate: 0, revision: 8 } as const;
  const [alert] = run([{ limiter: 'api.canary' }, open]);
  expect(titleOf(ofItsLimiter(alert!))).toBe(
    '[critical] api: its canary: tripped, the rate is 0/s',
  );
  expect(alert!.key).toBe('api.canary/trip');
  const [own] = run([{}, { ...open, limiter: 'checkout' }]);
  expect(ofItsLimiter(own!)).toBe(own);
});

describe('a trip', () => {
  const sentence = 'SYSTEMERROR 143 in 60 s, above 100';
  const change = changed({ reason: 'breaker_trip', sentence });

  test('is told at once, again when a probe fails, and its end when it has recovered', () => {
    const alerts = run([
      {},
      { state: 'open', rate: 0, revision: 8, change },
      { state: 'open', rate: 0, revision: 8, change },
      { state: 'half-open', rate: 1, revision: 9, change },
      { state: 'open', rate: 0, revision: 10, change },
      { state: 'half-open', rate: 1, revision: 11, change },
      { state: 'recovering', rate: 80, revision: 12, change },
      { revision: 13, change },
    ]);
    expect(told(alerts)).toEqual(['trip firing', 'retrip firing', 'trip resolved']);
    expect(new Set(alerts.map(({ key }) => key))).toEqual(new Set(['checkout/trip']));
  });

  test('says who, what, why, the numbers and the command that takes it back', () => {
    const [alert] = run([{}, { state: 'open', rate: 0, revision: 8, change }]);
    expect(titleOf(alert!)).toBe('[critical] checkout: tripped, the rate is 0/s');
    expect(Object.fromEntries(linesOf(alert!))).toMatchObject({
      why: 'SYSTEMERROR 143 in 60 s, above 100',
      who: 'autopilot d1',
      owner: 'payments',
      numbers: 'rate 0/s · in-flight cap 44 · state open · revision 8',
      undo: "flyball reset checkout --reason '…'",
      look: 'flyball explain checkout 8',
    });
  });

  test('that another daemon has told is not told again, and its end is', () => {
    const open = { state: 'open', rate: 0, revision: 8 } as const;
    const alerts = run([open, open, {}], resumeWatch(['checkout/trip']));
    expect(told(alerts)).toEqual(['trip resolved']);
  });
});

test('at the floor: after ten ticks, and its end after a steady minute', () => {
  const turns = [
    ...many(3, { atFloorTicks: 10 }),
    ...many(30, { atFloorTicks: 11 }),
    ...many(59, {}),
    ...many(1, { atFloorTicks: 11 }),
    ...many(62, {}),
  ];
  expect(told(run(turns))).toEqual(['at_floor firing', 'at_floor resolved']);
});

test('a signal is lost after 30 s without it; a tick that brings nothing new says neither', () => {
  const lost = { signals: { p99: { lost: true, why: 'unreachable' } } };
  const unknown = { signals: { p99: { lost: null, why: '' } } };
  const back = { signals: { p99: { lost: false, why: '' } } };
  expect(told(run([...many(30, lost)]))).toEqual([]);
  const alerts = run([...many(40, lost), ...many(100, unknown), ...many(62, back)]);
  expect(told(alerts)).toEqual(['signal_lost firing', 'signal_lost resolved']);
  expect(alerts[0]!.key).toBe('checkout/signal_lost/p99');
  expect(alerts[0]!.why).toBe('unreachable');
});

test('a lost signal that the policy no longer names is over; not so without a word on it', () => {
  const lost = { signals: { p99: { lost: true, why: 'unreachable' } } };
  const alerts = run([...many(40, lost), ...many(3, { signals: {} })]);
  expect(told(alerts)).toEqual(['signal_lost firing', 'signal_lost resolved']);
  expect(alerts[1]!.what).toBe('signal p99 is gone');
});

describe('denials', () => {
  const traffic = (denied: number) => ({
    traffic: { offered: 1000, denied, fallback: 0, slow: 0, overflow: 0 },
  });

  test('far above usual for a minute are told; the usual share, also a high one, never', () => {
    expect(told(run(many(2000, traffic(300))))).toEqual([]);
    const alerts = run([...many(600, traffic(20)), ...many(70, traffic(400))]);
    expect(told(alerts)).toEqual(['denied firing']);
    expect(alerts[0]!.what).toBe('40 % of requests denied, far above usual');
  });

  test('while the breaker is open are told as the trip alone, and not learned', () => {
    const open = { ...traffic(1000), state: 'open' as const, revision: 8 };
    const alerts = run([...many(600, traffic(20)), ...many(300, open), ...many(300, traffic(20))]);
    expect(told(alerts)).toEqual(['trip firing', 'trip resolved']);
  });

  test('an incident does not become usual within its first ten minutes', () => {
    let usual = NOTHING_USUAL;
    for (let i = 0; i < 600; i++) usual = learnUsual(usual, 0.01 + (i % 5) * 0.004);
    for (let i = 0; i < 600; i++) {
      expect(farAboveUsual(usual, 0.6)).toBe(true);
      usual = learnUsual(usual, 0.6);
    }
  });
});

test('fallback and slow decisions: more than one of a hundred, of enough', () => {
  const of = (offered: number, fallback: number, slow: number) => ({
    traffic: { offered, denied: 0, fallback, slow, overflow: 0 },
  });
  expect(told(run(many(60, of(10, 10, 10))))).toEqual([]);
  expect(told(run(many(60, of(1000, 10, 10))))).toEqual([]);
  expect(told(run(many(60, of(1000, 11, 0))))).toEqual(['fallback firing']);
  // A pause of one process at a low rate is a large share, and no news; many at once are.
  const quiet = of(20, 0, 0);
  expect(told(run(many(30, of(20, 1, 0)).flatMap((tick) => [tick, quiet])))).toEqual([]);
  expect(told(run([quiet, ...many(5, of(20, 1, 0))]))).toEqual(['fallback firing']);
  expect(told(run([quiet, of(20, 20, 0)]))).toEqual(['fallback firing']);
  expect(told(run(many(60, of(1000, 0, 11))))).toEqual(['slow_decisions firing']);
});

test('newcomers who share a bucket: told at once by the numbers, and over after a minute without', () => {
  const of = (overflow: number) => ({
    traffic: { offered: 10, denied: 0, fallback: 0, slow: 0, overflow },
    subjectsMax: 20,
  });
  const quiet = { traffic: null, subjectsMax: 20 };
  const alerts = run([
    ...many(3, of(0)),
    ...many(5, of(4)),
    ...many(90, quiet),
    ...many(50, of(0)),
  ]);
  expect(told(alerts)).toEqual(['subjects_overflow firing']);
  expect(titleOf(alerts[0]!)).toBe(
    '[warning] checkout: 40 % of requests are of newcomers who share one bucket',
  );
  expect(Object.fromEntries(linesOf(alerts[0]!))).toMatchObject({
    numbers: expect.stringContaining('requests in the shared bucket 4 of 10 · subjects.max 20'),
    why: expect.stringContaining('subjects.max'),
    look: 'flyball top checkout --denied',
  });
  const ends = run([...many(5, of(4)), ...many(70, of(0))]);
  expect(told(ends)).toEqual(['subjects_overflow firing', 'subjects_overflow resolved']);
  expect(ends[1]!.what).toBe('newcomers have buckets of their own again');
  // The next leader goes on from what was told.
  const resumed = resumeWatch(['checkout/subjects_overflow']);
  expect(told(run(many(70, of(0)), resumed))).toEqual(['subjects_overflow resolved']);
});

test('a hold is announced once, five minutes before it ends', () => {
  const turn = { holdEndsMs: T0 + 10 * 60_000, heldBy: 'ada@host (unverified)' };
  const alerts = run(many(700, turn));
  expect(told(alerts)).toEqual(['hold_ending event']);
  expect(alerts[0]!.what).toBe('the hold of ada@host (unverified) ends in 5 min 0 s');
  expect(alerts[0]!.atMs).toBe(T0 + 5 * 60_000);
});

test('what befell a Redis server is told for all that it holds, by the server that came, or the minute', () => {
  const news = [
    changed({ reason: 'redis_failover', server: 'r2' }),
    changed({ revision: 9 }),
    changed({ revision: 10, reason: 'writes_lost', server: 'r3' }),
    changed({ epoch: 2, revision: 1, reason: 'params_restored', sentence: 'They are back.' }),
  ];
  const alerts = run([{ revision: 1, news }, {}]);
  expect(told(alerts)).toEqual(['failover event', 'writes_lost event', 'params_restored event']);
  expect(alerts.map(({ key }) => key)).toEqual([
    'flyball/failover/r2',
    'flyball/writes_lost/r3',
    `flyball/params_restored/${Math.floor(T0 / 60_000)}`,
  ]);
  expect(new Set(alerts.map(({ limiter }) => limiter))).toEqual(new Set([null]));
  const [failover, lost, restored] = alerts;
  expect(linesOf(failover!)).toContainEqual(['look', 'flyball explain checkout 8']);
  expect(titleOf(lost!)).toMatch(/^\[warning\] flyball: Redis lost writes/);
  expect(titleOf(restored!)).toBe(
    '[critical] flyball: Redis had lost the limits of checkout: they are back as last seen',
  );
  expect(restored!.why).toMatch(/^They are back\. What else Redis held .* may be lost too$/);
});

test('an automatic rollback is told once, with what was seen and the way back', () => {
  const sentence =
    '100 → 60 good answers/s since the limits rose 9 s ago; back to the last good values.';
  const change = changed({ reason: 'auto_rollback', sentence, atMs: T0 - 5000 });
  const later = changed({ revision: 9 });
  const turn = { revision: 9, change: later };
  const [alert, ...others] = run([{}, { ...turn, news: [change, later] }, turn, turn]);
  expect(others).toEqual([]);
  expect(alert).toMatchObject({ key: 'checkout/auto_rollback/1/8', atMs: T0 - 5000 });
  expect(Object.fromEntries(linesOf(alert!))).toMatchObject({
    why: sentence,
    undo: "flyball rollback checkout --last --reason '…'",
    look: 'flyball explain checkout 8',
  });
});

test('what comes from outside stays on its line, and short', () => {
  const sentence = `x\n\u202eundo: rm -rf /\u0000${'y'.repeat(5000)}`;
  const change = changed({ who: 'a\nb', reason: 'trip', sentence });
  const [alert] = run([{}, { state: 'open', revision: 8, change }]);
  const text = textOf(alert!);
  for (const bad of ['\u0000', '\u202e']) expect(text).not.toContain(bad);
  expect(text.split('\n')).toHaveLength(linesOf(alert!).length + 1);
  expect(text.length).toBeLessThan(2500);
});

test('a condition: never told twice, whatever the clock does', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          holds: fc.constantFrom(true, false, null),
          stepMs: fc.integer({ min: -5000, max: 5000 }),
        }),
        { maxLength: 100 },
      ),
      (steps) => {
        let condition = QUIET;
        let nowMs = T0;
        let last: string | null = 'cleared';
        for (const { holds, stepMs } of steps) {
          nowMs += stepMs;
          const turn = turnCondition(condition, holds, nowMs, { afterMs: 2000, overMs: 3000 });
          if (turn.turned !== null) {
            expect(turn.turned).not.toBe(last);
            last = turn.turned;
          }
          condition = turn.condition;
        }
      },
    ),
  );
});
