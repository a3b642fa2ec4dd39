/** The plain data that estimate, step and guard exchange; all JSON, so that a decision can be replayed. Stage: decide. */

import type { LimiterState, Mode } from '../redis/params.js';
import type { MissingReason } from '../sense/readings.js';

/** One signal after smoothing. `fresh` false: the value (if any) must neither raise nor trip. */
export interface SignalEstimate {
  value: number | null;
  fresh: boolean;
  ageMs: number;
  /** Observations behind the value. */
  count: number;
  reason?: MissingReason | 'thin';
}

/** What the telemetry says of the traffic of this tick. Rates per second; null = unknown. */
export interface TrafficEstimate {
  fresh: boolean;
  ageMs: number;
  intervalMs: number;
  processes: number;
  reporting: number;
  offeredRate: number;
  admittedRate: number;
  /** Answers (ok + failed) and good answers per second. */
  answerRate: number;
  okRate: number;
  answers: number;
  /** Denials per second by what denied. */
  deniedByRate: number;
  deniedByCap: number;
  errorRatio: number | null;
  meanMs: number | null;
  /** Time-averaged in flight: by Little's law (answer rate × mean latency). */
  inFlight: number | null;
  /** In flight as last reported, and the age of the oldest. */
  inFlightNow: number | null;
  oldestMs: number;
}

/** What is in force at the tick, effective (open-until and glide applied). */
export interface InForceView {
  epoch: number;
  revision: number;
  generation: number;
  mode: Mode;
  state: LimiterState;
  gliding: boolean;
  rate: number;
  capacity: number;
  inFlightMax: number;
  /** ms since the last change of params. */
  sinceChangeMs: number;
  /** ms in the present state. */
  inStateMs: number;
  held: 'none' | 'frozen' | 'pinned';
  holdBreaker: boolean;
}

/** All that `step` may know at a tick. Stored in audit entries; ≤ 4 KB with the state. */
export interface Sample {
  /** Wall ms of the tick. */
  nowMs: number;
  /** ms since the previous tick (monotonic). */
  dtMs: number;
  signals: Record<string, SignalEstimate>;
  traffic: TrafficEstimate;
  /** Breaker counts: outcomes of the present generation only. */
  outcomes: { ok: number; failed: number; matching: number; windowMs: number; fresh: boolean };
  inForce: InForceView;
}

/** What a law wants, before guards. */
export interface Proposal {
  state: LimiterState;
  rate: number;
  capacity: number;
  inFlightMax: number;
  /** Set when `state` becomes open. */
  openForMs?: number;
  /** What may pass a hold. */
  cause: 'law' | 'breaker' | 'settle';
  reason: string;
  /** One sentence with the numbers. */
  sentence: string;
  /** Every internal term of the law, for metrics and the audit entry. */
  terms: Record<string, number>;
}

export interface GuardVerdict {
  guard: string;
  effect: 'passed' | 'lowered' | 'held' | 'refused';
  sentence?: string;
}

/** After guards. `change` false: nothing is written but the heartbeat. */
export interface Decision extends Proposal {
  change: boolean;
  verdicts: GuardVerdict[];
}

/** Plain JSON: law memory, breaker memory, guard memory, would-be values. */
export interface DecideState {
  law: string;
  memory: Record<string, unknown>;
}

export const LAW_VERSIONS: Record<string, number> = { adaptive: 1, step: 1, fixed: 1 };
