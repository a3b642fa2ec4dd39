/** One policy signal: what a reading adds to its window, and what the window says. Stage: estimate. */
import type { SignalEstimate } from '../decide/types.js';
import { binValue } from '../histogram.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { Bins, MissingReason, Reading, TelemetryReading } from '../sense/readings.js';
import { countOf, packBins } from './bins.js';
import { round6, soundOrNull, valueFault } from './finite.js';
import {
  type Frame,
  lowest,
  type Pooled,
  pooledQuantile,
  pooledRatio,
  pushFrame,
  summed,
} from './window.js';

/** Answers below which a ratio is unknown, and a quantile or mean too thin to act on. */
export const MIN_RATIO_ANSWERS = 10;
export const MIN_LATENCY_ANSWERS = 10;
const LATENCY_KEEP_MS = 60_000;
const RATIO_ANSWERS = 200;
const RATIO_KEEP_MS = 10_000;
/** A standing queue is one that has not been empty for this long. */
const WAITS_SPAN_MS = 3_000;
export const COUNT_WINDOW_MS = 60_000;

export interface SignalWindow {
  frames: Frame[];
  /** Wall ms of the tick at which the newest frame came in. */
  seenMs: number;
  /** Usual time between readings: what "stale" is measured by. */
  everyMs: number;
  /** Why the last reading was not usable. */
  fault: MissingReason | null;
  /** Moment (ms) since which its objective is missed, for one with `sustain`. */
  missedSinceMs?: number;
}

export function emptyWindow(): SignalWindow {
  return { frames: [], seenMs: 0, everyMs: 1000, fault: 'not_started' };
}

/** Is the signal one of failures, not of congestion? Errors do not cut until they are nearly all. */
export function isErrorSignal(signal: Signal): boolean {
  return signal.stat === 'errorRatio' || signal.stat === 'errors';
}

/** What a tick's telemetry says of a signal; null when it says nothing. */
export function telemetryFrame(signal: Signal, t: TelemetryReading): Frame | null {
  const spanMs = t.toMs - t.fromMs;
  const at = { atMs: t.toMs, spanMs };
  if (signal.source !== 'telemetry') return null;
  switch (signal.stat) {
    case 'latency':
    case 'dbWait': {
      const bins = packBins(signal.stat === 'latency' ? t.latency : t.dbWait);
      const sum = signal.stat === 'latency' ? t.latencySumMs : t.dbWaitSumMs;
      const count = countOf(bins);
      if (signal.of !== 'mean') return { ...at, count, value: 0, bins };
      const counted = count > 0 || signal.stat === 'dbWait' ? count : t.ok + t.failed;
      if (soundOrNull(sum) === null) return null;
      return { ...at, count: counted, value: sum };
    }
    case 'errorRatio':
      return { ...at, count: t.ok + t.failed, value: t.failed };
    case 'errors':
      return { ...at, count: t.ok + t.failed, value: failuresOf(signal, t) };
    case 'poolWaiting':
      if (t.poolWaiting === null || soundOrNull(t.poolWaiting) === null) return null;
      return { ...at, count: 1, value: t.poolWaiting };
    case 'inFlight':
      return soundOrNull(t.inFlight) === null ? null : { ...at, count: 1, value: t.inFlight };
    case 'goodput': {
      const good = signal.within === undefined ? t.ok : goodWithin(t, signal.within);
      return { ...at, count: t.ok + t.failed, value: good / (spanMs / 1000) };
    }
  }
}

/** Failures that `errors({ code, upstream })` counts. A missing series is 0 only because the total is there. */
export function failuresOf(
  signal: Extract<Signal, { stat: 'errors' }>,
  t: TelemetryReading,
): number {
  if (signal.upstream !== undefined) {
    const upstream = t.upstreams[signal.upstream];
    if (upstream === undefined) return 0;
    return signal.code === undefined ? upstream.failed : (upstream.codes[signal.code] ?? 0);
  }
  return signal.code === undefined ? t.failed : (t.codes[signal.code] ?? 0);
}

/**
 * Good answers that came within `withinMs`, from the bins (a bin's own value decides, so within 1 % of the time).
 * Failures whose time is not told apart (an older SDK) count as quick ones, so that too few are called good.
 */
function goodWithin(t: TelemetryReading, withinMs: number): number {
  const quick = (bins: Bins) =>
    packBins(bins).reduce((sum, [bin, n]) => (binValue(bin) <= withinMs ? sum + n : sum), 0);
  const failedBins = t.failedLatency ?? {};
  const untold = Math.max(0, t.failed - countOf(packBins(failedBins)));
  return Math.max(0, Math.min(t.ok, quick(t.latency) - quick(failedBins) - untold));
}

