/** What trips a breaker, each by its own kind of signal, through estimate and turn; what a share proves; what half-open asks. */
import { describe, expect, test } from 'vitest';
import type { TelemetryReading } from '../../src/sense/readings.js';
import {
  createDecideState,
  createEstimateState,
  type Decision,
  estimate,
  type Policy,
  type PolicyInput,
  type Sample,
  turn,
} from '../../src/testing.js';
import { binsOf, policyOf, readingsOf, sampleOf, telemetryOf } from '../sim/fixtures.js';

const START_MS = 1_700_000_000_000;

function breaking(signals: PolicyInput['signals'], breaker: object, more: object = {}): Policy {
  return policyOf({
    signals: { ...signals },
    objective: {},
    control: { law: 'fixed' },
    breaker: { openFor: '5s', ...(breaker as NonNullable<PolicyInput['breaker']>) },
    ...more,
  });
}

interface Second extends Partial<TelemetryReading> {
  /** Ready values of other sources, by signal; null: missing. */
  ready?: Record<string, number | null>;
  /** Nothing was reported. */
  silent?: boolean;
}

/** Plays seconds from closed until the breaker does something; the decision, and the second in which it was. */
function play(policy: Policy, seconds: readonly Second[]) {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const samples: Sample[] = [];
  let last: Decision | undefined;
  for (const [second, { ready = {}, silent = false, ...parts }] of seconds.entries()) {
    const toMs = START_MS + second * 1000;
    const { ok = 100, failed = 0 } = parts;
    const telemetry = silent
      ? ({ kind: 'missing', reason: 'no_data' } as const)
      : telemetryOf(toMs, { generation: { id: 0, ok, failed, codes: {} }, ...parts });
    const signals = Object.fromEntries(
      Object.entries(ready).map(([name, value]) => [
        name,
        value === null
          ? ({ kind: 'missing', reason: 'timeout' } as const)
          : ({ kind: 'value', value, atMs: toMs, count: 1 } as const),
      ]),
    );
    const next = estimate(policy, estimates, readingsOf(toMs, telemetry, signals), 1000);
    estimates = next.state;
    const sample = { ...sampleOf({ nowMs: toMs }), ...next.estimates };
    samples.push(sample);
    const turned = turn(policy, state, sample);
    state = turned.state;
    last = turned.decision;
    if (last.state !== 'closed') return { decision: last, second, samples };
  }
  return { decision: last!, second: null, samples };
}

const many = (n: number, second: Second): Second[] => Array.from({ length: n }, () => second);
const slowly = (answers: number, slow: number) =>
  binsOf([...Array(answers - slow).fill(50), ...Array(slow).fill(3000)]);

describe('timeouts', () => {
  const policy = breaking(
    { late: { source: 'telemetry', stat: 'timeoutRatio' } },
    {
      ...{ on: 'late', above: '30%' },
    },
  );

  test('trip above their share; other failures do not', () => {
    expect(play(policy, many(20, { ok: 20, failed: 80, timedOut: 10 })).second).toBeNull();
    const { decision, second } = play(policy, many(20, { ok: 40, failed: 60, timedOut: 55 }));
    expect([decision.state, second]).toEqual(['open', 0]);
    expect(decision.why).toMatch(/^55 timeouts of 100 answers in 2 s; open for 5 s$/);
  });

  test('those of calls from before the last trip are not of this generation', () => {
    const old = {
      ok: 100,
      failed: 0,
      timedOut: 90,
      generation: { id: 0, ok: 100, failed: 0, codes: {} },
    };
    expect(play(policy, many(20, old)).second).toBeNull();
  });
});

describe('slow answers', () => {
  const policy = breaking(
    { slow: { source: 'telemetry', stat: 'slowRatio', over: 1000 } },
    {
      ...{ on: 'slow', above: '40%' },
    },
  );

  test('trip above their share, though every one of them ends well', () => {
    expect(play(policy, many(20, { latency: slowly(100, 35) })).second).toBeNull();
    const { decision, second, samples } = play(policy, many(20, { latency: slowly(100, 70) }));
    expect([decision.state, second]).toEqual(['open', 0]);
    expect(decision.why).toMatch(/^70 slower than 1000 ms of 100 answers in 2 s/);
    expect(samples.at(-1)!.signals.slow).toMatchObject({ value: 0.7, fresh: true });
  });

  test('a probe that ends well but slowly is none that passes', () => {
    const estimated = estimate(
      policy,
      createEstimateState(),
      readingsOf(START_MS, telemetryOf(START_MS, { ok: 3, latency: slowly(3, 3) })),
      1000,
    );
    expect(estimated.estimates.outcomes.tick).toEqual({ ok: 0, matching: 3 });
  });
});

