/** The recorded past of a service, decided again by a policy: what it says, what it leaves out, what it cannot know. */
import { describe, expect, test } from 'vitest';
import { quantileOfBins } from '../../src/histogram.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import type { HistoryRow } from '../../src/redis/history-rows.js';
import { replay, replayable, summarize } from '../../src/sim/replay.js';
import {
  createSeconds,
  type Recorded,
  recordedOf,
  recordedValue,
} from '../../src/sim/replay-recorded.js';

const MINUTE_MS = 60_000;
const START_MS = 29_000_000 * MINUTE_MS;

const row: HistoryRow = {
  minute: 29_000_000,
  ...{ watchedS: 60, notClosedS: 0, overloadS: 0, driftS: 0, state: 'closed' },
  ...{ rate: 100, capacity: 50, inFlightMax: 24, offered: 3000, admitted: 2400 },
  denied: { rate: 300, in_flight: 300, subject: 6 },
  ...{ ok: 2340, failed: 60, cancelled: 0, meanMs: 120, p50Ms: 100, p95Ms: 240, p99Ms: 400 },
  ...{ p999Ms: 900, inFlight: 4.8, dbWaitMs: 3, dbWaitP95Ms: 9, poolWaiting: 1.5 },
  ...{ processes: 2, reporting: 2, points: [] },
};
const calm = recordedOf(row);
const minutes = (list: Partial<Recorded>[]): Recorded[] =>
  list.map((some, i) => ({ ...calm, atMs: START_MS + i * MINUTE_MS, ...some }));

const base = {
  limiter: { name: 'checkout', rate: 100, capacity: 50, inFlightMax: 24 },
  signals: {
    p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
    errors: { source: 'telemetry', stat: 'errorRatio' },
    declined: { source: 'telemetry', stat: 'errors', code: 'DECLINED' },
    locks: { source: 'postgres', stat: 'waiting', url: 'postgres://127.0.0.1/x' },
  },
  objective: { p95: { below: '350ms' }, locks: { below: 5 } },
  control: { law: 'adaptive' },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  breaker: { on: 'errors', above: '60%', per: '2s', openFor: '5s', probeRate: 2 },
};
const policy = resolvePolicy(base);
const slow: Partial<Recorded> = {
  ...{ offeredPerSecond: 200, okPerSecond: 60, failedPerSecond: 0, meanMs: 900, inFlight: 54 },
  ...{ p50Ms: 850, p95Ms: 1400, p99Ms: 1900, p999Ms: 2500 },
  ...{ deniedByRatePerSecond: 0, deniedByCapPerSecond: 0 },
};
const broken: Partial<Recorded> = { okPerSecond: 4, failedPerSecond: 36 };

describe('a minute of the record', () => {
  test('what is known comes out of the seconds again', () => {
    const { telemetry, signals } = createSeconds(policy, calm)(START_MS + 1000, 3);
    if (telemetry.kind === 'missing') throw new Error('no telemetry');
    expect(telemetry).toMatchObject({ offered: 50, ok: 39, failed: 1, poolWaiting: 1.5 });
    expect(telemetry).toMatchObject({ denied: { rate: 5, in_flight: 5 }, generation: { id: 3 } });
    for (const [of, ms] of Object.entries({ 0.5: 100, 0.95: 240, 0.99: 400, 0.999: 900 })) {
      const signal = { source: 'telemetry', stat: 'latency', of: Number(of) } as const;
      expect(recordedValue('x', signal, calm)).toBe(ms);
    }
    const p90 = { source: 'telemetry', stat: 'latency', of: 0.9 } as const;
    expect(recordedValue('x', p90, calm)).toBeGreaterThan(150);
    expect(recordedValue('x', p90, calm)).toBeLessThan(240);
    expect(quantileOfBins(telemetry.latency, 0.5)).toBeGreaterThan(80);
    expect(signals.p95).toEqual({ kind: 'value', value: 240, atMs: START_MS + 1000, count: 40 });
    const count = Object.values(telemetry.latency).reduce((sum, n) => sum + n, 0);
    expect(count).toBeCloseTo(40, 6);
    expect(telemetry.latencySumMs / count).toBeCloseTo(120, 6);
  });

  test('each stat says what the record tells, and nothing else', () => {
    const value = (signal: object) => recordedValue('x', signal as never, calm);
    const telemetry = (stat: string, more = {}) => value({ source: 'telemetry', stat, ...more });
    expect(telemetry('latency', { of: 'mean' })).toBe(120);
    expect(telemetry('errorRatio')).toBeCloseTo(0.025, 9);
    expect(telemetry('errors')).toBe(60);
    expect(telemetry('errors', { code: 'DECLINED' })).toBeNull();
    expect(telemetry('dbWait', { of: 0.95 })).toBe(9);
    expect(telemetry('dbWait', { of: 0.5 })).toBeNull();
    expect(telemetry('goodput')).toBe(39);
    const quick = telemetry('goodput', { within: 240 })!;
    expect(quick).toBeGreaterThan(0.9 * 39);
    expect(quick).toBeLessThan(0.97 * 39);
    expect(telemetry('inFlight')).toBe(4.8);
    expect(value({ source: 'postgres', stat: 'waiting' })).toBeNull();
    const told = { ...calm, signals: { x: 7 } };
    expect(recordedValue('x', { source: 'postgres', stat: 'waiting' } as never, told)).toBe(7);
  });

  test('nothing known of response times is no response time', () => {
    const bare = { ...calm, meanMs: null, p50Ms: null, p95Ms: null, p99Ms: null, p999Ms: null };
    expect(recordedValue('p95', policy.signals.p95!, bare)).toBeNull();
    const { telemetry } = createSeconds(policy, bare)(START_MS, 0);
    expect(telemetry).toMatchObject({ latency: {}, latencySumMs: 0 });
  });
});

