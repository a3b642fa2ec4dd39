/** docs/signals-truth-table.md, cell by cell: what a reading does to its estimate, and what the policy makes of it. */
import { describe, expect, test } from 'vitest';
import type { MissingReason } from '../../src/sense/readings.js';
import { createDecideState, createEstimateState, estimate, turn } from '../../src/testing.js';
import { readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';
import {
  cut,
  type Kind,
  type Moment,
  type OnMissing,
  play,
  policyFor,
  raised,
  room,
  START_MS,
  telemetryPolicy,
  tripped,
  value,
} from '../sim/readings-play.js';

const REASONS: MissingReason[] = [
  ...(['no_data', 'stale', 'not_finite', 'reset', 'timeout', 'unreachable'] as const),
  ...(['error', 'breaker_open', 'not_started', 'clock_skew', 'ambiguous', 'partial'] as const),
];

test('a fresh reading: with room and a limit that binds it raises; overloaded it cuts; failing it trips', () => {
  const policy = policyFor('hold');
  expect(play(policy, () => ({}), 3).every(raised)).toBe(true);
  const waits = play(policy, ({ atMs }) => ({ dbWait: value(40, atMs) }), 6);
  expect(waits.slice(4).some(cut)).toBe(true);
  const failing = ({ atMs }: Moment) => ({ telemetry: room(atMs, { ok: 0, failed: 200 }) });
  expect(play(policy, failing, 4).some(tripped)).toBe(true);
});

/** Of a source: what its estimate says once the kind has lasted, and whether that counts as missing. */
const OF_A_SOURCE: [name: string, kind: Kind, reason: string | undefined][] = [
  ...REASONS.map((reason): [string, Kind, string] => [
    `missing, ${reason}`,
    () => ({ dbWait: { kind: 'missing', reason } }),
    reason,
  ]),
  ['not a number', ({ atMs }) => ({ dbWait: value(Number.NaN, atMs) }), 'not_finite'],
  ['infinite', ({ atMs }) => ({ dbWait: value(Number.POSITIVE_INFINITY, atMs) }), 'not_finite'],
  ['too large to be true', ({ atMs }) => ({ dbWait: value(1e300, atMs) }), 'not_finite'],
  ['run backwards, below 0', ({ atMs }) => ({ dbWait: value(-3, atMs) }), 'reset'],
  ['the same reading again', () => ({ dbWait: value(1, START_MS) }), 'stale'],
  ['of a moment long ago', ({ atMs }) => ({ dbWait: value(0, atMs - 600_000) }), 'stale'],
  ['of a moment to come', ({ atMs }) => ({ dbWait: value(0, atMs + 600_000) }), 'clock_skew'],
];

describe.each(OF_A_SOURCE)('a source, %s', (_name, kind, reason) => {
  test('estimate: what was known grows older, nothing is fresh; lost after 3 s, and never 0', () => {
    const ticks = play(policyFor('hold'), kind, 6);
    const first = ticks[1]!.estimates.signals.dbWait!;
    expect(first).toMatchObject({ value: 1, fresh: false });
    expect(first.reason).toBeUndefined();
    const last = ticks.at(-1)!.estimates.signals.dbWait!;
    expect(last).toMatchObject({ value: 1, fresh: false, reason });
    expect(last.ageMs).toBeGreaterThanOrEqual(6000);
  });

  test('hold: once it is lost nothing is raised; another signal past its setpoint still cuts', () => {
    const ticks = play(policyFor('hold'), kind, 30).slice(5);
    expect(ticks.some(raised) || ticks.some(cut) || ticks.some(tripped)).toBe(false);
    expect(ticks.at(-1)!.decision.reason).toBe('signal_missing');
    const overloaded = play(policyFor('hold'), (m) => ({ ...slowAt(m), ...kind(m) }), 8);
    expect(overloaded.some(cut)).toBe(true);
    expect(overloaded.slice(5).some(raised)).toBe(false);
  });

  test('glide: after 5 s toward the safe values, there 10 s later, never up', () => {
    const ticks = play(policyFor('glide'), kind, 30);
    expect(ticks.slice(5, 9).some(cut)).toBe(false);
    expect(ticks.slice(5).some(raised) || ticks.some(tripped)).toBe(false);
    const rates = ticks.slice(5).map(({ decision }) => decision.rate);
    expect(rates).toEqual([...rates].sort((a, b) => b - a));
    expect(ticks.at(-1)!.decision).toMatchObject({ rate: 50, inFlightMax: 12 });
    const low = policyFor('glide', {
      whenLost: { after: '5s', over: '10s', rate: 300, inFlight: 60 },
    });
    expect(play(low, kind, 30).slice(5).some(raised)).toBe(false);
    const mixed = policyFor('glide', {
      whenLost: { after: '5s', over: '10s', rate: 300, inFlight: 4 },
    });
    const both = play(mixed, kind, 30).slice(5);
    expect(both.some(raised)).toBe(false);
    expect(both.at(-1)!.decision.inFlightMax).toBe(4);
  });

  test('ignore: the other signals decide, up and down', () => {
    expect(play(policyFor('ignore'), kind, 8).slice(5).some(raised)).toBe(true);
    const slow = play(policyFor('ignore'), (m) => ({ ...slowAt(m), ...kind(m) }), 8);
    expect(slow.some(cut)).toBe(true);
  });
});

const slowAt = ({ atMs }: Moment) => ({ telemetry: room(atMs, { ms: 900 }) });

/** Of the services: every tick without sound telemetry decides nothing, from the first on. */
const OF_SERVICES: [name: string, kind: Kind, reason: string | undefined][] = [
  ...REASONS.map((reason): [string, Kind, string] => [
    `missing, ${reason}`,
    () => ({ telemetry: { kind: 'missing', reason } }),
    reason,
  ]),
  ['not a number', ({ atMs }) => ({ telemetry: room(atMs, { ok: Number.NaN }) }), 'not_finite'],
  [
    'infinite',
    ({ atMs }) => ({ telemetry: room(atMs, { admitted: Number.POSITIVE_INFINITY }) }),
    'not_finite',
  ],
  ['run backwards, below 0', ({ atMs }) => ({ telemetry: room(atMs, { ok: -40 }) }), 'reset'],
  ['the same reading again', () => ({ telemetry: room(START_MS + 11_000) }), 'stale'],
  ['of a moment long ago', ({ atMs }) => ({ telemetry: room(atMs - 600_000) }), 'stale'],
  ['of a moment to come', ({ atMs }) => ({ telemetry: room(atMs + 600_000) }), 'clock_skew'],
];

describe.each(OF_SERVICES)('services, %s', (_name, kind, reason) => {
  const failing: Kind = (moment) => {
    const { telemetry } = kind(moment);
    if (telemetry?.kind !== 'telemetry') return { telemetry: telemetry! };
    const generation = { id: 0, ok: 0, failed: 900, codes: {} };
    return { telemetry: { ...telemetry, failed: telemetry.failed + 900, generation } };
  };

  test('estimate: what was known grows older, nothing is fresh; lost after 3 s', () => {
    const ticks = play(telemetryPolicy('hold'), kind, 6);
    for (const { estimates } of ticks.slice(1)) {
      expect(estimates.traffic.fresh || estimates.outcomes.fresh).toBe(false);
      expect(estimates.signals.p95!.fresh || estimates.signals.errors!.fresh).toBe(false);
    }
    expect(ticks.at(-1)!.estimates.signals.p95).toMatchObject({ fresh: false, reason });
    expect(ticks.at(-1)!.estimates.traffic.okRate).toBe(100);
  });

  test.each(['hold', 'ignore'] as const)('%s: no raise, no cut, no trip from the first', (on) => {
    for (const each of [kind, failing]) {
      const ticks = play(telemetryPolicy(on), each, 30).slice(1);
      expect(ticks.some(raised) || ticks.some(cut) || ticks.some(tripped)).toBe(false);
    }
  });

  test('glide: after 5 s toward the safe values, there 10 s later, never up, no trip', () => {
    const ticks = play(telemetryPolicy('glide'), failing, 30).slice(1);
    expect(ticks.slice(0, 5).some(cut)).toBe(false);
    expect(ticks.some(raised) || ticks.some(tripped)).toBe(false);
    expect(ticks.at(-1)!.decision).toMatchObject({ rate: 50, inFlightMax: 12 });
  });
});

test('a source that is ten minutes behind is stale, also when each reading is newer than the last', () => {
  const policy = policyFor('hold');
  let seen = createEstimateState();
  for (let tick = 0; tick < 5; tick++) {
    const atMs = START_MS + tick * 1000;
    const readings = readingsOf(atMs, room(atMs), { dbWait: value(0, atMs - 600_000) });
    const next = estimate(policy, seen, readings, 1000);
    seen = next.state;
    expect(next.estimates.signals.dbWait).toEqual({
      ...{ value: null, fresh: false, ageMs: 0, count: 0, reason: 'stale' },
    });
  }
});

describe('thin', () => {
  const few = ({ atMs }: Moment) => ({
    telemetry: telemetryOf(atMs, { ok: 4, failed: 4, ms: 900, denied: { rate: 20 } }),
  });
  const alone = (onMissing: OnMissing) => {
    const policy = telemetryPolicy(onMissing);
    let seen = createEstimateState();
    const state = createDecideState(policy);
    const { telemetry } = few({ tick: 0, atMs: START_MS });
    const next = estimate(policy, seen, readingsOf(START_MS, telemetry), 1000);
    seen = next.state;
    const sample = { ...sampleOf(), ...next.estimates };
    return { ...next.estimates, ...turn(policy, state, sample), before: sample.inForce.target };
  };

  test('estimate: a value, but not fresh; a ratio of fewer than 10 answers is unknown', () => {
    const { signals } = alone('hold');
    expect(signals.p95).toMatchObject({ fresh: false, reason: 'thin', count: 8 });
    expect(signals.errors).toMatchObject({ value: null, fresh: false, reason: 'thin' });
  });

  test.each(['hold', 'glide', 'ignore'] as const)(
    '%s: it is not missing: it moves nothing',
    (on) => {
      const { decision } = alone(on);
      expect(decision.change).toBe(false);
    },
  );

  test('C60: no traffic at all is the same: unknown, not missing, and moves nothing', () => {
    const idle = ({ atMs }: Moment) => ({ telemetry: telemetryOf(atMs, { ok: 0 }) });
    const ticks = play(telemetryPolicy('glide'), idle, 90).slice(2);
    expect(ticks.at(-1)!.estimates.signals.p95!.reason).toBe('no_traffic');
    expect(ticks.some(({ decision }) => decision.change)).toBe(false);
  });

  test.each(['hold', 'glide', 'ignore'] as const)(
    '%s: a source that says there was no traffic is not missing: the other signals decide',
    (on) => {
      const kind = () => ({ dbWait: { kind: 'missing', reason: 'no_traffic' } as const });
      const ticks = play(policyFor(on), kind, 20);
      expect(ticks.at(-1)!.estimates.signals.dbWait).toMatchObject({ fresh: false });
      expect(ticks.slice(5).some(raised)).toBe(true);
      expect(ticks.some(cut)).toBe(false);
    },
  );

  test('the first reading of a plain number is thin until a second one agrees', () => {
    const policy = policyFor('hold', {
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        errors: { source: 'telemetry', stat: 'errorRatio' },
        dbWait: { source: 'postgres', stat: 'connectionsRatio', url: 'postgres://db' },
      },
      objective: { p95: { below: '250ms' }, dbWait: { below: '80%' } },
    });
    let seen = createEstimateState();
    const read = [0.9, 0.92].map((ratio, i) => {
      const atMs = START_MS + i * 1000;
      const readings = readingsOf(atMs, room(atMs), { dbWait: value(ratio, atMs) });
      const next = estimate(policy, seen, readings, 1000);
      seen = next.state;
      return next.estimates.signals.dbWait!;
    });
    expect(read).toMatchObject([{ fresh: false, reason: 'thin' }, { fresh: true }]);
  });
});

