/** Episodes in words: what happened, why, what it cost, how it ended, in sentences that are kept as they are. */
import { describe, expect, test } from 'vitest';
import { recommendedLead } from '../../src/actuate/recommended.js';
import { episodeTimes } from '../../src/audit/episode-sentence.js';
import { type Episode, type EpisodesOptions, episodesOf } from '../../src/audit/episodes.js';
import { seenOf } from '../../src/decide/reasons.js';
import { policySchema } from '../../src/policy/schema.js';
import { AT, entriesOf, STEADY, type Step, saw } from '../support/episode-entries.js';
import { madeUp } from '../support/history.js';

const MINUTE = Math.floor(AT / 60_000);
const waits = (value: string, ratio: number, rest?: string) =>
  saw('orders-db waits', value, ratio, '10', rest);

const tell = (steps: Step[], options: EpisodesOptions = {}) =>
  episodesOf(entriesOf(steps), options).map(({ sentence }) => sentence);

/** 41 changes in 17 minutes: down in five steps, then back up. */
function night(): Step[] {
  const down = [300, 220, 160, 130, 118].map((rate, i) => ({
    s: i * 5,
    to: { rate, inFlightMax: 44 - 8 * i },
    reason: 'law_cut',
    ...(i === 2
      ? waits('38', 3.8, '90 good answers/s; cap 44 → 12.')
      : waits(`${12 + i}`, 1.2 + i / 10)),
  }));
  const up = Array.from({ length: 36 }, (_, i) => ({
    s: 60 + i * 27,
    to: { rate: Math.round(118 + ((394 - 118) * (i + 1)) / 36), inFlightMax: 12 + i },
    reason: 'law_raise',
    sentence: 'the limits bind.',
  }));
  up.at(-1)!.to.inFlightMax = 44;
  return [...down, ...up];
}