describe('failures in a row', () => {
  const policy = breaking(
    { row: { source: 'telemetry', stat: 'failuresInARow' } },
    {
      ...{ on: 'row', above: 8 },
    },
  );

  test('trip at a trickle that no window would see; one good answer begins anew', () => {
    const rare = [...many(9, { ok: 0, failed: 0 }), { ok: 0, failed: 1 }];
    const { decision, second } = play(policy, Array.from({ length: 12 }, () => rare).flat());
    expect([decision.state, second]).toEqual(['open', 89]);
    expect(decision.why).toMatch(/^9 failures in a row, above 8/);
    const mixed = Array.from({ length: 40 }, () => [...many(7, { ok: 0, failed: 1 }), { ok: 1 }]);
    expect(play(policy, mixed.flat()).second).toBeNull();
  });
});

test('C60: a share of one upstream counts its answers alone, and none is no evidence', () => {
  const policy = breaking(
    { bank: { source: 'telemetry', stat: 'errorRatio', upstream: 'bank' } },
    { on: 'bank', above: '50%' },
  );
  const of = (ok: number, failed: number) => ({ bank: { ok, failed, codes: {} } });
  expect(play(policy, many(20, { ok: 50, failed: 50, upstreams: {} })).second).toBeNull();
  expect(play(policy, many(20, { ok: 60, failed: 40, upstreams: of(100, 20) })).second).toBeNull();
  const { second, decision } = play(policy, many(20, { ok: 80, failed: 20, upstreams: of(2, 20) }));
  expect([second, decision.why]).toEqual([0, '20 failures of 22 answers in 2 s; open for 5 s']);
});

test('a share of one code counts failures with that code among all answers', () => {
  const policy = breaking(
    { system: { source: 'telemetry', stat: 'errorRatio', code: 'SYSTEMERROR' } },
    { on: 'system', above: '20%' },
  );
  const of = (failed: number, system: number): Second => {
    const codes = { SYSTEMERROR: system };
    const ok = 100 - failed;
    return { ok, failed, codes, generation: { id: 0, ok, failed, codes } };
  };
  expect(play(policy, many(60, of(60, 15))).second).toBeNull();
  const { second, decision } = play(policy, many(60, of(60, 40)));
  expect([second, decision.why]).toEqual([
    0,
    '40 failures (SYSTEMERROR) of 100 answers in 2 s; open for 5 s',
  ]);
});

describe('database waits', () => {
  const policy = breaking(
    { waits: { source: 'postgres', stat: 'waiting', url: 'postgres://db/shop' } },
    { on: 'waits', above: 20, per: '5s' },
  );
  const at = (waits: number | null): Second => ({ ready: { waits } });

  test('trip when they stay above for so long, by fresh readings alone', () => {
    const { decision, second } = play(policy, [...many(3, at(1)), ...many(20, at(40))]);
    // The lowest of the last 3 s is what counts: a queue that empties in between is none.
    expect([decision.state, second]).toEqual(['open', 10]);
    expect(decision.why).toMatch(/^waits 40, above 20 for 5 s; open for 5 s$/);
  });

  test('I4: a missing reading never trips, and begins them anew once the signal is lost', () => {
    const lost = [...many(5, at(40)), ...many(60, at(null))];
    expect(play(policy, lost).second).toBeNull();
    const again = play(policy, [...lost, ...many(20, at(40))]);
    expect(again.second).toBeGreaterThanOrEqual(lost.length + 5);
    const saw = Array.from({ length: 30 }, () => [...many(5, at(40)), at(1)]).flat();
    expect(play(policy, saw).second).toBeNull();
  });

  test('good probes do not close it while they last', () => {
    const half = (waits: number, ok: number) =>
      sampleOf({
        signals: { waits: { value: waits, fresh: true, ageMs: 0, count: 1 } },
        inForce: { state: 'half-open', rate: 1, generation: 1 },
        outcomes: { generation: 1, ok, failed: 0, matching: 0, tick: { ok, matching: 0 } },
      });
    const still = turn(policy, createDecideState(policy), half(40, 3)).decision;
    expect(still).toMatchObject({ state: 'open', reason: 'breaker_probe_failed' });
    expect(still.why).toMatch(/^3 probes passed, but waits is still 40, above 20/);
    expect(turn(policy, createDecideState(policy), half(3, 3)).decision.state).toBe('recovering');
  });
});

