/** What a tick's telemetry says of one policy signal: the frame that its window takes in. Stage: estimate. */
import type { PackedBins } from '../histogram.js';
import type { Signal } from '../policy/schema.js';
import type { Bins, TelemetryReading } from '../sense/readings.js';
import { countOf, countWhere, packBins } from './bins.js';
import { soundOrNull } from './finite.js';
import type { Frame } from './window.js';

/** `before`: the frames so far. `running`: what is still under way, by the time it has taken. Null: it says nothing. */
export function telemetryFrame(
  signal: Signal,
  t: TelemetryReading,
  before: readonly Frame[],
  running: PackedBins = [],
): Frame | null {
  const spanMs = t.toMs - t.fromMs;
  const at = { atMs: t.toMs, spanMs };
  if (signal.source !== 'telemetry') return null;
  switch (signal.stat) {
    case 'latency': {
      const frame = timesFrame(t, signal.of, t.latency, t.latencySumMs, t.ok + t.failed);
      if (frame !== null && running.length > 0) frame.running = running;
      return frame;
    }
    case 'dbWait':
      return timesFrame(t, signal.of, t.dbWait, t.dbWaitSumMs);
    case 'eventLoopDelay':
      return timesFrame(t, signal.of, t.loopDelay ?? NONE, t.loopDelaySumMs ?? 0);
    case 'errorRatio': {
      const { ok, failed } = ofUpstream(signal.upstream, t);
      return { ...at, count: ok + failed, value: failuresOf(signal, t) };
    }
    case 'timeoutRatio':
      return { ...at, count: t.ok + t.failed, value: t.timedOut };
    case 'slowRatio':
      return { ...at, count: t.ok + t.failed, value: slowerThan(t, signal.over) };
    case 'failuresInARow': {
      const row = before[before.length - 1]?.value ?? 0;
      return { ...at, count: t.ok + t.failed, value: t.ok > 0 ? 0 : row + t.failed };
    }
    case 'errors':
      return { ...at, count: t.ok + t.failed, value: failuresOf(signal, t) };
    case 'poolWaiting':
      if (t.poolWaiting === null || soundOrNull(t.poolWaiting) === null) return null;
      return { ...at, count: 1, value: t.poolWaiting };
    case 'inFlight':
      return soundOrNull(t.inFlight) === null ? null : { ...at, count: 1, value: t.inFlight };
    case 'oldest':
      return gauge(at, t.oldestMs);
    case 'cpu':
      return gauge(at, t.cpu);
    case 'memory':
      return gauge(at, t.memory);
    case 'offered':
      return gauge(at, t.offered / (spanMs / 1000));
    case 'admitted':
      return gauge(at, t.admitted / (spanMs / 1000));
    case 'deniedRatio':
      return { ...at, count: t.offered, value: Math.max(0, t.offered - t.admitted) };
    case 'goodput': {
      const good = signal.within === undefined ? t.ok : goodWithin(t, signal.within);
      return { ...at, count: t.ok + t.failed, value: good / (spanMs / 1000) };
    }
  }
}

/** Of times: their bins for a quantile, or their sum for a mean, which without bins is that of `untimed`. */
function timesFrame(
  { fromMs, toMs }: TelemetryReading,
  of: number | 'mean',
  times: Bins,
  sumMs: number,
  untimed = 0,
): Frame | null {
  const spanMs = toMs - fromMs;
  const bins = packBins(times);
  const count = countOf(bins);
  if (of !== 'mean') return { atMs: toMs, spanMs, count, value: 0, bins };
  if (soundOrNull(sumMs) === null) return null;
  return { atMs: toMs, spanMs, count: count > 0 ? count : untimed, value: sumMs };
}

const NONE: Bins = [];

function gauge(at: Pick<Frame, 'atMs' | 'spanMs'>, value: number | null | undefined): Frame | null {
  const sound = value == null ? null : soundOrNull(value);
  return sound === null ? null : { ...at, count: 1, value: sound };
}

/** Failures that a signal with `code` and `upstream` counts. A missing series is 0 only because the total is there. */
export function failuresOf(
  signal: Extract<Signal, { stat: 'errors' | 'errorRatio' }>,
  t: TelemetryReading,
): number {
  if (signal.upstream !== undefined) {
    const upstream = t.upstreams[signal.upstream];
    if (upstream === undefined) return 0;
    return signal.code === undefined ? upstream.failed : (upstream.codes[signal.code] ?? 0);
  }
  return signal.code === undefined ? t.failed : (t.codes[signal.code] ?? 0);
}

function ofUpstream(upstream: string | undefined, t: TelemetryReading) {
  if (upstream === undefined) return t;
  return t.upstreams[upstream] ?? { ok: 0, failed: 0 };
}

/** Answers, good or bad, that took longer: by the value of their bin, so within 1 % of the time. */
export function slowerThan(t: TelemetryReading, overMs: number): number {
  return countWhere(packBins(t.latency), (ms) => ms > overMs);
}

/**
 * Good answers that came within `withinMs`, from the bins (a bin's own value decides, so within 1 % of the time).
 * Failures whose time is not told apart (an older SDK) count as quick ones, so that too few are called good.
 */
function goodWithin(t: TelemetryReading, withinMs: number): number {
  const quick = (bins: Bins) => countWhere(packBins(bins), (ms) => ms <= withinMs);
  const failedBins = t.failedLatency ?? {};
  const untold = Math.max(0, t.failed - countOf(packBins(failedBins)));
  return Math.max(0, Math.min(t.ok, quick(t.latency) - quick(failedBins) - untold));
}
