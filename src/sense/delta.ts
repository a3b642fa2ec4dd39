/** The sums of one interval of telemetry, empty. Pure. Stage: sense. */
import { type BinSums, clearBins, createBinSums } from '../histogram.js';
import type { TelemetryReading } from './readings.js';

type BinsOf = 'latency' | 'failedLatency' | 'dbWait' | 'loopDelay';
export type DeltaBins = Record<BinsOf, BinSums>;

export function createDeltaBins(): DeltaBins {
  const [latency, failedLatency] = [createBinSums(), createBinSums()];
  return { latency, failedLatency, dbWait: createBinSums(), loopDelay: createBinSums() };
}

/** Sums of one interval, before gauges are divided by the flushes that gave them. */
export interface Delta {
  counts: Omit<
    Required<TelemetryReading>,
    | 'kind'
    | 'fromMs'
    | 'toMs'
    | 'processes'
    | 'reporting'
    | 'poolWaiting'
    | 'inFlight'
    | 'clockSkewMs'
    | 'cpu'
    | 'memory'
    | 'clocksFar'
    | BinsOf
  >;
  bins: DeltaBins;
  /** Fields that grew. */
  grown: number;
  flushes: number;
  /** Processes that flushed, and those of them that report completions. */
  processes: Set<string>;
  reporting: Set<string>;
  /** The same, counted once in each second. */
  processSeconds: number;
  reportingSeconds: number;
  /** Of the process whose clock is furthest off: Redis's − its own, ms; and flushes of processes off by minutes. */
  clockSkewMs: number;
  farFlushes: number;
  /** Flushes that say how their process fares, and the sums of what they say, in ‰. */
  vitals: number;
  cpuSum: number;
  memorySum: number;
  inFlightSum: number;
  poolSum: number;
  poolFlushes: number;
  /** A field whose value is no count; everything of this look is then in doubt. */
  broken: string | undefined;
}

/** Names that services make up are keys here, so nothing is inherited from Object. */
export const byName = <T>() => Object.create(null) as Record<string, T>;

/** `bins` are emptied, and this delta's until another is made with them: each is a large table. */
export function emptyDelta(bins: DeltaBins = createDeltaBins()): Delta {
  clearBins(bins.latency);
  clearBins(bins.failedLatency);
  clearBins(bins.dbWait);
  clearBins(bins.loopDelay);
  return {
    bins,
    counts: {
      offered: 0,
      admitted: 0,
      denied: byName(),
      wouldDeny: byName(),
      ok: 0,
      failed: 0,
      timedOut: 0,
      cancelled: 0,
      latencySumMs: 0,
      codes: byName(),
      upstreams: byName(),
      routes: byName(),
      dbWaitSumMs: 0,
      loopDelaySumMs: 0,
      oldestMs: 0,
      fallback: 0,
      slowDecisions: 0,
      overflow: 0,
      generation: null,
    },
    grown: 0,
    flushes: 0,
    processes: new Set(),
    reporting: new Set(),
    processSeconds: 0,
    reportingSeconds: 0,
    clockSkewMs: 0,
    farFlushes: 0,
    vitals: 0,
    cpuSum: 0,
    memorySum: 0,
    inFlightSum: 0,
    poolSum: 0,
    poolFlushes: 0,
    broken: undefined,
  };
}