describe('several levels', () => {
  const policy = breaking(
    {
      errors: { source: 'telemetry', stat: 'errorRatio' },
      system: { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' },
      row: { source: 'telemetry', stat: 'failuresInARow' },
    },
    {
      ...{ on: 'errors', above: '50%' },
      or: [
        { on: 'system', above: 100, per: '1m' },
        { on: 'row', above: 30 },
      ],
    },
  );
  const system = (ok: number, n: number): Second => ({
    ...{ ok, failed: n, codes: { SYSTEMERROR: n } },
    generation: { id: 0, ok, failed: n, codes: { SYSTEMERROR: n } },
  });

  test('any of them trips, and the sentence names it', () => {
    expect(play(policy, many(60, system(500, 1))).second).toBeNull();
    const counted = play(policy, many(120, system(500, 2)));
    expect([counted.decision.state, counted.second]).toEqual(['open', 50]);
    expect(counted.decision.why).toMatch(/^102 failures \(SYSTEMERROR\) of 25602 answers in 60 s/);
    expect(play(policy, many(9, { ok: 0, failed: 4 })).decision.why).toMatch(
      /^12 failures of 12 answers/,
    );
    expect(counted.samples.at(-1)!.outcomes.trips).toHaveLength(3);
  });

  test('frames that another policy counted are not mixed with its own', () => {
    const other = breaking({ errors: policy.signals.errors! }, { on: 'errors', above: '50%' });
    const seen = estimate(
      other,
      createEstimateState(),
      readingsOf(START_MS, telemetryOf(START_MS, { ok: 1, failed: 99 })),
      1000,
    );
    const next = estimate(
      policy,
      seen.state,
      readingsOf(START_MS + 1000, telemetryOf(START_MS + 1000, { ok: 10 })),
      1000,
    );
    expect(next.estimates.outcomes.trips!.map(({ answers }) => answers)).toEqual([10, 10, 0]);
  });
});

describe('what a share proves', () => {
  const policy = breaking(
    { errors: { source: 'telemetry', stat: 'errorRatio' } },
    {
      ...{ on: 'errors', above: '85%' },
    },
  );

  test('few answers are looked for further back, a minute at most, and only while it is bad now', () => {
    // 85 % is proven by 52 failures without a good answer: at 5 a second in 11 s.
    const { second, decision } = play(policy, many(30, { ok: 0, failed: 5 }));
    expect(second).toBe(10);
    expect(decision.why).toMatch(/^55 failures of 55 answers in 11 s/);
    // At 1 in 2 s no minute has as many.
    const rare = Array.from({ length: 90 }, () => [{ ok: 0, failed: 1 }, { ok: 0 }]).flat();
    expect(play(policy, rare).second).toBeNull();
    const over = [...many(10, { ok: 0, failed: 5 }), ...many(60, { ok: 5, failed: 1 })];
    expect(play(policy, over).second).toBeNull();
  });

  test('C78: the window slides: a bad bucket does not restart at its edge', () => {
    const half = breaking(
      { errors: policy.signals.errors! },
      { on: 'errors', above: '50%', per: '4s' },
    );
    const bad = { ok: 4, failed: 6 };
    const good = { ok: 10, failed: 0 };
    // 60 % for two seconds in ten: below the level in any four.
    const turns = Array.from({ length: 60 }, () => [bad, bad, ...many(8, good)]).flat();
    expect(play(half, turns).second).toBeNull();
  });
});
