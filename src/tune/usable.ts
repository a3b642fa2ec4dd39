/** Which minutes of the history say what a service can do, and why the others are left out. Stage: tune. */
import type { HistoryRow } from '../redis/history-rows.js';

/**
 * `unwatched`: the daemon led for less than half of the minute; `breaker`: not closed for some of it; `overload`: a
 * signal of the objective missed its setpoint for more than a quarter; `drift`: the policy file differed from the
 * adopted policy for more than half; `failing`: a tenth of the answers or more were failures.
 */
export type LeftOut = 'unwatched' | 'breaker' | 'overload' | 'drift' | 'failing';

export interface Usable {
  rows: HistoryRow[];
  leftOut: Record<LeftOut, number>;
  /** Of all rows, usable or not, ms; 0 of none. */
  fromMs: number;
  toMs: number;
}

const MINUTE_MS = 60_000;

export function usableMinutes(history: readonly HistoryRow[]): Usable {
  const leftOut: Usable['leftOut'] = {
    unwatched: 0,
    breaker: 0,
    overload: 0,
    drift: 0,
    failing: 0,
  };
  const rows: HistoryRow[] = [];
  for (const row of history) {
    const why = reasonOf(row);
    if (why === null) rows.push(row);
    else leftOut[why] += 1;
  }
  const first = history[0];
  const last = history[history.length - 1];
  return {
    rows,
    leftOut,
    fromMs: first === undefined ? 0 : first.minute * MINUTE_MS,
    toMs: last === undefined ? 0 : (last.minute + 1) * MINUTE_MS,
  };
}

function reasonOf(row: HistoryRow): LeftOut | null {
  if (row.watchedS < 30) return 'unwatched';
  if (row.notClosedS > 0) return 'breaker';
  if (row.overloadS > 15) return 'overload';
  if (row.driftS > 30) return 'drift';
  const answers = row.ok + row.failed;
  return answers > 0 && row.failed >= 0.1 * answers ? 'failing' : null;
}

/** Good answers per second. */
export function goodRate(row: HistoryRow): number {
  return row.ok / 60;
}

/** Nearest rank: the value that `q` of all do not exceed; null of none. Values that are not finite are left out. */
export function percentile(values: readonly number[], q: number): number | null {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort();
  if (sorted.length === 0) return null;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))]!;
}

/** Three digits: more would only look exact. */
export function show(value: number): string {
  return String(Number(value.toPrecision(3)));
}
