/** What the simulated service reports and what the record keeps of each second. Stage: simulate. */
import type { Bins, TelemetryReading } from '../sense/readings.js';

export type Counts = Omit<
  TelemetryReading,
  | 'kind'
  | 'fromMs'
  | 'toMs'
  | 'processes'
  | 'reporting'
  | 'inFlight'
  | 'poolWaiting'
  | 'oldestMs'
  | 'wouldDeny'
>;

export function emptyCounts(): Counts {
  return {
    offered: 0,
    admitted: 0,
    denied: {},
    ok: 0,
    failed: 0,
    timedOut: 0,
    cancelled: 0,
    latency: {},
    latencySumMs: 0,
    codes: {},
    upstreams: {},
    dbWait: {},
    dbWaitSumMs: 0,
    generation: null,
  };
}

/** The outcomes of the newest generation seen: what a breaker counts. */
export function countGeneration(counts: Counts, id: number, ok: boolean, code: string): void {
  if (id > (counts.generation?.id ?? -1)) counts.generation = { id, ok: 0, failed: 0, codes: {} };
  const { generation } = counts;
  if (generation === null || generation.id !== id) return;
  if (ok) generation.ok++;
  else {
    generation.failed++;
    generation.codes[code] = (generation.codes[code] ?? 0) + 1;
  }
}

/** One second as it was for clients. */
export interface Second {
  /** First attempts, and all attempts. */
  offered: number;
  attempts: number;
  admitted: number;
  denied: number;
  /** Answered well within the objective's time; well but later; ended badly; left before the answer. */
  good: number;
  late: number;
  failed: number;
  timedOut: number;
  /** Response times of what was answered or given up. */
  latency: Bins;
  /** At the end of the second. */
  inFlight: number;
  queue: number;
  /** In force at the end of the second; cap 0: none. */
  rate: number;
  inFlightMax: number;
  open: boolean;
}

export function emptySecond(): Second {
  return {
    offered: 0,
    attempts: 0,
    admitted: 0,
    denied: 0,
    good: 0,
    late: 0,
    failed: 0,
    timedOut: 0,
    latency: {},
    inFlight: 0,
    queue: 0,
    rate: 0,
    inFlightMax: 0,
    open: false,
  };
}
