/** Estimates: what a reading is worth, and what a missing, thin, repeated or broken one is not. */
import { describe, expect, test } from 'vitest';
import type { Readings } from '../../src/sense/readings.js';
import { createEstimateState, estimate, type Policy } from '../../src/testing.js';
import { binsOf, policyOf, readingsOf, telemetryOf } from '../sim/fixtures.js';

function run(policy: Policy, ticks: readonly Readings[]) {
  let state = createEstimateState();
  const all = ticks.map((readings) => {
    const next = estimate(policy, state, readings, 1000);
    state = next.state;
    return next.estimates;
  });
  return { all, last: all[all.length - 1]!, state };
}

const at = (second: number) => 1_000_000 + second * 1000;
const missing = { kind: 'missing', reason: 'no_data' } as const;

describe('quantiles', () => {
  test('a quantile is within 1 % of the true one, pooled over frames', () => {
    const values = Array.from({ length: 200 }, (_, i) => 10 + i);
    const frame = (s: number, of: number[]) =>
      readingsOf(at(s), telemetryOf(at(s), { ok: of.length, latency: binsOf(of) }));
    const { last } = run(policyOf(), [
      frame(
        0,
        values.slice(0, 100).filter((_, i) => i % 2 === 0),
      ),
      frame(1, values),
    ]);
    const p95 = last.signals.p95!.value!;
    expect(Math.abs(p95 / 199.5 - 1)).toBeLessThan(0.03);
  });

  test('one slow reading of few answers does not lift the pool; one fast reading shows at once', () => {
    const fast = (s: number) => readingsOf(at(s), telemetryOf(at(s), { ok: 190, ms: 100 }));
    const slow = (s: number) => readingsOf(at(s), telemetryOf(at(s), { ok: 10, ms: 900 }));
    const lifted = run(policyOf(), [fast(0), fast(1), slow(2)]).last.signals.p95!;
    expect(lifted.value).toBeLessThan(110);
    const allSlow = (s: number) => readingsOf(at(s), telemetryOf(at(s), { ok: 300, ms: 900 }));
    expect(run(policyOf(), [allSlow(0), allSlow(1)]).last.signals.p95!.value).toBeGreaterThan(850);
    expect(run(policyOf(), [allSlow(0), fast(1)]).last.signals.p95!.value).toBeLessThan(110);
  });

  test('a ready number of another source is pooled by its count', () => {
    const ready = (s: number, value: number, count: number) =>
      readingsOf(at(s), telemetryOf(at(s)), {
        p95: { kind: 'value', value, atMs: at(s), count },
      });
    const { last } = run(policyOf(), [ready(0, 100, 300), ready(1, 400, 100)]);
    const value = last.signals.p95!.value!;
    expect(value).toBeGreaterThan(110);
    expect(value).toBeLessThan(250);
  });
});

