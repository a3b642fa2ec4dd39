/** Points of a limiter's charts: of one look at it, and of the minutes that are rolled up. Pure. Stage: api. */
import type { Policy, Signal } from '../policy/schema.js';
import { HISTORY_MINUTE_MS, type HistoryRow } from '../redis/history-rows.js';
import type { LimiterState } from '../redis/params.js';
import type { StatusView } from './status.js';
import type { StatusFacts } from './status-facts.js';

export interface SeriesPoint {
  /** Redis ms. */
  timeMs: number;
  state: LimiterState | null;
  /** In force; cap 0: none. */
  rate: number | null;
  capacity: number | null;
  inFlightMax: number | null;
  inFlight: number | null;
  /** Requests per second. */
  offered: number | null;
  admitted: number | null;
  denied: number | null;
  signals: Record<string, number | null>;
}

const SECONDS = HISTORY_MINUTE_MS / 1000;

export function pointOf(facts: StatusFacts, view: StatusView): SeriesPoint {
  const { traffic, inForce } = view;
  const sample = facts.status?.sample;
  const now = view.daemon.alive ? sample?.traffic : undefined;
  const signals: Record<string, number | null> = {};
  for (const name of Object.keys(facts.policy?.signals ?? {})) {
    signals[name] = sample?.signals?.[name]?.value ?? null;
  }
  const known = (value: number) => (traffic.seen ? round4(value) : null);
  return {
    timeMs: Math.floor(facts.nowMs),
    state: view.state,
    rate: round4(inForce?.rate ?? null),
    capacity: round4(inForce?.capacity ?? null),
    inFlightMax: inForce === null ? null : (inForce.inFlightMax ?? 0),
    inFlight: round4(traffic.inFlight ?? now?.inFlightNow ?? null),
    offered: known(traffic.offeredPerSecond),
    admitted: known(traffic.admittedPerSecond),
    denied: known(sum(traffic.deniedPerSecond)),
    signals,
  };
}

/** In the middle of its minute. What of the signals the roll-ups hold is shown; the others have no past. */
export function pointOfMinute(row: HistoryRow, policy: Policy | null): SeriesPoint {
  const perSecond = (count: number) => round4(count / SECONDS);
  const signals: Record<string, number | null> = {};
  for (const [name, signal] of Object.entries(policy?.signals ?? {})) {
    signals[name] = pastOf(row, signal);
  }
  return {
    timeMs: row.minute * HISTORY_MINUTE_MS + HISTORY_MINUTE_MS / 2,
    ...{ state: row.state, rate: row.rate, capacity: row.capacity },
    ...{ inFlightMax: row.inFlightMax, inFlight: row.inFlight },
    offered: perSecond(row.offered),
    admitted: perSecond(row.admitted),
    denied: perSecond(sum(row.denied)),
    signals,
  };
}

/** What was seen, oldest first, with those minutes of which nothing was: someone may have watched, gone, and come again. */
export function withMinutes(
  seen: readonly SeriesPoint[],
  minutes: readonly SeriesPoint[],
): SeriesPoint[] {
  const minuteOf = ({ timeMs }: SeriesPoint) => Math.floor(timeMs / HISTORY_MINUTE_MS);
  const watched = new Set(seen.map(minuteOf));
  const others = minutes.filter((minute) => !watched.has(minuteOf(minute)));
  return [...others, ...seen].sort((a, b) => a.timeMs - b.timeMs);
}

/** The quantiles that a minute keeps. */
const LATENCY = {
  mean: 'meanMs',
  0.5: 'p50Ms',
  0.95: 'p95Ms',
  0.99: 'p99Ms',
  0.999: 'p999Ms',
} as const;
const DB_WAIT = { mean: 'dbWaitMs', 0.95: 'dbWaitP95Ms' } as const;

function pastOf(row: HistoryRow, signal: Signal): number | null {
  // What one code or upstream failed is not kept by minute.
  if (signal.source !== 'telemetry' || 'code' in signal || 'upstream' in signal) return null;
  const ratio = (part: number, whole: number) => (whole === 0 ? null : round4(part / whole));
  switch (signal.stat) {
    case 'latency':
      return kept(row, LATENCY, signal.of);
    case 'dbWait':
      return kept(row, DB_WAIT, signal.of);
    case 'errorRatio':
      return ratio(row.failed, row.ok + row.failed);
    case 'deniedRatio':
      return ratio(sum(row.denied), row.offered);
    case 'poolWaiting':
      return row.poolWaiting;
    case 'inFlight':
      return row.inFlight;
    case 'offered':
      return ratio(row.offered, SECONDS);
    case 'admitted':
      return ratio(row.admitted, SECONDS);
    default:
      return null;
  }
}

function kept<K extends keyof HistoryRow>(
  row: HistoryRow,
  columns: Readonly<Record<string | number, K>>,
  of: string | number,
): HistoryRow[K] | null {
  const column = columns[of];
  return column === undefined ? null : row[column];
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function round4<T extends number | null>(value: T): T {
  if (value === null || value === 0 || !Number.isFinite(value)) return value;
  return Number(value.toPrecision(4)) as T;
}