/** A frame from a source that gives a ready number, or null with the reason in the window. */
export function readyFrame(signal: Signal, reading: Reading, window: SignalWindow): Frame | null {
  if (valueFault(reading) !== null || reading.kind === 'missing') return null;
  const last = window.frames[window.frames.length - 1];
  const spanMs = last === undefined ? window.everyMs : Math.max(0, reading.atMs - last.atMs);
  const weighs = signal.stat === 'errorRatio' || ('of' in signal && signal.of === 'mean');
  const value = weighs ? reading.value * reading.count : reading.value;
  return { atMs: reading.atMs, spanMs, count: reading.count, value };
}

/** Adds a frame if it is newer than what is there; a repeated one adds nothing. */
export function addFrame(window: SignalWindow, frame: Frame, nowMs: number, keepMs: number) {
  const last = window.frames[window.frames.length - 1];
  if (last !== undefined && frame.atMs <= last.atMs && last.atMs - frame.atMs < 3_600_000) {
    return { window, added: false };
  }
  const gap = last === undefined ? frame.spanMs : frame.atMs - last.atMs;
  const everyMs = Math.min(60_000, Math.max(250, 0.7 * window.everyMs + 0.3 * Math.abs(gap)));
  const frames = pushFrame(window.frames, frame, keepMs);
  return { window: { ...window, frames, seenMs: nowMs, everyMs, fault: null }, added: true };
}

export function keepMsOf(policy: Policy, name: string, signal: Signal): number {
  if (signal.stat === 'errorRatio') return RATIO_KEEP_MS;
  if (signal.stat === 'errors') return countWindowMs(policy, name);
  return LATENCY_KEEP_MS;
}

export function countWindowMs(policy: Policy, name: string): number {
  const breaker = policy.breaker;
  return breaker?.on === name && breaker.per !== undefined ? breaker.per : COUNT_WINDOW_MS;
}

/** The signal's number now, with its age; `fresh` only when a new reading came in this tick and is not thin. */
export function signalEstimate(
  policy: Policy,
  name: string,
  signal: Signal,
  window: SignalWindow,
  nowMs: number,
  added: boolean,
): SignalEstimate {
  const newest = window.frames[window.frames.length - 1];
  if (newest === undefined) {
    return { value: null, fresh: false, ageMs: 0, count: 0, reason: window.fault ?? 'no_data' };
  }
  const ageMs = Math.max(0, Math.round(nowMs - newest.atMs));
  const silentMs = nowMs - window.seenMs;
  const { value, count } = statistic(policy, name, signal, window.frames);
  const thin =
    signal.stat === 'latency' || signal.stat === 'dbWait'
      ? count < MIN_LATENCY_ANSWERS
      : signal.stat === 'errorRatio' && count < MIN_RATIO_ANSWERS;
  const reason = faultOf(signal, window, silentMs, thin, count, value);
  const known = value !== null && Number.isFinite(value) && !(thin && signal.stat === 'errorRatio');
  return {
    value: known ? round6(value) : null,
    fresh: added && reason === null && known,
    ageMs,
    count: Math.round(count),
    ...(reason === null ? {} : { reason }),
  };
}

function faultOf(
  signal: Signal,
  window: SignalWindow,
  silentMs: number,
  thin: boolean,
  count: number,
  value: number | null,
): SignalEstimate['reason'] | null {
  // One lost reading is not yet a lost signal: what was known stays known until it is stale.
  if (silentMs > staleAfterMs(window.everyMs)) return window.fault ?? 'stale';
  const answered = signal.stat === 'latency' || signal.stat === 'errorRatio';
  const newest = window.frames[window.frames.length - 1];
  if (answered && newest?.count === 0) return 'no_traffic';
  if (value === null) return count === 0 ? 'no_traffic' : 'no_data';
  if (thin) return count === 0 ? 'no_traffic' : 'thin';
  return null;
}

/** Silence that makes a signal stale: two and a half usual intervals, at least 3 s. */
export function staleAfterMs(everyMs: number): number {
  return Math.max(3_000, 2.5 * everyMs);
}

function statistic(policy: Policy, name: string, signal: Signal, frames: Frame[]): Pooled {
  switch (signal.stat) {
    case 'latency':
    case 'dbWait':
      return signal.of === 'mean'
        ? pooledRatio(frames, MIN_RATIO_ANSWERS)
        : pooledQuantile(frames, signal.of);
    case 'errorRatio':
      return pooledRatio(frames, RATIO_ANSWERS);
    case 'errors':
      return summed(frames, countWindowMs(policy, name));
    case 'poolWaiting':
    case 'waiting':
      return lowest(frames, WAITS_SPAN_MS);
    default: {
      const newest = frames[frames.length - 1]!;
      return { value: newest.value, count: newest.count };
    }
  }
}