describe('what proves nothing', () => {
  test.each([
    ['not a number', { latencySumMs: 1, ok: Number.NaN }],
    ['infinite', { ok: Number.POSITIVE_INFINITY }],
    ['backwards', { ok: -5 }],
    ['no time', { fromMs: at(1), toMs: at(1) }],
  ])('telemetry that is %s leaves what was known, older', (_name, broken) => {
    const { last, all } = run(policyOf(), [
      readingsOf(at(0), telemetryOf(at(0))),
      readingsOf(at(1), telemetryOf(at(1), broken)),
    ]);
    expect(last.traffic.fresh).toBe(false);
    expect(last.traffic.okRate).toBe(all[0]!.traffic.okRate);
    expect(last.traffic.ageMs).toBe(1000);
    expect(last.signals.p95!.fresh).toBe(false);
    expect(last.outcomes.fresh).toBe(false);
    expect(JSON.stringify(last)).not.toMatch(/null,null|NaN/);
  });

  test('a repeated reading is not fresh, and not missing either until it is stale', () => {
    const one = telemetryOf(at(0));
    const ticks = [0, 1, 2, 3, 4].map((s) => readingsOf(at(s), one));
    const { all } = run(policyOf(), ticks);
    expect(all[0]!.signals.p95).toMatchObject({ fresh: true });
    expect(all[1]!.signals.p95).toMatchObject({ fresh: false, ageMs: 1000 });
    expect(all[1]!.signals.p95!.reason).toBeUndefined();
    expect(all[4]!.signals.p95).toMatchObject({ fresh: false, reason: 'stale' });
  });

  test.each(['no_data', 'timeout', 'unreachable', 'error'] as const)(
    'C58: a source that answers %s is missing with that reason, never 0',
    (reason) => {
      const gone = { kind: 'missing', reason } as const;
      const { last } = run(policyOf(), [
        readingsOf(at(0), telemetryOf(at(0))),
        ...[1, 2, 3, 4, 5].map((s) => readingsOf(at(s), gone)),
      ]);
      expect(last.signals.p95).toMatchObject({ fresh: false, reason });
      expect(last.signals.p95!.value).toBeGreaterThan(90);
      const never = run(policyOf(), [readingsOf(at(0), gone)]).last;
      expect(never.signals.p95).toMatchObject({ value: null, fresh: false, reason });
    },
  );

  test('C60: 0 of 0 errors is unknown, so is 1 of 1; a missing series with a total is 0', () => {
    const none = run(policyOf(), [readingsOf(at(0), telemetryOf(at(0), { ok: 0 }))]).last;
    expect(none.signals.errors).toMatchObject({ value: null, fresh: false, reason: 'no_traffic' });
    expect(none.traffic.errorRatio).toBeNull();
    const one = run(policyOf(), [readingsOf(at(0), telemetryOf(at(0), { ok: 0, failed: 1 }))]).last;
    expect(one.signals.errors).toMatchObject({ value: null, fresh: false, reason: 'thin' });
    const all = run(policyOf(), [readingsOf(at(0), telemetryOf(at(0), { ok: 100 }))]).last;
    expect(all.signals.errors).toMatchObject({ value: 0, fresh: true });
  });

  test('C61: a counter that jumps back and forth gives one reading each way at most, and a restart none', () => {
    const ticks = [100, 40, 110, 45].map((total, i, totals) => {
      const ok = total - (totals[i - 1] ?? 0);
      return readingsOf(at(i), telemetryOf(at(i), { ok }));
    });
    const { all } = run(policyOf(), ticks);
    expect(all.map((estimates) => estimates.traffic.fresh)).toEqual([true, false, true, false]);
    for (const { traffic } of all) expect(traffic.okRate).toBeGreaterThanOrEqual(0);
  });

  test('cancelled calls are not errors, and rejections not latency', () => {
    const { last } = run(policyOf(), [
      readingsOf(at(0), telemetryOf(at(0), { ok: 50, cancelled: 50, denied: { rate: 900 } })),
    ]);
    expect(last.signals.errors!.value).toBe(0);
    expect(last.signals.p95!.count).toBe(50);
    expect(last.traffic.deniedByRate).toBe(900);
  });
});

describe('waits and outcomes', () => {
  const waiting = policyOf({
    signals: { waits: { source: 'postgres', stat: 'waiting', url: 'postgres://db' } },
    objective: { waits: { below: 5 } },
    breaker: undefined,
  });

  test('a queue that empties in between is not a standing one', () => {
    const ready = (s: number, value: number) =>
      readingsOf(at(s), missing, { waits: { kind: 'value', value, atMs: at(s), count: 1 } });
    expect(run(waiting, [ready(0, 9), ready(1, 0), ready(2, 12)]).last.signals.waits!.value).toBe(
      0,
    );
    expect(run(waiting, [ready(0, 0), ready(3, 9), ready(4, 12)]).last.signals.waits!.value).toBe(
      9,
    );
  });

  test('outcomes of an older generation are not counted, a new one starts from nothing', () => {
    const of = (s: number, id: number, failed: number) =>
      readingsOf(at(s), telemetryOf(at(s), { generation: { id, ok: 0, failed, codes: {} } }));
    const policy = policyOf({ breaker: { on: 'errors', above: '50%', per: '10s' } });
    const { all } = run(policy, [of(0, 1, 7), of(1, 2, 3), of(2, 1, 50), of(3, 2, 4)]);
    expect(all.map(({ outcomes }) => [outcomes.generation, outcomes.failed])).toEqual([
      [1, 7],
      [2, 3],
      [2, 3],
      [2, 7],
    ]);
  });

  test('the window slides: what left it no longer counts', () => {
    const of = (s: number, failed: number) =>
      readingsOf(at(s), telemetryOf(at(s), { ok: 10, failed }));
    const policy = policyOf({ breaker: { on: 'errors', above: '50%', per: '2s' } });
    const { all } = run(policy, [of(0, 8), of(1, 1), of(2, 1), of(3, 0)]);
    expect(all.map(({ outcomes }) => outcomes.failed)).toEqual([8, 9, 2, 1]);
  });
});
