/** Readings of a tick → smoothed numbers with age and freshness; windows live here and nowhere else. Stage: estimate. */
import type { Sample, SignalEstimate, TrafficEstimate } from '../decide/types.js';
import type { PackedBins } from '../histogram.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { Readings, TelemetryReading } from '../sense/readings.js';
import { clockJumped } from './clock-jump.js';
import { momentFault, telemetryFault, valueFault } from './finite.js';
import { missedSince } from './missed.js';
import { addOutcomes, emptyOutcomes, type OutcomeWindow, outcomeCounts } from './outcomes.js';
import { nothingUsual, type Usual, weigh } from './outlier.js';
import { emptyMix, type MixState, routeMix } from './route-mix.js';
import {
  addFrame,
  emptyWindow,
  isShare,
  readyFrame,
  type SignalWindow,
  signalEstimate,
} from './signals.js';
import { telemetryFrame } from './telemetry-frame.js';
import { trafficOf, unknownTraffic } from './traffic.js';
import { type Entered, stillRunning } from './under-way.js';

export type Estimates = Pick<Sample, 'signals' | 'traffic' | 'outcomes'>;

/** Plain JSON; never part of an audit entry (the estimates are). Lost on a restart, refilled in seconds. */
export interface EstimateState {
  /** Moment of the last tick, wall ms; null before the first. */
  atMs: number | null;
  /** End of the newest telemetry taken in, wall ms. */
  telemetryToMs: number;
  traffic: TrafficEstimate;
  usual: Usual;
  /** The newest reading, when it was doubted: its outcomes count if the next one says the same. */
  doubted: TelemetryReading | null;
  signals: Record<string, SignalWindow>;
  outcomes: OutcomeWindow;
  /** What came in of late, for what is still under way. */
  entered: Entered[];
  /** The usual time of each route. */
  mix: MixState;
}

export function createEstimateState(): EstimateState {
  return {
    atMs: null,
    telemetryToMs: 0,
    traffic: unknownTraffic(),
    usual: nothingUsual(),
    doubted: null,
    signals: {},
    outcomes: emptyOutcomes(),
    entered: [],
    mix: emptyMix(),
  };
}

/**
 * One tick of estimation. A reading that is missing, repeated, not finite or ran backwards adds nothing:
 * the numbers known before grow older, and nothing of this tick is fresh. An absurd one is set aside until the
 * next one says the same. When the clock was set, all that is known by its moments begins anew, and nothing is fresh.
 */
export function estimate(
  policy: Policy,
  state: EstimateState,
  readings: Readings,
  dtMs: number,
): { state: EstimateState; estimates: Estimates } {
  const jumped = clockJumped(state.atMs, readings, dtMs);
  const from = jumped ? sinceClockJump(state, readings.atMs) : state;
  const given = jumped ? withoutMoments(policy, readings) : readings;
  const nowMs = readings.atMs;
  const read = usableTelemetry(from, given);
  const seen = read === null ? null : trafficOf(read, nowMs);
  const weighed = read === null || seen === null ? null : weigh(from.usual, seen, read.toMs);
  const telemetry = weighed?.believed === true ? read : null;
  const before =
    weighed?.confirmed === true && from.doubted !== null
      ? addOutcomes(policy, from.outcomes, from.doubted).window
      : from.outcomes;
  const added = telemetry === null ? null : addOutcomes(policy, before, telemetry);
  const outcomes = added?.window ?? before;
  const { entered, running } =
    telemetry === null
      ? { entered: from.entered, running: [] }
      : stillRunning(from.entered, telemetry);

  const windows: Record<string, SignalWindow> = {};
  const signals: Record<string, SignalEstimate> = {};
  for (const name in policy.signals) {
    const signal = policy.signals[name]!;
    const before = from.signals[name] ?? emptyWindow();
    const { window, fresh } = takeIn(policy, name, signal, before, given, telemetry, running);
    const seen = signalEstimate(policy, name, signal, window, nowMs, fresh);
    const newestMs = window.frames[window.frames.length - 1]?.atMs ?? nowMs;
    const missed = window.missedSinceMs ?? null;
    const since = missedSince(policy.objective[name], missed, seen, newestMs, isShare(signal));
    windows[name] = since === missed ? window : missingSince(window, since);
    signals[name] = since === null ? seen : { ...seen, missedMs: Math.round(newestMs - since) };
  }
  const { mix, seen: ofRoutes } =
    telemetry === null
      ? { mix: from.mix, seen: undefined }
      : routeMix(from.mix, telemetry, objectivesHold(policy, signals));
  const traffic =
    telemetry === null || seen === null
      ? { ...from.traffic, fresh: false, ageMs: from.traffic.ageMs + Math.max(0, dtMs) }
      : ofRoutes === undefined
        ? seen
        : { ...seen, mix: ofRoutes };
  return {
    state: {
      atMs: nowMs,
      telemetryToMs: read?.toMs ?? from.telemetryToMs,
      traffic,
      usual: weighed?.usual ?? from.usual,
      doubted: weighed === null ? from.doubted : weighed.believed ? null : read,
      signals: windows,
      outcomes,
      entered,
      mix,
    },
    estimates: { signals, traffic, outcomes: outcomeCounts(policy, outcomes, added?.tick ?? null) },
  };
}

