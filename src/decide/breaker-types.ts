/** What the breaker counts, remembers and hears, as plain JSON. Stage: decide. */
import type { LimiterState } from '../redis/params.js';

/** What one level of the breaker counts. */
export interface TripCounts {
  /** Answers that it looks at; of a run, its failures. */
  answers: number;
  /** Those of them that count against it. */
  matching: number;
  windowMs: number;
  /** New ones of this tick alone. */
  tick: number;
}

/** Breaker counts over its window, of the newest generation seen; `step` ignores another than the one in force. */
export interface OutcomeCounts {
  /** null: no outcome has been seen yet. */
  generation: number | null;
  ok: number;
  failed: number;
  /** Failures that the breaker's signal counts. */
  matching: number;
  windowMs: number;
  /** New telemetry came in this tick. */
  fresh: boolean;
  /** Of this tick alone: what half-open adds up. */
  tick: { ok: number; matching: number };
  /** By level; left out where the breaker has one alone, and the numbers above are its. */
  trips?: TripCounts[];
}

/** What another limiter of the same upstream tells of its breaker. */
export interface UpstreamWord {
  name: string;
  /** The limiter whose word it is. */
  by: string;
  /** Redis ms of the trip that it speaks of. */
  round: number;
  state: 'open' | 'probing' | 'passed';
  /** ms until its open time is over. */
  leftMs: number;
}

/** The two numbers that a law moves. */
export interface LimiterNumbers {
  rate: number;
  inFlightMax: number;
}

/** What the breaker remembers between ticks. */
export interface BreakerMemory {
  /** State seen at the last tick, and ms in it. */
  state: LimiterState;
  inStateMs: number;
  /** Trips in a row: each doubles the open time; it decays while closed. */
  level: number;
  /** Half-open: probes answered so far, and ms since the first was admitted (-1: none was). */
  probesOk: number;
  probesFailed: number;
  probingMs: number;
  /** Where the slow start leads back to. */
  resume: LimiterNumbers | null;
  /** While open or half-open: the numbers stored at the last tick, so that a person's change shows. */
  stored?: LimiterNumbers | null;
  /** ms for which each level of another number has been passed; −1: it is not. */
  aboveMs?: number[];
  /** The newest round of its upstream that it knows, and 1 while it is stopped by it. */
  round?: number;
  joined?: number;
}
