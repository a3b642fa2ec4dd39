/** The window of one policy signal: what a frame adds to it, and what it says. Stage: estimate. */
import { tripsOf } from '../decide/trips.js';
import type { SignalEstimate } from '../decide/types.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { MissingReason, Reading } from '../sense/readings.js';
import { round6, valueFault } from './finite.js';
import {
  type Frame,
  type Keep,
  lowest,
  POOL_ANSWERS,
  type Pooled,
  pooledMean,
  pooledQuantile,
  pooledRatio,
  pushFrame,
  STEADY_FRAMES,
  steadied,
  summed,
} from './window.js';

/** Answers below which a ratio is unknown, and a quantile or mean too thin to act on. */
export const MIN_RATIO_ANSWERS = 10;
export const MIN_LATENCY_ANSWERS = 10;
const LATENCY_KEEP_MS = 60_000;
const NUMBER_KEEP_MS = 600_000;
const RATIO_ANSWERS = 200;
const RATIO_KEEP_MS = 10_000;
/** A standing queue is one that has not been empty for this long. */
const WAITS_SPAN_MS = 3_000;
const COUNT_WINDOW_MS = 60_000;

export interface SignalWindow {
  frames: Frame[];
  /** Wall ms of the tick at which the newest frame came in. */
  seenMs: number;
  /** Usual time between readings: what "stale" is measured by. */
  everyMs: number;
  /** The newest gaps between readings, of which that is the middle. */
  gapsMs?: number[];
  /** Without a frame: readings of this moment or before are no news. */
  afterMs?: number;
  /** Why the last reading was not usable. */
  fault: MissingReason | null;
  /** Moment (ms) since which its objective is missed. */
  missedSinceMs?: number;
}

export function emptyWindow(): SignalWindow {
  return { frames: [], seenMs: 0, everyMs: 1000, fault: 'not_started' };
}

/** Is it a share of the answers, or of the requests? Then few prove nothing. */
export function isShare(signal: Signal): boolean {
  const { stat } = signal;
  const ofAnswers = stat === 'errorRatio' || stat === 'timeoutRatio' || stat === 'slowRatio';
  return ofAnswers || stat === 'deniedRatio';
}

/** A number that some source gives, of which nobody knows how many observations stand behind it. */
function isPlainNumber(signal: Signal): boolean {
  if (signal.source === 'telemetry' || 'of' in signal || isShare(signal)) return false;
  return signal.stat !== 'waiting';
}

/** A frame from a source that gives a ready number, or null with the reason in the window. */
export function readyFrame(signal: Signal, reading: Reading, window: SignalWindow): Frame | null {
  if (valueFault(reading) !== null || reading.kind === 'missing') return null;
  const last = window.frames[window.frames.length - 1];
  const spanMs = last === undefined ? window.everyMs : Math.max(0, reading.atMs - last.atMs);
  const weighs = isShare(signal) || ('of' in signal && signal.of === 'mean');
  const value = weighs ? reading.value * reading.count : reading.value;
  return { atMs: reading.atMs, spanMs, count: reading.count, value };
}

/** Adds a frame if it is newer than what is there; a repeated one adds nothing. */
export function addFrame(
  policy: Policy,
  name: string,
  signal: Signal,
  window: SignalWindow,
  frame: Frame,
  nowMs: number,
) {
  const last = window.frames[window.frames.length - 1];
  if (frame.atMs <= (last?.atMs ?? window.afterMs ?? Number.NEGATIVE_INFINITY)) {
    return { window, added: false };
  }
  const gap = last === undefined ? frame.spanMs : frame.atMs - last.atMs;
  // The middle of the last gaps: one long silence does not make long silences usual.
  const gapsMs = [...(window.gapsMs ?? []).slice(-4), clampGap(gap)];
  const everyMs = middleOf(gapsMs);
  const frames = pushFrame(window.frames, frame, keepOf(policy, name, signal));
  const next: SignalWindow = { frames, seenMs: nowMs, everyMs, gapsMs, fault: null };
  if (window.afterMs !== undefined) next.afterMs = window.afterMs;
  if (window.missedSinceMs !== undefined) next.missedSinceMs = window.missedSinceMs;
  return { window: next, added: true };
}