describe('sentences', () => {
  test('a night: cause, numbers, changes, cost and the way back', () => {
    const rows = madeUp({ days: 1 / 24 })
      .slice(0, 20)
      .map((row, i) => ({
        ...row,
        minute: MINUTE + i,
        denied: { rate: 150, reserve: 6 },
        overloadS: 10.4,
      }));
    const [episode, ...others] = episodesOf(entriesOf(night()), { rows });
    expect(others).toEqual([]);
    expect(episode!.sentence).toBe(
      'orders-db waits 38; 400 → 118/s, cap 44 → 12; 41 changes; 2,652 denied; back at 394',
    );
    const utc = (ms: number) => new Date(ms).toISOString().slice(11, 16);
    expect(episodeTimes(episode!, utc)).toBe('02:14–02:30');
    expect(episode).toMatchObject({
      changes: 41,
      firstRevision: 120,
      lastRevision: 160,
      open: false,
      cause: {
        kind: 'objective',
        signal: 'orders-db waits',
        value: '38',
        setpoint: '10',
        ratio: 3.8,
        revision: 122,
      },
      cost: {
        denied: 2652,
        byReason: { rate: 2550, reserve: 102 },
        shed: 102,
        objectiveMissedS: 177,
        minutes: 17,
      },
      farthest: { rate: 118, inFlightMax: 12 },
    });
  });

  test.each<[string, Step[], string]>([
    [
      'one cut that stays',
      [
        {
          s: 0,
          to: { rate: 200 },
          ...saw('p99', '612 ms', 1.22, '500 ms', 'rate ceiling 400 → 200/s.'),
        },
      ],
      'p99 612 ms; 400 → 200/s',
    ],
    [
      'a trip and its end',
      [
        {
          s: 0,
          to: { state: 'open' },
          reason: 'breaker_trip',
          sentence: 'failures 32 of 60 prove 33 %, above 20 %; closed → open.',
        },
        { s: 30, to: { state: 'recovering', rate: 40 }, reason: 'breaker_recovering' },
        { s: 60, to: { state: 'closed', rate: 400 }, reason: 'breaker_closed' },
      ],
      'failures 32 of 60 prove 33 %, above 20 %; 400 → 40/s; breaker opened; 3 changes; back at 400',
    ],
    [
      'a person, with their words',
      [
        {
          s: 0,
          by: 'ops@db (unverified)',
          reason: 'pin',
          to: { rate: 250 },
          detail: { why: 'sale' },
        },
      ],
      'pin by ops@db (unverified) (sale); 400 → 250/s',
    ],
    [
      'a rollback after cuts',
      [
        { s: 0, to: { rate: 100 }, ...saw('p99', '900 ms', 1.8, '500 ms') },
        { s: 90, by: 'ops', reason: 'rollback', to: { rate: 390 }, detail: { toRevision: 119 } },
      ],
      'p99 900 ms; 400 → 100/s; 2 changes; rollback to 390/s by ops; back at 390',
    ],
    [
      'what persons moved is theirs, not the effect of the cause',
      [
        {
          s: 0,
          to: { rate: 80, inFlightMax: 7 },
          ...saw('p95', '669 ms', 2.67, '250 ms'),
        },
        { s: 90, by: 'ana', reason: 'pin', to: { rate: 23 }, detail: { why: 'batch' } },
        { s: 99, by: 'raj', reason: 'trip', to: { state: 'open' } },
        {
          s: 104,
          reason: 'breaker_recovering',
          to: { state: 'closed' },
          sentence: '3 probes passed.',
        },
      ],
      'p95 669 ms; 400 → 80/s, cap 44 → 7; 4 changes; pin to 23/s by ana; trip by raj; ends at 23, cap 7',
    ],
    [
      'a rate that only a person moved, while the law moved the cap',
      [
        {
          s: 0,
          to: { inFlightMax: 7 },
          ...saw('p95', '669 ms', 2.67, '250 ms'),
        },
        { s: 90, by: 'ana', reason: 'pin', to: { rate: 23, inFlightMax: 5 } },
        { s: 99, by: 'ana', reason: 'freeze' },
      ],
      'p95 669 ms; cap 44 → 7; 3 changes; pin to 23/s and cap 5, freeze by ana; ends at 23, cap 5',
    ],
    [
      'a rollback alone',
      [{ s: 0, by: 'ops', reason: 'rollback', to: { rate: 90 }, detail: { toRevision: 7 } }],
      'rollback to r7 by ops; 400 → 90/s',
    ],
    [
      'a failover is worse than what follows',
      [
        {
          s: 0,
          to: { rate: 200 },
          reason: 'redis_failover',
          sentence: 'Another Redis server took over; the rate is halved.',
        },
        { s: 9, to: { rate: 100 }, ...saw('p99', '900 ms', 1.8, '500 ms') },
        { s: 60, to: { rate: 300 }, reason: 'failover_over' },
      ],
      'Another Redis server took over; 400 → 100/s; 3 changes; ends at 300',
    ],
    [
      'a window',
      [
        {
          s: 0,
          to: { rate: 200 },
          reason: 'window_begins',
          sentence: 'The profile night begins; rate 400 → 200/s.',
        },
      ],
      'The profile night begins; 400 → 200/s',
    ],
    [
      'a change of mode',
      [{ s: 0, to: { mode: 'recommend' }, reason: 'policy_adopted', sentence: 'Policy adopted.' }],
      'Policy adopted; mode auto → recommend',
    ],
    [
      'the cap alone',
      [
        { s: 0, to: { inFlightMax: 20 }, reason: 'tune', sentence: 'tuned.' },
        { s: 5, to: { inFlightMax: 43 }, reason: 'tune', sentence: 'tuned.' },
      ],
      'tuned; cap 44 → 20; 2 changes; back at cap 43',
    ],
    [
      'the rate is back, the cap is not',
      [
        { s: 0, to: { rate: 200, inFlightMax: 10 }, sentence: 'cut.' },
        { s: 5, to: { rate: 400, inFlightMax: 20 }, sentence: 'cut.' },
      ],
      'cut; 400 → 200/s, cap 44 → 10; 2 changes; ends at 400, cap 20',
    ],
    [
      'a step law says its own words',
      [
        {
          s: 0,
          to: { rate: 200 },
          reason: 'step_db_waits',
          sentence: '38 database waits, above 10 for 30 s; rate ceiling 400 → 200/s.',
        },
      ],
      '38 database waits, above 10 for 30 s; 400 → 200/s',
    ],
    [
      'rules of subjects move no limit',
      [{ s: 0, by: 'ops', reason: 'subject_block', detail: { subject: 'user:42' } }],
      'subject_block user:42 by ops; no limit moved',
    ],
    [
      'many of them',
      [
        ...[0, 1, 2].map((s) => ({ s, by: 'ops', reason: 'subject_block' })),
        { s: 9, reason: 'policy_adopted' },
      ],
      '4 changes that moved no limit: subject_block 3, policy_adopted 1',
    ],
  ])('%s', (_, steps, sentence) => {
    expect(tell(steps)).toEqual([sentence]);
  });

  test('a limiter begins', () => {
    const created = entriesOf(
      [{ s: 0, reason: 'params_created', sentence: 'checkout begins.' }],
      null,
    );
    expect(episodesOf(created)[0]!.sentence).toBe('checkout begins; begins at 400/s, cap 44');
    const moved = entriesOf(
      [
        { s: 0, reason: 'params_created' },
        { s: 9, by: 'ops', reason: 'pin', to: { rate: 33 } },
      ],
      null,
    );
    expect(episodesOf(moved)[0]!.sentence).toBe('pin by ops; 400 → 33/s; 2 changes');
  });

  test('one that goes on says so, with where it stands', () => {
    const cut = [
      { s: 0, to: { rate: 100 }, sentence: 'cut.' },
      { s: 60, to: { rate: 150 }, sentence: 'cut.' },
    ];
    expect(tell(cut, { nowMs: AT + 600_000 })).toEqual([
      'cut; 400 → 100/s; 2 changes; not over, now at 150',
    ]);
    expect(tell(cut, { nowMs: AT + 660_000 })).toEqual([
      'cut; 400 → 100/s; 2 changes; ends at 150',
    ]);
    const [open] = episodesOf(entriesOf(cut), { nowMs: AT + 600_000 });
    expect(episodeTimes(open!, () => '02:14')).toBe('02:14–now');
    const trip: Step[] = [{ s: 0, to: { state: 'open' }, reason: 'trip', by: 'ops' }];
    expect(tell(trip, { nowMs: AT + 86_400_000 })).toEqual([
      'trip by ops; breaker opened; not over, breaker open',
    ]);
    expect(episodesOf(entriesOf(trip), { nowMs: AT + 7_200_000 })[0]!.openMs).toBe(7_200_000);
  });

  test('recommendations have episodes of their own, which say that nothing was applied', () => {
    const steps: Step[] = [
      {
        s: 0,
        note: { rate: 520 },
        law: 'adaptive@4',
        reason: 'law_raise',
        sentence: `${recommendedLead('auto')}the limits bind; rate ceiling 400 → 520/s.`,
      },
      { s: 5, note: null, reason: 'write_refused' },
      {
        s: 70,
        note: { rate: 480 },
        law: 'adaptive@4',
        reason: 'law_cut',
        ...saw('p99', '700 ms', 1.4, '500 ms'),
        sentence: `${recommendedLead('auto')}p99 700 ms is 1.4 × the 500 ms setpoint; cut.`,
      },
    ];
    expect(tell(steps)).toEqual([]);
    const would = episodesOf(entriesOf(steps), {}, 'would_be');
    expect(would.map(({ sentence }) => sentence)).toEqual([
      'would be: p99 700 ms; 400 → 520/s; 2 recommendations; ends at 480',
    ]);
    expect(would[0]).toMatchObject({ cost: null, lane: 'would_be', changes: 2 });
  });

  test('what the laws see of an overload is the cause, with its numbers', () => {
    const policy = policySchema.parse({
      limiter: { name: 'a', rate: 1, capacity: 1 },
      signals: {
        p99: { source: 'telemetry', stat: 'latency', of: 0.99 },
        errors: { source: 'telemetry', stat: 'errorRatio' },
      },
    });
    for (const [worst, value, setpoint, said] of [
      ['p99', 612, 500, 'p99 612 ms'],
      ['errors', 0.123, 0.1, 'errors 12.3 %'],
    ] as const) {
      const overload = { z: 1, worst, value, setpoint, missedMs: 2000, fresh: true };
      const { why, over } = seenOf(policy, overload, '90 good answers/s');
      expect(why).toMatch(/^\S+ [\d.]+ (ms|%) is 1\.2[23] × the .* for 2 s; 90 good answers\/s$/);
      const detail = JSON.parse(JSON.stringify({ over }));
      const [episode] = episodesOf(
        entriesOf([{ s: 0, to: { rate: 9 }, sentence: 'cut.', detail }]),
      );
      expect(episode!.cause).toMatchObject({
        text: said,
        signal: worst,
        ratio: Number((value / setpoint).toPrecision(3)),
      });
    }
    const unknown = { z: 0, worst: '', value: 0, setpoint: 0, missedMs: 0, fresh: false };
    expect(seenOf(policy, unknown, '')).toEqual({ why: 'no fresh signal' });
  });

  test('an entry without the reading, or with another form of it, is told by its words', () => {
    const sentence = 'p99 612 ms is 1.22 × the 500 ms setpoint; cut.';
    const strange = [undefined, null, 'p99', {}, { signal: 'p99', value: 612, setpoint: '500 ms' }];
    for (const over of strange) {
      const steps = [{ s: 0, to: { rate: 200 }, sentence, detail: { over } }];
      const [{ cause }] = episodesOf(entriesOf(steps)) as [Episode];
      expect(cause).toMatchObject({
        kind: 'objective',
        text: 'p99 612 ms is 1.22 × the 500 ms setpoint',
      });
      expect(cause).not.toHaveProperty('ratio');
    }
  });
});

