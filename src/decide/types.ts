/** The plain data that estimate, step and guard exchange; all JSON, so that a decision can be replayed. Stage: decide. */
import type { LimiterState, Mode } from '../redis/params.js';
import type { PersonBounds } from '../redis/windows.js';
import type { MissingReason } from '../sense/readings.js';
import type { BreakerMemory, OutcomeCounts, UpstreamWord } from './breaker-types.js';
import type { KeptBack, Over } from './told-types.js';

/** One signal after smoothing. `fresh` false: the value (if any) must neither raise nor trip. */
export interface SignalEstimate {
  value: number | null;
  fresh: boolean;
  ageMs: number;
  /** Observations behind the value. */
  count: number;
  /** Why it is not usable. Not fresh and no reason: nothing new since the last tick. */
  reason?: MissingReason | 'thin';
  /** ms for which its objective has been missed; only while it is. */
  missedMs?: number;
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
  /** Where services name their routes, once what is usual of each is known. */
  mix?: RouteMix;
}

/** What is asked for, and how fast it goes, beside what is usual of each route. */
export interface RouteMix {
  /** Above 1: slower routes than usual are asked for, by this factor of the mean response time. */
  shift: number;
  /** Response time over the usual time of the same routes: 1 is as usual. */
  slowdown: number;
}

/** Shares of the capacity that must remain after a take of that priority. */
export interface Reserves {
  default: number;
  sheddable: number;
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
  /** Frozen by the policy's schedule, not by a person. */
  bySchedule?: boolean | undefined;
  /** As stored: what comes back when the breaker lets go (`rate` above is 0 while open). */
  target: { rate: number; capacity: number; inFlightMax: number; reserve?: Reserves };
}

/** All that `step` may know at a tick. Stored in audit entries; ≤ 4 KB with the state. */
export interface Sample {
  /** Wall ms of the tick. */
  nowMs: number;
  /** ms since the previous tick (monotonic). */
  dtMs: number;
  signals: Record<string, SignalEstimate>;
  traffic: TrafficEstimate;
  outcomes: OutcomeCounts;
  inForce: InForceView;
  /** Of a limiter that shares a downstream: the most its rate may be, of what all may have together. */
  group?: { downstream: string; share: number; usable: number; members: number } | undefined;
  /** Which profile of the policy holds; absent: none. */
  profile?: string | undefined;
  /** A person's bounds for a while; absent: none. */
  bounds?: PersonBounds | undefined;
  /** The most that the rate may be for now, after a failover. */
  ceiling?: number | undefined;
  /** The fleet has had its changes of this minute, or its raises of this hour: raises wait. */
  raisesWait?: boolean | undefined;
  /** Another policy was adopted since the last tick. */
  adopted?: boolean | undefined;
  /** Of a limiter whose breaker is an upstream's: the newest word of another that shares it. */
  upstream?: UpstreamWord | undefined;
}

/**
 * What a law wants, before guards. Rate, capacity and cap are targets as stored: while `state` is open
 * or half-open, `effective()` enforces 0 or the probe rate and keeps them for the way back.
 */
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
  /** What was seen, with the numbers. */
  why: string;
  /** What the law looked at; absent: nothing fresh, or it looks at no setpoint. */
  over?: Over | undefined;
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
  /** One sentence with the numbers: why, what it changes, and what guards held back of that. */
  sentence: string;
  change: boolean;
  verdicts: GuardVerdict[];
  heldBack?: KeptBack | undefined;
  /** Of a policy with `bounds.reserve`, in mode auto. */
  reserve?: Reserves;
}

/** What the guards remember between ticks. */
export interface GuardMemory {
  /** ms since the last raise that was let through. */
  sinceRaiseMs: number;
  /** Changes that may still be made; refills by the minute. */
  budget: number;
  /** ms for which a signal that glides while it is missing has been. */
  missingMs: number;
  /** Ticks at the least that the bounds allow while the service is still overloaded. */
  atFloorTicks: number;
  /** From where `guards.driftPerHour` counts; absent: it was not asked for. */
  driftRate?: number;
  driftCap?: number;
  /** The limits as the last decision left them, and whether in mode auto (1); absent: of an older version. */
  leftRate?: number;
  leftCap?: number;
  leftAuto?: number;
}

/** For how long (ms) more was asked for than the limits allow, or clearly less. */
export type ReserveMemory = Record<'pressedMs' | 'relaxedMs', number>;

/** The limits that were seen to give good answers, and the window in which those in force are judged. See the guard `autoRollback`. */
export interface ProofMemory {
  /** What proved good: limits, goodput (0: not known), the answers it was taken from, processes that report. */
  rate: number;
  cap: number;
  good: number;
  answers: number;
  reporting: number;
  /** The window under way: the lowest limits in it, and its sums. */
  atRate: number;
  atCap: number;
  ok: number;
  asked: number;
  count: number;
  ms: number;
  /** The most that was answered well at a time, per second: in the window under way, and in that which proved good. */
  peak?: number;
  goodPeak?: number;
  /** Windows in a row with clearly less goodput, and the goodput of the last. */
  bad: number;
  worse: number;
  /** In force at the last tick; ms since they rose, and since a policy was adopted. */
  lastRate: number;
  lastCap: number;
  sinceRiseMs: number;
  adoptedMs: number;
  /** After a fall: ms until what is answered was admitted under the limits of now. */
  settleMs: number;
  /** Where raises end after a rollback, and for how long; how often it has happened of late. */
  topRate: number;
  topCap: number;
  coolMs: number;
  level: number;
  calmMs: number;
}

/** What the adaptive law's loop was seen to do; `tune/loop.ts` says what the numbers mean. */
export interface LoopMemory {
  /** 1: of the rate, 0: of the cap. */
  rateOnly: number;
  /** Pairs [ln limit, ms since it came into force], newest last. */
  limits: number[];
  /** Slow means of ln signal and of ln limit at each lag; empty while no limit binds. */
  means: number[];
  /** ms for which no limit has bound, and since the last sample that was taken in. */
  idleMs: number;
  sinceMs: number;
  /** Sums that forget: changes, samples, and the products of the deviations, by lag. */
  changes: number;
  weight: number;
  yy: number;
  uu: number[];
  uy: number[];
}

/** A law's own numbers; each law says what they mean. */
export type LawMemory = Record<string, number | number[]>;

/** Plain JSON: all that `step` and the guards carry from tick to tick. */
export interface DecideState {
  law: string;
  memory: {
    breaker: BreakerMemory;
    law: LawMemory;
    guard: GuardMemory;
    reserve?: ReserveMemory;
    loop?: LoopMemory;
    proof?: ProofMemory;
  };
}

export const LAW_VERSIONS: Record<string, number> = {
  adaptive: 6,
  step: 3,
  fixed: 2,
  aimd: 3,
  pi: 4,
};
