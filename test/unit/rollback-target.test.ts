/** Which revision is good, what the last change was, and whether what is raised is carried: pure, from entries and minutes. Stage: tests. */
import { describe, expect, test } from 'vitest';
import { carryNotes } from '../../src/actuate/verbs/carries.js';
import type { EpisodeEntry } from '../../src/audit/episodes.js';
import { goodRevision } from '../../src/audit/good-revision.js';
import { lastChange } from '../../src/audit/last-change.js';
import type { HistoryRow } from '../../src/redis/history-rows.js';
import { policySchema } from '../../src/testing.js';
import { policyOf } from '../sim/fixtures.js';
import { madeUp } from '../support/history.js';

const MINUTE = 60_000;
const T0 = 28_000_000 * MINUTE;

const values = (rate: number, cap = 24) =>
  ({ mode: 'auto', state: 'closed', rate, capacity: 200, inFlightMax: cap }) as const;

/** Oldest first in, newest first out: `[minute, rate, reason]`; the autopilot's unless the reason is a person's. */
function changes(...steps: [minute: number, rate: number, reason?: string][]): EpisodeEntry[] {
  const person = ['pin', 'rollback', 'freeze', 'release'];
  return steps
    .map(([minute, rate, reason = 'law_cut'], i): EpisodeEntry => {
      const before = i === 0 ? null : values(steps[i - 1]![1]);
      const law = reason.startsWith('law') ? { law: 'adaptive@4' } : {};
      const atMs = T0 + minute * MINUTE;
      const kind = person.includes(reason) ? 'person' : 'autopilot';
      const actor = { kind, name: kind === 'person' ? 'ada@host (unverified)' : 'd1' } as const;
      const body = { atMs, actor, reason, sentence: '', before, after: values(rate), ...law };
      return { id: `${atMs}-0`, kind: 'change', epoch: 1, revision: i + 1, body };
    })
    .reverse();
}

function minutes(from: number, to: number, change: Partial<HistoryRow> = {}): HistoryRow[] {
  const [row] = madeUp({ days: 1 / 1440 });
  return Array.from({ length: to - from }, (_, i) => ({
    ...{ ...row!, ok: 6000, failed: 0 },
    ...change,
    minute: 28_000_000 + from + i,
  }));
}

const at = (minute: number, rate: number, extra = {}) => ({
  nowMs: T0 + minute * MINUTE,
  now: values(rate),
  ...extra,
});