describe('where one ends and the next begins', () => {
  test('ten steady minutes end it, to the millisecond', () => {
    const cutsApart = (s: number) => [
      { s: 0, to: { rate: 300 } },
      { s, to: { rate: 200 } },
    ];
    expect(episodesOf(entriesOf(cutsApart(599.999)))).toHaveLength(1);
    expect(episodesOf(entriesOf(cutsApart(600)))).toHaveLength(2);
  });

  test('what moves nothing folds in, and makes it no longer', () => {
    const steps = [
      { s: 0, to: { rate: 300 } },
      { s: 500, reason: 'policy_adopted' },
      { s: 700, to: { rate: 200 } },
    ];
    const [first, second] = episodesOf(entriesOf(steps));
    expect([first!.changes, second!.changes]).toEqual([2, 1]);
    expect(first!.toMs).toBe(AT);
  });

  test('an open breaker is no steady value, however long it stands', () => {
    const steps: Step[] = [
      { s: 0, to: { state: 'open' }, reason: 'trip', by: 'ops' },
      { s: 7200, to: { state: 'closed' }, reason: 'reset', by: 'ops' },
      { s: 7800, to: { rate: 1 } },
    ];
    const [tripped, cut] = episodesOf(entriesOf(steps));
    expect(tripped).toMatchObject({ changes: 2, trips: 1, openMs: 7_200_000 });
    expect(tripped!.persons.map(({ verb }) => verb)).toEqual(['trip', 'reset']);
    expect(cut).toMatchObject({ changes: 1 });
  });

  test('a reserve alone counts as moved', () => {
    const steps = [
      { s: 0, to: { reserve: { default: 0, sheddable: 0.2 } }, reason: 'reserve_raise' },
    ];
    expect(episodesOf(entriesOf(steps, STEADY))[0]!.moved).toBe(true);
  });

  test('older entries may exist: the first is marked, the others are not', () => {
    const told = episodesOf(
      entriesOf([
        { s: 0, to: { rate: 1 } },
        { s: 900, to: { rate: 2 } },
      ]),
      { cut: true },
    );
    expect(told.map(({ cut }) => cut)).toEqual([true, false]);
  });
});
