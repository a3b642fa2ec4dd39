/** The telemetry seconds of one minute, and what its leader saw, as one row of the history. Stage: daemon. */
import { binsIn, type PackedBins, quantileOfPacked } from '../histogram.js';
import type { HistoryRow, KneePoint } from '../redis/history-rows.js';
import type { LimiterState } from '../redis/params.js';
import { createDeltaBins, type Delta, emptyDelta } from '../sense/delta.js';
import type { SecondLines } from '../sense/second-lines.js';
import { addSecond } from '../sense/telemetry-delta.js';

/** What the holder of the lease saw of a minute, added up tick by tick. */
export interface WatchedMinute {
  watchedS: number;
  notClosedS: number;
  overloadS: number;
  driftS: number;
  freshS: number;
  /** At the newest tick. */
  inForce: { state: LimiterState; rate: number; capacity: number; inFlightMax: number } | null;
}

export const UNWATCHED: WatchedMinute = {
  ...{ watchedS: 0, notClosedS: 0, overloadS: 0, driftS: 0, freshS: 0 },
  inForce: null,
};

/** One set is enough for all limiters: a row is made before the next is begun. */
const bins = createDeltaBins();

/** A knee point speaks of so many seconds: of fewer, the flushes of a process would show. */
const POINT_S = 20;
/** Answers below which throughput and response time of a point are mostly noise. */
const POINT_ANSWERS = 20;

/**
 * `seconds` holds what was reported in each second of the minute, in order; a count of a flush is in the second in
 * which it came. Null: nothing was asked for and nothing was under way.
 */
export function rollUp(
  minute: number,
  seconds: readonly (SecondLines | null)[],
  watched: WatchedMinute,
): HistoryRow | null {
  const all = emptyDelta(bins);
  const points: KneePoint[] = [];
  for (let from = 0; from < seconds.length; from += POINT_S) {
    const before = answeredIn(all);
    for (const lines of seconds.slice(from, from + POINT_S)) {
      if (lines !== null) addSecond(all, undefined, lines);
    }
    const point = pointOf(before, answeredIn(all));
    if (point !== null) points.push(point);
  }
  const { counts } = all;
  if (all.broken !== undefined || (counts.offered === 0 && all.inFlightSum === 0)) return null;
  const latency = binsIn(bins.latency);
  const waits = binsIn(bins.dbWait);
  const q = (bins: PackedBins, of: number) => quantileOfPacked(bins, of);
  const whole = Math.max(1, seconds.length);
  const { inForce, ...saw } = watched;
  return {
    minute,
    ...saw,
    state: inForce?.state ?? null,
    rate: inForce?.rate ?? null,
    capacity: inForce?.capacity ?? null,
    inFlightMax: inForce?.inFlightMax ?? null,
    offered: counts.offered,
    admitted: counts.admitted,
    denied: { ...counts.denied },
    ok: counts.ok,
    failed: counts.failed,
    cancelled: counts.cancelled,
    meanMs: meanOf(counts.latencySumMs, bins.latency.total),
    ...{ p50Ms: q(latency, 0.5), p95Ms: q(latency, 0.95) },
    ...{ p99Ms: q(latency, 0.99), p999Ms: q(latency, 0.999) },
    // Each process reports its gauges once a second, so the sum over a minute's flushes is 60 times the mean.
    inFlight: all.flushes === 0 ? null : all.inFlightSum / whole,
    dbWaitMs: meanOf(counts.dbWaitSumMs, bins.dbWait.total),
    dbWaitP95Ms: q(waits, 0.95),
    poolWaiting: all.poolFlushes === 0 ? null : all.poolSum / whole,
    processes: all.processSeconds / whole,
    reporting: all.reportingSeconds / whole,
    points,
  };
}

interface Answered {
  answers: number;
  timed: number;
  sumMs: number;
}

function answeredIn({ counts, bins }: Delta): Answered {
  const { ok, failed, latencySumMs } = counts;
  return { answers: ok + failed, timed: bins.latency.total, sumMs: latencySumMs };
}

function pointOf(before: Answered, now: Answered): KneePoint | null {
  const answers = now.answers - before.answers;
  const wMs = meanOf(now.sumMs - before.sumMs, now.timed - before.timed);
  if (answers < POINT_ANSWERS || wMs === null) return null;
  const x = answers / POINT_S;
  // Little's law: N = X · W.
  return [x, (x * wMs) / 1000, wMs];
}

function meanOf(sumMs: number, count: number): number | null {
  return count > 0 && sumMs > 0 ? sumMs / count : null;
}