describe('the last good revision', () => {
  const log = changes([0, 100, 'params_created'], [30, 200, 'law_raise'], [45, 150], [47, 120]);

  test('is the newest that stood ten minutes with its objectives met, and says why', () => {
    const good = goodRevision(log, minutes(0, 50), at(50, 120));
    expect(good.stand).toMatchObject({ revision: 2, after: { rate: 200 } });
    expect(good.why).toMatch(
      /^Revision 2 stood 15 min from .*Z: objectives met in 10 of the 10 minutes to .*Z, 100 good answers\/s\.$/,
    );
  });

  test('is an older one where the objectives of the newer were missed', () => {
    const rows = [...minutes(0, 30), ...minutes(30, 50, { overloadS: 20 })];
    expect(goodRevision(log, rows, at(50, 120)).stand).toMatchObject({ revision: 1 });
  });

  test('stands by its good minutes, though it went bad at last', () => {
    const rows = [...minutes(0, 41), ...minutes(41, 50, { overloadS: 60 })];
    expect(goodRevision(log, rows, at(50, 120)).stand).toMatchObject({ revision: 2 });
  });

  const none: [string, HistoryRow[], RegExp, object?][] = [
    ['nobody watched', [], /2 of 4 revisions stood.*revision 2, the newest of them: 0 of the 10/],
    ['a daemon led for seconds only', minutes(0, 50, { watchedS: 5 }), /0 of the 10 minutes/],
    ['nobody was answered', minutes(0, 50, { ok: 0 }), /0 of the 10 minutes/],
    ['missed throughout', minutes(0, 50, { overloadS: 9 }), /an objective was missed in 90 s/],
    ['the breaker', minutes(0, 50, { notClosedS: 1 }), /breaker was not closed in 10 s/],
    [
      'too many failed',
      minutes(0, 50, { failed: 600 }),
      /9.1 % of the answers failed/,
      { errorsBelow: 0.01 },
    ],
  ];
  test.each(none)('is none: %s', (_, rows, why, extra) => {
    const good = goodRevision(log, rows, at(50, 120, extra));
    expect(good.stand).toBeNull();
    expect(good.why).toMatch(why);
  });

  test('is none that stood too short; and what is in force already is no way back', () => {
    const restless = changes([0, 100, 'params_created'], [5, 90], [12, 80], [20, 70]);
    expect(goodRevision(restless, minutes(0, 25), at(25, 70)).why).toContain(
      'No revision of those',
    );
    const here = goodRevision(log.slice(2), minutes(0, 50), at(50, 200));
    expect(here.why).toMatch(/^What is in force is what revision 2 gave/);
    expect(goodRevision([], [], at(0, 1)).why).toBe('The log has no change.');
  });

  test('what moves no number ends nothing: a freeze, a trip', () => {
    const frozen = changes([0, 100, 'params_created'], [6, 100, 'freeze'], [20, 50]);
    expect(goodRevision(frozen, minutes(0, 30), at(25, 50)).stand).toMatchObject({ revision: 1 });
  });
});

describe('the last change', () => {
  const of = (steps: [number, number, string?][], now: number) => {
    const last = lastChange(changes([0, 100, 'params_created'], ...steps), values(now));
    return last === null ? null : [last.before.rate, last.count, last.words];
  };

  test('C91: of a person it is that one alone', () => {
    expect(
      of(
        [
          [30, 80],
          [31, 400, 'pin'],
        ],
        400,
      ),
    ).toEqual([80, 1, 'before the pin by ada@host (unverified) (revision 3)']);
    expect(of([[31, 400, 'policy_adopted']], 400)![2]).toBe(
      'before the policy_adopted by the autopilot (revision 2)',
    );
  });

  test('of the autopilot it is the whole move since the value stood, or since somebody set it', () => {
    expect(
      of(
        [
          [30, 80],
          [31, 70],
          [32, 60],
          [41, 50],
        ],
        50,
      ),
    ).toEqual([100, 4, 'before the 4 changes of the autopilot from revision 2 to 5']);
    expect(
      of(
        [
          [30, 80],
          [42, 70],
          [43, 60],
        ],
        60,
      )!.slice(0, 2),
    ).toEqual([80, 2]);
    expect(
      of(
        [
          [30, 300, 'pin'],
          [31, 280],
          [32, 250],
        ],
        250,
      )!.slice(0, 2),
    ).toEqual([300, 2]);
    expect(of([[30, 80]], 80)![2]).toBe('before the law_cut by the autopilot (revision 2)');
  });

  test('is not folded into nothing: down and up again, it is the newest step that made a difference', () => {
    expect(
      of(
        [
          [30, 80],
          [31, 60],
          [32, 80],
          [33, 101],
        ],
        101,
      )!.slice(0, 2),
    ).toEqual([80, 1]);
    expect(
      of(
        [
          [30, 80],
          [31, 100],
          [32, 101],
        ],
        101,
      )!.slice(0, 2),
    ).toEqual([80, 2]);
  });

  /** `[rate gone back to, revision undone, the rollback that it goes beyond]`. */
  const again = (
    steps: [number, number, string?][],
    details: Record<number, Record<string, unknown>>,
  ) => {
    const log = changes([0, 100, 'params_created'], ...steps).map((entry) => {
      const detail = details[entry.revision];
      return detail === undefined ? entry : { ...entry, body: { ...entry.body, detail } };
    });
    const last = lastChange(log, values(log[0]!.body.after!.rate));
    return last === null ? null : [last.before.rate, last.revision, last.beyond];
  };
  const undoes = (revision: number) => ({ undoesRevision: revision, undoesEpoch: 1 });

  test('C91: after a rollback it is one further back, never what the rollback took back', () => {
    const steps: [number, number, string?][] = [
      [30, 80, 'policy_adopted'],
      [31, 400, 'pin'],
      [32, 80, 'rollback'],
    ];
    expect(again(steps, { 4: undoes(3) })).toEqual([100, 2, 4]);
    // Twice, and then nothing older is there.
    expect(again([...steps, [33, 100, 'rollback']], { 4: undoes(3), 5: undoes(2) })).toBeNull();
    // To a revision, or to a time: from there.
    expect(again(steps, { 4: { toRevision: 2, toEpoch: 1 } })).toEqual([100, 2, 4]);
    expect(
      again(steps.slice(0, 2).concat([[32, 100, 'rollback']]), {
        4: { toRevision: 1, toEpoch: 1 },
      }),
    ).toBeNull();
    // A whole move of the autopilot after it is undone first; then what was before the rollback.
    const moved: [number, number, string?][] = [...steps, [33, 70], [34, 60]];
    expect(again(moved, { 4: undoes(3) })).toEqual([80, 5, undefined]);
    expect(again([...moved, [35, 80, 'rollback']], { 4: undoes(3), 7: undoes(5) })).toEqual([
      100, 2, 7,
    ]);
    // One that does not say what it went back to is a change like any other.
    expect(again(steps, {})).toEqual([400, 4, undefined]);
    expect(again(steps, { 4: { undoesRevision: 3 } })).toEqual([400, 4, undefined]);
  });

  test('what moves no number is passed over; and there may be none', () => {
    expect(
      of(
        [
          [30, 80],
          [31, 80, 'freeze'],
        ],
        80,
      )![0],
    ).toBe(100);
    expect(of([], 100)).toBeNull();
    expect(lastChange([], values(1))).toBeNull();
  });
});

