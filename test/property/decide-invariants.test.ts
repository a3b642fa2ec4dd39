/** Random readings through the whole pipeline: bounds always hold, and only fresh evidence raises or trips. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LimiterState } from '../../src/redis/params.js';
import type { Readings, TelemetryReading } from '../../src/sense/readings.js';
import {
  boundsOf,
  createDecideState,
  createEstimateState,
  enforcedNumbers,
  estimate,
  type Policy,
  type Sample,
  turn,
} from '../../src/testing.js';
import { policyOf, telemetryOf } from '../sim/fixtures.js';

const odd = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -1, -1e9, 1e300);
const count = fc.oneof({ weight: 12, arbitrary: fc.nat(2000) }, { weight: 1, arbitrary: odd });
const latency = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 5000 }) },
  { weight: 1, arbitrary: odd },
);

interface Tick {
  kind: 'telemetry' | 'repeat' | 'missing';
  ok: number;
  failed: number;
  ms: number;
  deniedByRate: number;
  deniedByCap: number;
  inFlight: number;
  ready: number;
  held: 'none' | 'frozen' | 'pinned';
  dtMs: number;
}

const tick: fc.Arbitrary<Tick> = fc.record({
  kind: fc.constantFrom('telemetry', 'telemetry', 'telemetry', 'repeat', 'missing'),
  ok: count,
  failed: count,
  ms: latency,
  deniedByRate: count,
  deniedByCap: count,
  inFlight: count,
  ready: latency,
  held: fc.constantFrom('none', 'none', 'none', 'none', 'frozen', 'pinned'),
  dtMs: fc.constantFrom(1000, 1000, 1000, 250, 15_000, 0),
});

const policies: Policy[] = [
  policyOf(),
  policyOf({ onMissing: 'glide', whenLost: { after: '3s', over: '5s', rate: 40, inFlight: 8 } }),
  policyOf({ onMissing: 'ignore' }),
  policyOf({ control: { law: 'step', slowFor: '3s', healthyFor: '10s' }, objective: {} }),
  policyOf({ control: { law: 'fixed' } }),
  policyOf({ control: { law: 'aimd' } }),
  policyOf({ control: { law: 'pi', kp: 2, ki: 3 } }),
  policyOf({
    limiter: { name: 'plain', rate: 100, capacity: 50, completions: 'none' },
    bounds: { rate: { min: 20, max: 400 } },
  }),
];

function telemetryFor(one: Tick, nowMs: number, generation: number): TelemetryReading {
  const of = telemetryOf(nowMs, { ok: 10, failed: 0, ms: 100 });
  const answers = one.ok + one.failed;
  return {
    ...of,
    ok: one.ok,
    failed: one.failed,
    latencySumMs: answers * one.ms,
    latency:
      Number.isFinite(one.ms) && one.ms > 0
        ? telemetryOf(0, { ok: 20, ms: one.ms }).latency
        : { 300: one.ms },
    denied: { rate: one.deniedByRate, in_flight: one.deniedByCap },
    inFlight: one.inFlight,
    generation: { id: generation, ok: one.ok, failed: one.failed, codes: {} },
  };
}

function play(
  policy: Policy,
  ticks: readonly Tick[],
  check: (sample: Sample, after: ReturnType<typeof turn>) => void,
) {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const stored = {
    state: 'closed' as LimiterState,
    rate: policy.limiter.rate,
    capacity: policy.limiter.capacity,
    inFlightMax: policy.limiter.inFlightMax ?? 0,
  };
  let generation = 0;
  let openUntilMs = 0;
  let nowMs = 1_000_000;
  let last: TelemetryReading | null = null;
  for (const one of ticks) {
    nowMs += one.dtMs;
    if (one.kind === 'telemetry') last = telemetryFor(one, nowMs, generation);
    const readings: Readings = {
      atMs: nowMs,
      telemetry:
        one.kind === 'missing' || last === null ? { kind: 'missing', reason: 'timeout' } : last,
      signals: {},
    };
    const next = estimate(policy, estimates, readings, one.dtMs);
    estimates = next.state;
    if (stored.state === 'open' && nowMs >= openUntilMs) stored.state = 'half-open';
    const target = {
      rate: stored.rate,
      capacity: stored.capacity,
      inFlightMax: stored.inFlightMax,
    };
    const sample: Sample = {
      nowMs,
      dtMs: one.dtMs,
      ...next.estimates,
      inForce: {
        epoch: 1,
        revision: 1,
        generation,
        mode: 'auto',
        gliding: false,
        ...enforcedNumbers(policy, stored),
        state: stored.state,
        sinceChangeMs: 0,
        inStateMs: 0,
        held: one.held,
        holdBreaker: false,
        target,
      },
    };
    const turned = turn(policy, state, sample);
    check(sample, turned);
    state = turned.state;
    const { decision } = turned;
    if (!decision.change) continue;
    if (decision.state === 'open') {
      generation++;
      openUntilMs = nowMs + decision.openForMs!;
    }
    stored.state = decision.state;
    stored.rate = decision.rate;
    stored.capacity = decision.capacity;
    stored.inFlightMax = decision.inFlightMax;
  }
}

const runs = { numRuns: 60 };

describe.each(
  policies.map((policy, i) => [`${i} ${policy.control.law} ${policy.onMissing}`, policy] as const),
)('policy %s', (_name, policy) => {
  test('I1, I4: within bounds, finite, and nothing stale raises or trips', () => {
    const bounds = boundsOf(policy);
    fc.assert(
      fc.property(fc.array(tick, { minLength: 5, maxLength: 60 }), (ticks) => {
        play(policy, ticks, (sample, { state, decision }) => {
          const { target } = sample.inForce;
          expect(JSON.stringify({ state, decision, sample })).not.toMatch(
            /null,"terms|NaN|Infinity/,
          );
          for (const value of [
            decision.rate,
            decision.capacity,
            decision.inFlightMax,
            ...Object.values(decision.terms),
          ]) {
            expect(Number.isFinite(value)).toBe(true);
          }
          if (decision.state === 'closed') {
            expect(decision.rate).toBeGreaterThanOrEqual(Math.min(bounds.rate.min, target.rate));
            expect(decision.rate).toBeLessThanOrEqual(bounds.rate.max);
            if (bounds.inFlight !== null) {
              expect(decision.inFlightMax).toBeLessThanOrEqual(bounds.inFlight.max);
              expect(Number.isInteger(decision.inFlightMax)).toBe(true);
            }
          }
          if (decision.state === 'open' || decision.state === 'half-open') {
            expect(enforcedNumbers(policy, decision).rate).toBeLessThanOrEqual(bounds.probeRate);
          }
          const fresh = sample.traffic.fresh;
          const raised = decision.rate > target.rate || decision.inFlightMax > target.inFlightMax;
          if (
            raised &&
            decision.change &&
            decision.state === 'closed' &&
            policy.control.law !== 'fixed'
          ) {
            expect(fresh).toBe(true);
          }
          const trips = decision.state === 'open' && sample.inForce.state !== 'open';
          if (trips) {
            expect(fresh).toBe(true);
            expect(sample.outcomes.fresh || decision.reason === 'breaker_probe_deadline').toBe(
              true,
            );
          }
          if (sample.inForce.held !== 'none' && decision.cause === 'law') {
            expect(decision.rate).toBe(target.rate);
            expect(decision.inFlightMax).toBe(target.inFlightMax);
          }
        });
      }),
      runs,
    );
  });
});

test('I13: a run is the same when played again, and through JSON', () => {
  fc.assert(
    fc.property(fc.array(tick, { minLength: 5, maxLength: 40 }), (ticks) => {
      const policy = policies[0]!;
      const decisions: string[] = [];
      play(policy, ticks, (_sample, { decision }) => void decisions.push(JSON.stringify(decision)));
      let i = 0;
      play(JSON.parse(JSON.stringify(policy)), ticks, (_sample, { decision }) => {
        expect(JSON.stringify(decision)).toBe(decisions[i++]);
      });
    }),
    { numRuns: 30 },
  );
});