/** Found by counting: so few are not worth a sorted copy. */
function middleOf(all: readonly number[]): number {
  const rank = all.length >> 1;
  for (const one of all) {
    let below = 0;
    let same = 0;
    for (const other of all) {
      if (other < one) below += 1;
      else if (other === one) same += 1;
    }
    if (below <= rank && rank < below + same) return one;
  }
  return all[rank]!;
}

function clampGap(gapMs: number): number {
  return Math.min(600_000, Math.max(250, Math.abs(gapMs)));
}

/** A quantile or mean of answers: of response time also what was answered while the slowest were still running. */
const LATENCY_KEEP: Keep = { ms: LATENCY_KEEP_MS };
const POOLED_KEEP: Keep = { ms: LATENCY_KEEP_MS, answers: POOL_ANSWERS };
const SHARE_KEEP: Keep = { ms: RATIO_KEEP_MS, answers: RATIO_ANSWERS };
const WAITS_KEEP: Keep = { ms: WAITS_SPAN_MS };
const GAUGE_KEEP: Keep = { ms: LATENCY_KEEP_MS, frames: STEADY_FRAMES };
const NUMBER_KEEP: Keep = { ms: NUMBER_KEEP_MS, frames: STEADY_FRAMES };

/** What `statistic` looks at, and no more: windows of a thousand limiters are most of a daemon's memory. */
function keepOf(policy: Policy, name: string, signal: Signal): Keep {
  if (isShare(signal)) return SHARE_KEEP;
  switch (signal.stat) {
    case 'latency':
      return LATENCY_KEEP;
    case 'dbWait':
    case 'eventLoopDelay':
      return POOLED_KEEP;
    case 'errors':
      return { ms: countWindowMs(policy, name) };
    case 'poolWaiting':
    case 'waiting':
      return WAITS_KEEP;
    default:
      return isPlainNumber(signal) ? NUMBER_KEEP : GAUGE_KEEP;
  }
}

function countWindowMs(policy: Policy, name: string): number {
  return tripsOf(policy).find(({ on }) => on === name)?.perMs ?? COUNT_WINDOW_MS;
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
    ('of' in signal && count < MIN_LATENCY_ANSWERS) ||
    (isShare(signal) && count < MIN_RATIO_ANSWERS) ||
    (isPlainNumber(signal) && count === 0);
  const reason = faultOf(signal, window, silentMs, thin, count, value);
  const known = value !== null && Number.isFinite(value) && !(thin && isShare(signal));
  const estimate: SignalEstimate = {
    value: known ? round6(value) : null,
    fresh: added && reason === null && known,
    ageMs,
    count: Math.round(count),
  };
  return reason === null ? estimate : { ...estimate, reason };
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
  const answered = signal.stat === 'latency' || isShare(signal);
  const newest = window.frames[window.frames.length - 1];
  if (answered && newest?.count === 0 && newest.running === undefined) return 'no_traffic';
  if (value === null) return count === 0 ? 'no_traffic' : 'no_data';
  if (thin) return count === 0 && !isPlainNumber(signal) ? 'no_traffic' : 'thin';
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
    case 'eventLoopDelay':
      return signal.of === 'mean'
        ? pooledMean(frames, MIN_RATIO_ANSWERS)
        : pooledQuantile(frames, signal.of);
    case 'errorRatio':
    case 'timeoutRatio':
    case 'slowRatio':
    case 'deniedRatio':
      return pooledRatio(frames, RATIO_ANSWERS);
    case 'errors':
      return summed(frames, countWindowMs(policy, name));
    case 'cpu':
    case 'memory':
      return steadied(frames);
    case 'poolWaiting':
    case 'waiting':
      return lowest(frames, WAITS_SPAN_MS);
    default: {
      if (isPlainNumber(signal)) return steadied(frames);
      const newest = frames[frames.length - 1]!;
      return { value: newest.value, count: newest.count };
    }
  }
}