function missingSince(window: SignalWindow, since: number | null): SignalWindow {
  if (since !== null) return { ...window, missedSinceMs: since };
  const { missedSinceMs: _over, ...rest } = window;
  return rest;
}

/** What does not hang on moments stays: how much is usual, and what a route usually takes. */
function sinceClockJump(state: EstimateState, nowMs: number): EstimateState {
  const { generation } = state.outcomes;
  const signals: EstimateState['signals'] = {};
  for (const [name, { frames, afterMs = 0 }] of Object.entries(state.signals)) {
    const newestMs = frames.at(-1)?.atMs ?? afterMs;
    signals[name] = { ...emptyWindow(), afterMs: Math.min(newestMs, nowMs) };
  }
  return {
    ...createEstimateState(),
    // What was read before is not new because of the jump; after a step back all that comes is newer than this.
    telemetryToMs: Math.min(state.telemetryToMs, nowMs),
    signals,
    traffic: state.traffic,
    usual: { ...state.usual, inFlightNow: null, toMs: 0, doubted: false },
    outcomes: { ...emptyOutcomes(), generation },
    mix: { ...state.mix, recent: [] },
  };
}

/** Readings of this tick may span the jump: none of them is of a known time. */
function withoutMoments(policy: Policy, readings: Readings): Readings {
  const skewed = { kind: 'missing', reason: 'clock_skew' } as const;
  const { telemetry } = readings;
  const signals: Readings['signals'] = {};
  for (const name of Object.keys(policy.signals)) {
    if (readings.signals[name] !== undefined) signals[name] = skewed;
  }
  return {
    atMs: readings.atMs,
    telemetry: telemetry.kind === 'missing' ? telemetry : skewed,
    signals,
  };
}

/** The telemetry of this tick if it is sound and newer than the last. */
function usableTelemetry(state: EstimateState, readings: Readings): TelemetryReading | null {
  const { telemetry } = readings;
  if (telemetry.kind === 'missing' || faultOfTelemetry(telemetry, readings.atMs) !== null)
    return null;
  return telemetry.toMs <= state.telemetryToMs ? null : telemetry;
}

function faultOfTelemetry(telemetry: TelemetryReading, nowMs: number) {
  return telemetryFault(telemetry) ?? momentFault(telemetry.toMs, nowMs);
}

/** Is no objective for response time missed, as far as is known? */
function objectivesHold(policy: Policy, signals: Record<string, SignalEstimate>): boolean {
  for (const name in policy.objective) {
    const { below = Number.POSITIVE_INFINITY } = policy.objective[name]!;
    const value = signals[name]?.value ?? null;
    if (policy.signals[name]?.stat === 'latency' && value !== null && value > below) return false;
  }
  return true;
}

function takeIn(
  policy: Policy,
  name: string,
  signal: Signal,
  window: SignalWindow,
  readings: Readings,
  telemetry: TelemetryReading | null,
  running: PackedBins,
): { window: SignalWindow; fresh: boolean } {
  const ready = readings.signals[name];
  const late =
    ready?.kind === 'value' ? (valueFault(ready) ?? momentFault(ready.atMs, readings.atMs)) : null;
  const frame =
    ready !== undefined
      ? late === null
        ? readyFrame(signal, ready, window)
        : null
      : telemetry === null
        ? null
        : telemetryFrame(signal, telemetry, window.frames, running);
  if (frame === null) {
    const fault =
      ready !== undefined
        ? (late ?? valueFault(ready) ?? 'no_data')
        : readings.telemetry.kind === 'missing'
          ? readings.telemetry.reason
          : (faultOfTelemetry(readings.telemetry, readings.atMs) ?? 'stale');
    return { window: { ...window, fault }, fresh: false };
  }
  const { window: next, added } = addFrame(policy, name, signal, window, frame, readings.atMs);
  return { window: next, fresh: added };
}
