/** Readings of a tick → smoothed numbers with age and freshness; windows live here and nowhere else. Stage: estimate. */
import type { Sample, SignalEstimate, TrafficEstimate } from '../decide/types.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { Readings, TelemetryReading } from '../sense/readings.js';
import { telemetryFault, valueFault } from './finite.js';
import { missedSince } from './missed.js';
import { addOutcomes, type OutcomeWindow, outcomeCounts } from './outcomes.js';
import { nothingUsual, type Usual, weigh } from './outlier.js';
import {
  addFrame,
  emptyWindow,
  keepMsOf,
  readyFrame,
  type SignalWindow,
  signalEstimate,
  telemetryFrame,
} from './signals.js';
import { trafficOf, unknownTraffic } from './traffic.js';

export type Estimates = Pick<Sample, 'signals' | 'traffic' | 'outcomes'>;

/** Plain JSON; never part of an audit entry (the estimates are). Lost on a restart, refilled in seconds. */
export interface EstimateState {
  /** End of the newest telemetry taken in, wall ms. */
  telemetryToMs: number;
  traffic: TrafficEstimate;
  usual: Usual;
  /** The newest reading, when it was doubted: its outcomes count if the next one says the same. */
  doubted: TelemetryReading | null;
  signals: Record<string, SignalWindow>;
  outcomes: OutcomeWindow;
}

export function createEstimateState(): EstimateState {
  return {
    telemetryToMs: 0,
    traffic: unknownTraffic(),
    usual: nothingUsual(),
    doubted: null,
    signals: {},
    outcomes: { generation: null, frames: [] },
  };
}

/**
 * One tick of estimation. A reading that is missing, repeated, not finite or ran backwards adds nothing:
 * the numbers known before grow older, and nothing of this tick is fresh. An absurd one is set aside until the
 * next one says the same.
 */
export function estimate(
  policy: Policy,
  state: EstimateState,
  readings: Readings,
  dtMs: number,
): { state: EstimateState; estimates: Estimates } {
  const nowMs = readings.atMs;
  const read = usableTelemetry(state, readings);
  const seen = read === null ? null : trafficOf(read, nowMs);
  const weighed = read === null || seen === null ? null : weigh(state.usual, seen, read.toMs);
  const telemetry = weighed?.believed === true ? read : null;
  const before =
    weighed?.confirmed === true && state.doubted !== null
      ? addOutcomes(policy, state.outcomes, state.doubted).window
      : state.outcomes;
  const added = telemetry === null ? null : addOutcomes(policy, before, telemetry);
  const outcomes = added?.window ?? before;
  const traffic =
    telemetry === null || seen === null
      ? { ...state.traffic, fresh: false, ageMs: state.traffic.ageMs + Math.max(0, dtMs) }
      : seen;

  const windows: Record<string, SignalWindow> = {};
  const signals: Record<string, SignalEstimate> = {};
  for (const [name, signal] of Object.entries(policy.signals)) {
    const before = state.signals[name] ?? emptyWindow();
    const { window, fresh } = takeIn(policy, name, signal, before, readings, telemetry);
    const seen = signalEstimate(policy, name, signal, window, nowMs, fresh);
    const newestMs = window.frames.at(-1)?.atMs ?? nowMs;
    const { missedSinceMs = null, ...rest } = window;
    const since = missedSince(policy.objective[name], missedSinceMs, seen, newestMs);
    windows[name] = since === null ? rest : { ...rest, missedSinceMs: since };
    signals[name] = since === null ? seen : { ...seen, missedMs: Math.round(newestMs - since) };
  }
  return {
    state: {
      telemetryToMs: read?.toMs ?? state.telemetryToMs,
      traffic,
      usual: weighed?.usual ?? state.usual,
      doubted: weighed === null ? state.doubted : weighed.believed ? null : read,
      signals: windows,
      outcomes,
    },
    estimates: { signals, traffic, outcomes: outcomeCounts(policy, outcomes, added?.tick ?? null) },
  };
}

/** The telemetry of this tick if it is sound and newer than the last; a step back of over an hour is a new clock. */
function usableTelemetry(state: EstimateState, readings: Readings): TelemetryReading | null {
  const telemetry = readings.telemetry;
  if (telemetry.kind === 'missing' || telemetryFault(telemetry) !== null) return null;
  const back = state.telemetryToMs - telemetry.toMs;
  return back >= 0 && back < 3_600_000 ? null : telemetry;
}

function takeIn(
  policy: Policy,
  name: string,
  signal: Signal,
  window: SignalWindow,
  readings: Readings,
  telemetry: TelemetryReading | null,
): { window: SignalWindow; fresh: boolean } {
  const ready = readings.signals[name];
  const frame =
    ready !== undefined
      ? readyFrame(signal, ready, window)
      : telemetry === null
        ? null
        : telemetryFrame(signal, telemetry);
  if (frame === null) {
    const fault =
      ready !== undefined
        ? (valueFault(ready) ?? 'no_data')
        : readings.telemetry.kind === 'missing'
          ? readings.telemetry.reason
          : (telemetryFault(readings.telemetry) ?? 'stale');
    return { window: { ...window, fault }, fresh: false };
  }
  const { window: next, added } = addFrame(
    window,
    frame,
    readings.atMs,
    keepMsOf(policy, name, signal),
  );
  return { window: next, fresh: added };
}