describe('a clock that is set', () => {
  const jumps: [string, number][] = [
    ['forward by an hour', 3_600_000],
    ['forward by 10 s', 10_000],
    ['back by 10 min', -600_000],
    ['back by a day', -86_400_000],
  ];

  test.each(jumps)(
    '%s: estimate: nothing is fresh in that tick, all is again in the next',
    (_n, by) => {
      const ticks = play(policyFor('hold'), () => ({ clockMs: by }), 3);
      const [, jump, after] = ticks.map(({ estimates }) => estimates);
      expect(jump!.traffic.fresh || jump!.outcomes.fresh).toBe(false);
      expect(jump!.signals.p95).toMatchObject({ fresh: false, reason: 'clock_skew' });
      expect(jump!.signals.dbWait).toMatchObject({ fresh: false, reason: 'clock_skew' });
      expect(after!.traffic.fresh && after!.signals.p95!.fresh).toBe(true);
    },
  );

  test.each(jumps)(
    '%s: hold, glide, ignore: that tick raises, cuts and trips nothing',
    (_n, by) => {
      for (const onMissing of ['hold', 'glide', 'ignore'] as const) {
        const kind = ({ atMs, tick }: Moment) => ({
          clockMs: by,
          telemetry: room(atMs + by, tick === 0 ? { ms: 900, failed: 900 } : {}),
        });
        const [, jump] = play(policyFor(onMissing), kind, 2);
        expect(raised(jump!) || cut(jump!) || tripped(jump!)).toBe(false);
      }
    },
  );

  test('an objective with `sustain` is not missed for an hour because the clock says so', () => {
    const objective = { p95: { below: '250ms', sustain: '5m' } } as const;
    const policy = policyFor('hold', { objective });
    const kind = ({ atMs, tick }: Moment) => {
      const clockMs = tick < 3 ? 0 : 3_600_000;
      return { clockMs, telemetry: room(atMs + clockMs, { ms: 900 }) };
    };
    expect(play(policy, kind, 20).slice(1).some(cut)).toBe(false);
  });

  test('failures of before a step back do not stay in the window of the breaker', () => {
    const policy = policyFor('hold', {
      signals: {
        p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
        dbWait: { source: 'postgres', stat: 'waiting', url: 'postgres://db' },
        failures: { source: 'telemetry', stat: 'errors' },
      },
      breaker: { on: 'failures', above: 500, per: '1m' },
    });
    const kind = ({ atMs, tick }: Moment) => {
      const clockMs = tick < 5 ? 0 : -600_000;
      return { clockMs, telemetry: room(atMs + clockMs, { failed: tick < 5 ? 60 : 4 }) };
    };
    const ticks = play(policy, kind, 100);
    expect(ticks.some(tripped)).toBe(false);
  });
});

