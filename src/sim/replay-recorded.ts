/** A minute of a service's past as it was recorded, and what a signal of a policy would have read of it. Stage: simulate. */
import { binOf, quantileOfBins } from '../histogram.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { HistoryRow } from '../redis/history-rows.js';
import type { Bins, Reading, Readings, TelemetryReading } from '../sense/readings.js';

/** A minute, or another even stretch of time. Rates are per second; null: not known. */
export interface Recorded {
  atMs: number;
  spanMs: number;
  offeredPerSecond: number;
  okPerSecond: number;
  failedPerSecond: number;
  deniedByRatePerSecond: number;
  deniedByCapPerSecond: number;
  meanMs: number | null;
  p50Ms: number | null;
  p95Ms: number | null;
  p99Ms: number | null;
  p999Ms: number | null;
  inFlight: number | null;
  dbWaitMs: number | null;
  dbWaitP95Ms: number | null;
  poolWaiting: number | null;
  /** In force then; a cap of 0: none. */
  rate: number | null;
  inFlightMax: number | null;
  /** Values of single signals by their name, each in its own unit: they count before what is above. */
  signals: Record<string, number>;
}

const MINUTE_MS = 60_000;

/** A roll-up of Redis in these terms. */
export function recordedOf(row: HistoryRow): Recorded {
  const { rate: byRate = 0, fair_share: byShare = 0, in_flight: byCap = 0 } = row.denied;
  return {
    atMs: row.minute * MINUTE_MS,
    spanMs: MINUTE_MS,
    offeredPerSecond: row.offered / 60,
    okPerSecond: row.ok / 60,
    failedPerSecond: row.failed / 60,
    deniedByRatePerSecond: (byRate + byShare) / 60,
    deniedByCapPerSecond: byCap / 60,
    ...{ meanMs: row.meanMs, p50Ms: row.p50Ms, p95Ms: row.p95Ms },
    ...{ p99Ms: row.p99Ms, p999Ms: row.p999Ms, inFlight: row.inFlight },
    ...{ dbWaitMs: row.dbWaitMs, dbWaitP95Ms: row.dbWaitP95Ms, poolWaiting: row.poolWaiting },
    ...{ rate: row.rate, inFlightMax: row.inFlightMax },
    signals: {},
  };
}

/** What the signal would have read; null: the record does not tell. */
export function recordedValue(name: string, signal: Signal, of: Recorded): number | null {
  const own = of.signals[name];
  if (own !== undefined) return own;
  if (signal.source !== 'telemetry') return null;
  const answers = of.okPerSecond + of.failedPerSecond;
  switch (signal.stat) {
    case 'latency':
      return signal.of === 'mean' ? of.meanMs : latencyQuantile(of, signal.of);
    case 'dbWait':
      return signal.of === 'mean' ? of.dbWaitMs : signal.of === 0.95 ? of.dbWaitP95Ms : null;
    case 'errorRatio':
      return answers > 0 && signal.upstream === undefined && signal.code === undefined
        ? of.failedPerSecond / answers
        : null;
    case 'offered':
      return of.offeredPerSecond;
    case 'timeoutRatio':
    case 'admitted':
    case 'deniedRatio':
    case 'oldest':
    case 'eventLoopDelay':
    case 'cpu':
    case 'memory':
      return null;
    case 'slowRatio':
      return slowShare(of, signal.over);
    case 'failuresInARow':
      return of.okPerSecond > 0 ? 0 : 60 * of.failedPerSecond;
    case 'errors': {
      const told = signal.code === undefined && signal.upstream === undefined;
      return told ? 60 * of.failedPerSecond : null;
    }
    case 'goodput':
      return signal.within === undefined ? of.okPerSecond : goodWithin(of, signal.within);
    case 'poolWaiting':
      return of.poolWaiting;
    case 'inFlight':
      return of.inFlight;
  }
}

/** The seconds of the minute, all alike, each as a daemon would have read it at its end. */
export function createSeconds(policy: Policy, of: Recorded) {
  const telemetry = telemetryOf(of);
  const values = valuesOf(policy, of);
  return (atMs: number, generation: number): Readings => {
    const signals: Record<string, Reading> = {};
    for (const [name, value, count] of values) {
      signals[name] =
        value === null
          ? { kind: 'missing', reason: 'no_data' }
          : { kind: 'value', value, atMs, count };
    }
    const { ok, failed } = telemetry;
    return {
      atMs,
      telemetry: {
        ...telemetry,
        fromMs: atMs - 1000,
        toMs: atMs,
        generation: { id: generation, ok, failed, codes: {} },
      },
      signals,
    };
  };
}