describe('what is raised', () => {
  const policy = policySchema.parse({
    ...{ limiter: { name: 'orders-db', rate: 400, capacity: 400 }, mode: 'auto' },
    signals: {
      waits: { source: 'postgres', url: { env: 'DB' }, stat: 'waiting' },
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    },
    objective: { waits: { below: 2 }, p95: { below: '250ms' } },
  });
  const seen = (waits: number | null, p95 = 100) => ({
    atMs: T0,
    sample: {
      signals: {
        waits: { value: waits, fresh: waits !== null, ageMs: 0, count: 1 },
        p95: { value: p95, fresh: true, ageMs: 0, count: 100 },
      },
    },
  });

  test('is not carried while a signal is past its setpoint, and the numbers say so', () => {
    const notes = carryNotes(policy, seen(38), T0 + 900, values(118), values(400));
    expect(notes).toEqual([
      'waits is 38 (setpoint 2) at 118/s now; 400/s is above what it carries.',
    ]);
    expect(carryNotes(policy, seen(38, 900), T0, values(118), values(400))).toHaveLength(2);
    expect(carryNotes(policy, seen(38), T0, values(118, 12), values(118, 44))[0]).toContain(
      'in-flight cap 44 is above',
    );
  });

  test('is carried, as far as anybody knows; and where nobody knows, that is said', () => {
    expect(carryNotes(policy, seen(1), T0, values(118), values(400))).toEqual([]);
    expect(carryNotes(policy, seen(38), T0, values(400), values(118))).toEqual([]);
    expect(carryNotes(policyOf({ objective: {} }), null, T0, values(1), values(4))).toEqual([]);
    for (const unknown of [null, { ...seen(38), atMs: T0 - 31_000 }]) {
      expect(carryNotes(policy, unknown, T0, values(118), values(400))[0]).toContain(
        'is not known',
      );
    }
  });
});
