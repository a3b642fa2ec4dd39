/** What one interval of telemetry says of the traffic: rates, ratios, in flight by Little's law. Stage: estimate. */
import type { TrafficEstimate } from '../decide/types.js';
import type { TelemetryReading } from '../sense/readings.js';
import { countOf, packBins } from './bins.js';
import { round6, soundOrNull } from './finite.js';
import { MIN_RATIO_ANSWERS } from './signals.js';

/** Before any telemetry came in. */
export function unknownTraffic(): TrafficEstimate {
  return {
    fresh: false,
    ageMs: 0,
    intervalMs: 0,
    processes: 0,
    reporting: 0,
    offeredRate: 0,
    admittedRate: 0,
    answerRate: 0,
    okRate: 0,
    answers: 0,
    deniedByRate: 0,
    deniedByCap: 0,
    errorRatio: null,
    meanMs: null,
    inFlight: null,
    inFlightNow: null,
    oldestMs: 0,
  };
}

export function trafficOf(t: TelemetryReading, nowMs: number): TrafficEstimate {
  const intervalMs = t.toMs - t.fromMs;
  const perSecond = (count: number) => round6((count * 1000) / intervalMs);
  const answers = t.ok + t.failed;
  const measured = countOf(packBins(t.latency)) || answers;
  const sumMs = soundOrNull(t.latencySumMs) ?? 0;
  const meanMs = measured > 0 && sumMs > 0 ? sumMs / measured : null;
  const inFlightNow = soundOrNull(t.inFlight);
  return {
    fresh: true,
    ageMs: Math.max(0, Math.round(nowMs - t.toMs)),
    intervalMs: Math.round(intervalMs),
    processes: t.processes,
    reporting: t.reporting,
    offeredRate: perSecond(t.offered),
    admittedRate: perSecond(t.admitted),
    answerRate: perSecond(answers),
    okRate: perSecond(t.ok),
    answers,
    // Who is above a fair share is refused because the rate binds.
    deniedByRate: perSecond((t.denied.rate ?? 0) + (t.denied.fair_share ?? 0)),
    deniedByCap: perSecond(t.denied.in_flight ?? 0),
    errorRatio: answers >= MIN_RATIO_ANSWERS ? round6(t.failed / answers) : null,
    meanMs: meanMs === null ? null : round6(meanMs),
    // Little's law: N = X · W, with answers as X, since only they have a W.
    inFlight: meanMs === null ? null : round6((measured / intervalMs) * meanMs),
    inFlightNow: inFlightNow === null ? null : round6(inFlightNow),
    oldestMs: Math.round(soundOrNull(t.oldestMs) ?? 0),
  };
}
