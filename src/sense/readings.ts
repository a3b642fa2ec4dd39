/** What sense hands to estimate: readings with age and count, or missing with a reason. Stage: sense → estimate. */

export type MissingReason =
  | 'no_data'
  | 'no_traffic'
  | 'stale'
  | 'not_finite'
  /** A count ran backwards: the source restarted. */
  | 'reset'
  /** More than one number where one is wanted: many series, pages of several workers. */
  | 'ambiguous'
  /** The source answered, and warned that its answer is not whole. */
  | 'partial'
  | 'timeout'
  | 'unreachable'
  | 'error'
  | 'breaker_open'
  | 'not_started'
  | 'clock_skew';

export interface Missing {
  kind: 'missing';
  reason: MissingReason;
  detail?: string;
}

/** One number, the moment it speaks of, and how many observations stand behind it. */
export interface ValueReading {
  kind: 'value';
  value: number;
  /** Wall ms of the moment the value speaks of. */
  atMs: number;
  count: number;
  /** What the number is made of, for people: `Lock:transactionid 6`. */
  detail?: string;
}

export type Reading = ValueReading | Missing;

/**
 * Log-spaced histogram: bin i counts values in (γ^(i-1), γ^i] ms with γ = 1.02, so any quantile is within
 * 1 % (DDSketch, Masson et al. 2019). i = ceil(ln(ms) / ln γ), clamped to [-350, 700] (≈ 1 µs … 17 min).
 */
export type BinCounts = Record<number, number>;
/** The same as bin and count in turn, in any order; of a bin that comes twice both count. */
export type BinPairs = readonly number[];
export type Bins = BinCounts | BinPairs;
export const GAMMA = 1.02;
export const MIN_BIN = -350;
export const MAX_BIN = 700;

/** Everything the SDK reported between two ticks, over all processes. Counts, not rates. */
export interface TelemetryReading {
  kind: 'telemetry';
  fromMs: number;
  toMs: number;
  /** Processes that flushed in the interval, and those of them that report completions. */
  processes: number;
  reporting: number;
  offered: number;
  admitted: number;
  /** Denials by reason: rate, subject, in_flight, breaker_open, probe_budget, reserve, cost_exceeds_capacity, … */
  denied: Record<string, number>;
  /** Shadow mode: admitted, though the limit would have denied it, by reason. */
  wouldDeny?: Record<string, number>;
  ok: number;
  /** All that ended badly, those that timed out among them. */
  failed: number;
  timedOut: number;
  /** Cancelled by the caller: not an error, not a latency. */
  cancelled: number;
  /** Admitted requests only; rejections are not latency. */
  latency: Bins;
  latencySumMs: number;
  /** Of those, the ones of failures; a source that cannot tell leaves them out. */
  failedLatency?: Bins;
  /** Answers and their time by route; only where services name more than one. */
  routes?: Record<string, { n: number; sumMs: number }>;
  /** Failures by error code, and by upstream. */
  codes: Record<string, number>;
  upstreams: Record<string, { ok: number; failed: number; codes: Record<string, number> }>;
  /** Time requests waited for a database connection. */
  dbWait: Bins;
  dbWaitSumMs: number;
  /** Requests waiting for a pool connection, fleet total, mean over the interval; null when none reports it. */
  poolWaiting: number | null;
  /** Decisions made without Redis, and those that took longer than 5 ms. */
  fallback?: number;
  slowDecisions?: number;
  /** Takes of subjects past the most that may live, who share one bucket. */
  overflow?: number;
  /** In flight, fleet total at the last flush of each process, and the age of the oldest. */
  inFlight: number;
  oldestMs: number;
  /** How the services fare, means over their processes: shares of the CPU and memory they may use. Null: none says. */
  cpu?: number | null;
  memory?: number | null;
  /** Delay of their event loops, one 99th percentile a process and second. */
  loopDelay?: Bins;
  loopDelaySumMs?: number;
  /** How far Redis's clock is ahead of that process's which is furthest off; only where one is off by over a second. */
  clockSkewMs?: number;
  /** Most of the processes are minutes off: then it is Redis's clock that is wrong, or all of theirs. */
  clocksFar?: true;
  /** Outcomes whose generation is the newest seen: what the breaker may count. */
  generation: { id: number; ok: number; failed: number; codes: Record<string, number> } | null;
}

/** All readings of a tick. */
export interface Readings {
  atMs: number;
  telemetry: TelemetryReading | Missing;
  /**
   * By signal name: signals that are not computed from telemetry, and those whose source gives a ready
   * number (a quantile from Prometheus, say); where both exist, this one is used.
   */
  signals: Record<string, Reading>;
}

/** By signal: what a source said beside its number, or why there is none. For people. */
export function detailsOf({ signals }: Pick<Readings, 'signals'>): Record<string, string> {
  const details: Record<string, string> = {};
  for (const name in signals) {
    const { detail } = signals[name]!;
    if (detail !== undefined) details[name] = detail;
  }
  return details;
}