describe('a suspicious jump', () => {
  test.each(['hold', 'glide', 'ignore'] as const)(
    '%s: one absurd count of the services moves and trips nothing',
    (on) => {
      const kind = ({ atMs, tick }: Moment) =>
        tick === 0 ? { telemetry: room(atMs, { ok: 40, failed: 4000, ms: 900 }) } : {};
      const [, jump] = play(policyFor(on), kind, 1);
      expect(jump!.estimates.traffic.fresh).toBe(false);
      expect(raised(jump!) || cut(jump!) || tripped(jump!)).toBe(false);
    },
  );

  test.each(['hold', 'glide', 'ignore'] as const)(
    '%s: C61: one absurd number of a source cuts nothing; said again it does',
    (on) => {
      const policy = policyFor(on, {
        signals: {
          p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
          errors: { source: 'telemetry', stat: 'errorRatio' },
          dbWait: { source: 'postgres', stat: 'longestTransactionMs', url: 'postgres://db' },
        },
        objective: { p95: { below: '250ms' }, dbWait: { below: '5s', onMissing: on } },
      });
      const once = ({ atMs, tick }: Moment) => (tick === 0 ? { dbWait: value(9e6, atMs) } : {});
      const ticks = play(policy, once, 4);
      expect(ticks.some(cut)).toBe(false);
      const stays = ({ atMs }: Moment) => ({ dbWait: value(9e6, atMs) });
      expect(play(policy, stays, 4).some(cut)).toBe(true);
    },
  );
});
