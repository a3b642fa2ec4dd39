/** Ticks of one kind of reading after sound ones, through estimate, law and guards. Stage: test. */
import type { Reading, Readings, TelemetryReading } from '../../src/sense/readings.js';
import {
  createDecideState,
  createEstimateState,
  type Decision,
  type Estimates,
  estimate,
  type Policy,
  type PolicyInput,
  turn,
} from '../../src/testing.js';
import { policyOf, readingsOf, sampleOf, telemetryOf } from './fixtures.js';

export type OnMissing = Policy['onMissing'];
export const START_MS = 1_000_000_000;
const SOUND = 12;

/** Two signals that congestion moves: one of the services, one of a source. Guards that would slow a raise are off. */
export function policyFor(onMissing: OnMissing, more: Partial<PolicyInput> = {}): Policy {
  return policyOf({
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      errors: { source: 'telemetry', stat: 'errorRatio' },
      dbWait: { source: 'postgres', stat: 'waiting', url: 'postgres://db' },
    },
    objective: { p95: { below: '250ms' }, dbWait: { below: 5, onMissing } },
    whenLost: { after: '5s', over: '10s', rate: 50, inFlight: 12 },
    breaker: { on: 'errors', above: '50%' },
    guards: { deadBand: 0, cooldown: 0 },
    ...more,
  });
}

/** As above, with the telemetry's own objective under the rule. */
export const telemetryPolicy = (onMissing: OnMissing) =>
  policyFor(onMissing, { objective: { p95: { below: '250ms' }, dbWait: { below: 5 } }, onMissing });

export interface Moment {
  tick: number;
  atMs: number;
}
/** What a tick brings; each part stands for a sound one when left out. */
export interface Given {
  telemetry?: Readings['telemetry'];
  dbWait?: Reading;
  /** The clock of Redis against the monotonic one. */
  clockMs?: number;
}
export type Kind = (moment: Moment) => Given;

export const room = (atMs: number, more: Partial<TelemetryReading> & { ms?: number } = {}) =>
  telemetryOf(atMs, {
    ok: 100,
    ms: 60,
    inFlight: 23,
    denied: { rate: 20, in_flight: 20 },
    ...more,
  });
export const value = (number: number, atMs: number): Reading => ({
  ...{ kind: 'value', value: number, atMs, count: 1 },
});

export interface Tick {
  estimates: Estimates;
  decision: Decision;
  before: { rate: number; inFlightMax: number };
}

/** `SOUND` ticks of a service that has room under limits that bind, then `bad` ones of that kind. */
export function play(policy: Policy, kind: Kind, bad: number): Tick[] {
  let seen = createEstimateState();
  let state = createDecideState(policy);
  // Far from every bound, so that whatever would move it shows.
  let target = { rate: 100, capacity: 50, inFlightMax: 24 };
  const ticks: Tick[] = [];
  for (let tick = 0; tick < SOUND + bad; tick++) {
    const plainMs = START_MS + tick * 1000;
    const kindOf = tick < SOUND ? {} : kind({ tick: tick - SOUND, atMs: plainMs });
    const atMs = plainMs + (kindOf.clockMs ?? 0);
    const given = { telemetry: room(atMs), dbWait: value(1, atMs) };
    const all = { ...given, ...kindOf };
    const readings = readingsOf(atMs, all.telemetry, { dbWait: all.dbWait });
    const next = estimate(policy, seen, readings, 1000);
    seen = next.state;
    const sample = { ...sampleOf({ inForce: { target } }), ...next.estimates, nowMs: atMs };
    const turned = turn(policy, state, sample);
    state = turned.state;
    const { decision } = turned;
    ticks.push({ estimates: next.estimates, decision, before: target });
    // Raises of the sound ticks are not taken over: each tick starts from the same.
    if (tick >= SOUND && decision.change) {
      target = { ...target, rate: decision.rate, inFlightMax: decision.inFlightMax };
    }
  }
  return ticks.slice(SOUND - 1);
}

export const raised = ({ decision, before }: Tick) =>
  decision.change && (decision.rate > before.rate || decision.inFlightMax > before.inFlightMax);
export const cut = ({ decision, before }: Tick) =>
  decision.change && (decision.rate < before.rate || decision.inFlightMax < before.inFlightMax);
export const tripped = ({ decision }: Tick) => decision.state === 'open';