function telemetryOf(of: Recorded): TelemetryReading {
  const { okPerSecond: ok, failedPerSecond: failed } = of;
  const latency = latencyBins(of, ok + failed);
  return {
    kind: 'telemetry',
    fromMs: 0,
    toMs: 0,
    processes: 1,
    reporting: 1,
    offered: of.offeredPerSecond,
    admitted: Math.max(
      ok + failed,
      of.offeredPerSecond - of.deniedByRatePerSecond - of.deniedByCapPerSecond,
    ),
    denied: { rate: of.deniedByRatePerSecond, in_flight: of.deniedByCapPerSecond },
    ...{ ok, failed, timedOut: 0, cancelled: 0 },
    latency,
    latencySumMs: (ok + failed) * (of.meanMs ?? quantileOfBins(latency, 0.5) ?? 0),
    ...{ codes: {}, upstreams: {}, dbWait: {}, dbWaitSumMs: 0 },
    poolWaiting: of.poolWaiting,
    inFlight: of.inFlight ?? (of.meanMs === null ? 0 : ((ok + failed) * of.meanMs) / 1000),
    oldestMs: 0,
    generation: null,
  };
}

/** Times come as they were recorded: bins of a single second are too few for a high quantile. */
function valuesOf(policy: Policy, of: Recorded): [string, number | null, number][] {
  const count = Math.max(1, of.okPerSecond + of.failedPerSecond);
  return Object.entries(policy.signals).flatMap(([name, signal]) => {
    const isTime = signal.stat === 'latency' || signal.stat === 'dbWait';
    if (of.signals[name] === undefined && !isTime) return [];
    return [[name, recordedValue(name, signal, of), count]];
  });
}

const QUANTILES = [
  [0.5, 'p50Ms'],
  [0.95, 'p95Ms'],
  [0.99, 'p99Ms'],
  [0.999, 'p999Ms'],
] as const;
const PARTS = 4;
/** So many answers that a quantile's rank is not rounded. */
const MANY = 1e6;
/** Of the lowest quantile known: where the distribution begins. */
const LEAST_SHARE = 0.4;

function latencyQuantile(of: Recorded, q: number): number | null {
  const [, name] = QUANTILES.find(([known]) => known === q) ?? [];
  return (name && of[name]) ?? quantileOfBins(latencyBins(of, MANY), q);
}

/**
 * Response times between the quantiles that are known, on straight lines of their logarithm. Beyond the highest all are
 * taken to be like it.
 */
function latencyBins(of: Recorded, count: number): Bins {
  const known = QUANTILES.flatMap(([q, name]) => {
    const ms = of[name];
    return ms === null || !(ms > 0) ? [] : [[q, ms] as const];
  });
  const [lowest] = known;
  const bins: Bins = {};
  if (lowest === undefined) return bins;
  const put = (ms: number, share: number) => {
    const bin = binOf(ms);
    if (bin !== undefined && share * count > 0) bins[bin] = (bins[bin] ?? 0) + share * count;
  };
  let [q0, ms0] = [0, LEAST_SHARE * lowest[1]];
  for (const [q, given] of known) {
    // Quantiles that were averaged may cross.
    const ms = Math.max(given, ms0);
    for (let part = 1; part <= PARTS; part++) {
      put(ms0 * (ms / ms0) ** ((part - 0.5) / PARTS), (q - q0) / PARTS);
    }
    [q0, ms0] = [q, ms];
  }
  put(ms0, 1 - q0);
  return bins;
}

function goodWithin(of: Recorded, withinMs: number): number | null {
  const slow = slowShare(of, withinMs);
  return slow === null ? null : of.okPerSecond * (1 - slow);
}

function slowShare(of: Recorded, overMs: number): number | null {
  const bins = Object.entries(latencyBins(of, MANY));
  const most = binOf(overMs);
  if (bins.length === 0 || most === undefined) return null;
  const within = bins.reduce((sum, [bin, n]) => (Number(bin) <= most ? sum + n : sum), 0);
  return 1 - Math.min(1, within / MANY);
}
