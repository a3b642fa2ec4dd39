/** Policies, telemetry and samples with the few fields that a test is about. Stage: test. */

import {
  type Bins,
  GAMMA,
  type Readings,
  type TelemetryReading,
} from '../../src/sense/readings.js';
import { type Policy, type PolicyInput, policySchema, type Sample } from '../../src/testing.js';

export function policyOf(overrides: Partial<PolicyInput> = {}): Policy {
  return policySchema.parse({
    limiter: { name: 'checkout', rate: 100, capacity: 50, inFlightMax: 24 },
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      errors: { source: 'telemetry', stat: 'errorRatio' },
    },
    objective: { p95: { below: '250ms' } },
    control: { law: 'adaptive' },
    bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
    breaker: { on: 'errors', above: '50%', openFor: '5s' },
    mode: 'auto',
    ...overrides,
  });
}

export function binsOf(values: readonly number[]): Bins {
  const bins: Bins = {};
  for (const ms of values) {
    const bin = Math.ceil(Math.log(ms) / Math.log(GAMMA));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  return bins;
}

/** One second of telemetry that ends at `toMs`: `ok` answers of `ms` each. */
export function telemetryOf(
  toMs: number,
  overrides: Partial<TelemetryReading> & { ms?: number } = {},
): TelemetryReading {
  const { ms = 100, ...rest } = overrides;
  const ok = rest.ok ?? 100;
  const failed = rest.failed ?? 0;
  const answers = Math.max(0, Number.isFinite(ok + failed) ? ok + failed : 0);
  return {
    kind: 'telemetry',
    fromMs: toMs - 1000,
    toMs,
    processes: 1,
    reporting: 1,
    offered: answers,
    admitted: answers,
    denied: {},
    ok,
    failed,
    timedOut: 0,
    cancelled: 0,
    latency: binsOf(Array.from({ length: answers }, () => ms)),
    latencySumMs: answers * ms,
    codes: {},
    upstreams: {},
    dbWait: {},
    dbWaitSumMs: 0,
    poolWaiting: null,
    inFlight: 0,
    oldestMs: 0,
    generation: { id: 0, ok, failed, codes: {} },
    ...rest,
  };
}

export function readingsOf(
  atMs: number,
  telemetry: Readings['telemetry'],
  signals: Readings['signals'] = {},
): Readings {
  return { atMs, telemetry, signals };
}

export interface SampleParts {
  nowMs?: number;
  dtMs?: number;
  signals?: Sample['signals'];
  traffic?: Partial<Sample['traffic']>;
  outcomes?: Partial<Sample['outcomes']>;
  inForce?: Partial<Sample['inForce']>;
}

/** A healthy second under a cap that binds: p95 at half the setpoint, 100 answers/s. */
export function sampleOf(parts: SampleParts = {}): Sample {
  const target = { rate: 100, capacity: 50, inFlightMax: 24, ...parts.inForce?.target };
  return {
    nowMs: parts.nowMs ?? 1_000_000,
    dtMs: parts.dtMs ?? 1000,
    signals: parts.signals ?? { p95: { value: 125, fresh: true, ageMs: 300, count: 400 } },
    traffic: {
      fresh: true,
      ageMs: 300,
      intervalMs: 1000,
      processes: 1,
      reporting: 1,
      offeredRate: 100,
      admittedRate: 100,
      answerRate: 100,
      okRate: 100,
      answers: 100,
      deniedByRate: 0,
      deniedByCap: 0,
      errorRatio: 0,
      meanMs: 100,
      inFlight: 10,
      inFlightNow: 10,
      oldestMs: 0,
      ...parts.traffic,
    },
    outcomes: {
      generation: 0,
      ok: 200,
      failed: 0,
      matching: 0,
      windowMs: 2000,
      fresh: true,
      tick: { ok: 100, matching: 0 },
      ...parts.outcomes,
    },
    inForce: {
      epoch: 1,
      revision: 1,
      generation: 0,
      mode: 'auto',
      state: 'closed',
      gliding: false,
      rate: target.rate,
      capacity: target.capacity,
      inFlightMax: target.inFlightMax,
      sinceChangeMs: 60_000,
      inStateMs: 60_000,
      held: 'none',
      holdBreaker: false,
      ...parts.inForce,
      target,
    },
  };
}