describe('what the record does not tell', () => {
  test('is left out by name, and the rest is a policy', () => {
    const found = replayable(policy, [calm]);
    expect(found.leftOut).toEqual(['declined', 'locks']);
    expect(found.breakerLeftOut).toBe(false);
    expect(Object.keys(found.policy.signals)).toEqual(['p95', 'errors']);
    expect(Object.keys(found.policy.objective)).toEqual(['p95']);
  });

  test('a breaker on a code has no outcomes to count', () => {
    const coded = resolvePolicy({ ...base, breaker: { on: 'declined', above: 20, openFor: '3s' } });
    const values = [{ ...calm, signals: { declined: 30, locks: 2 } }];
    const found = replayable(coded, values);
    expect(found.leftOut).toEqual([]);
    expect(found.breakerLeftOut).toBe(true);
    expect(found.policy.breaker).toBeUndefined();
  });
});

describe('a replay', () => {
  const run = (list: Partial<Recorded>[], of = policy) => {
    const recorded = minutes(list);
    return [...replay(replayable(of, recorded).policy, recorded)];
  };

  test('a calm past changes little; a slow one is cut for, and its limits would have been met', () => {
    const replayed = run([{}, {}, slow, slow, {}, {}]);
    expect(replayed[0]!.missed).toEqual([]);
    expect(replayed[2]!.missed).toEqual(['p95']);
    expect(replayed[2]!.changes.map(({ decision }) => decision.reason)).toContain('law_cut');
    expect(replayed[2]!.inFlightMax).toBeLessThan(24);
    expect(replayed[2]!.binds).not.toBe('nothing');
    const summary = summarize(replayed);
    expect(summary).toMatchObject({ minutes: 6, missed: 2, metWhileMissed: 2, missingMs: 0 });
    expect(summary.reasons.law_cut).toBeGreaterThan(0);
    expect(summary.decisions).toBe(replayed.reduce((sum, { changes }) => sum + changes.length, 0));
  });

  test('a minute of failures trips the breaker, and it closes when they end', () => {
    const replayed = run([{}, broken, {}, {}]);
    const reasons = replayed.map(({ changes }) => changes.map(({ decision }) => decision.reason));
    expect(reasons[1]).toContain('breaker_trip');
    expect(replayed.at(-1)!.state).toBe('closed');
  });

  test('limits stay within the bounds, and each change speaks of its own minute', () => {
    const replayed = run([slow, broken, {}, slow, slow, broken, slow, {}, {}, {}]);
    for (const { state, rate, inFlightMax, recorded, changes } of replayed) {
      if (state === 'closed') expect(rate).toBeGreaterThanOrEqual(20);
      expect(rate).toBeLessThanOrEqual(400);
      expect(inFlightMax).toBeLessThanOrEqual(64);
      for (const { atMs } of changes) {
        expect(atMs).toBeGreaterThan(recorded.atMs);
        expect(atMs).toBeLessThanOrEqual(recorded.atMs + recorded.spanMs);
      }
    }
  });

  test('a gap is told and skipped: no glide, no trip, no decision from silence', () => {
    const recorded = minutes([{}, {}]);
    const later = { ...calm, atMs: START_MS + 600 * MINUTE_MS };
    const told = [...replay(replayable(policy, recorded).policy, [...recorded, later])];
    expect(summarize(told).missingMs).toBe(598 * MINUTE_MS);
    const reasons = told[2]!.changes.map(({ decision }) => decision.reason);
    expect(reasons.filter((reason) => reason.startsWith('glide'))).toEqual([]);
    expect(told[2]!.state).toBe('closed');
  });

  test('I13: the same past gives the same decisions', () => {
    const past = [slow, broken, {}, slow];
    expect(run(past)).toEqual(run(past));
  });
});
