/** One absurd reading is doubted, not believed: a counter that began anew, gauges added up twice. Stage: estimate. */
import type { TrafficEstimate } from '../decide/types.js';

/** What readings of late make plausible. Plain JSON. */
export interface Usual {
  /** Highest of late, slowly fading, per second: answers, admitted. */
  answerRate: number;
  admittedRate: number;
  /** Highest of late by Little's law. */
  inFlight: number;
  /** The newest gauge that was believed, and the end of the newest reading, wall ms. */
  inFlightNow: number | null;
  toMs: number;
  /** The newest reading was doubted: the next one that says the same is believed. */
  doubted: boolean;
}

export const OUTLIER = {
  /** A rate that is so many times the highest of late is doubted. */
  factor: 8,
  /** Fewer answers than this are never absurd. */
  answers: 20,
  /** Share by which the highest of late fades in a second. */
  fade: 0.01,
  /** What a gauge may differ by from what came and went: share of the admitted, and requests. */
  skew: 0.3,
  requests: 10,
};

export function nothingUsual(): Usual {
  return {
    answerRate: 0,
    admittedRate: 0,
    inFlight: 0,
    inFlightNow: null,
    toMs: 0,
    doubted: false,
  };
}

/**
 * Is this reading believed, and what is usual after it? A jump is doubted once; said twice in a row it is true, so
 * that a real one is answered one reading later. A doubted reading does not change what is usual; `confirmed` says
 * that the one before, which was doubted, was true.
 */
export function weigh(
  before: Usual,
  traffic: TrafficEstimate,
  toMs: number,
): { believed: boolean; confirmed: boolean; usual: Usual } {
  const elapsedMs = before.toMs === 0 ? 0 : Math.max(0, toMs - before.toMs);
  const kept = (1 - OUTLIER.fade) ** (elapsedMs / 1000);
  const faded: Usual = {
    ...before,
    answerRate: before.answerRate * kept,
    admittedRate: before.admittedRate * kept,
    inFlight: before.inFlight * kept,
  };
  const jumps = absurd(faded, traffic, toMs);
  if (jumps && !before.doubted) {
    return { believed: false, confirmed: false, usual: { ...faded, toMs, doubted: true } };
  }
  const { inFlightNow } = traffic;
  return {
    believed: true,
    confirmed: jumps,
    usual: {
      answerRate: Math.max(faded.answerRate, traffic.answerRate),
      admittedRate: Math.max(faded.admittedRate, traffic.admittedRate),
      inFlight: Math.max(faded.inFlight, traffic.inFlight ?? 0),
      ...{ inFlightNow, toMs, doubted: false },
    },
  };
}

function absurd(usual: Usual, traffic: TrafficEstimate, toMs: number): boolean {
  const jumped = (seen: number, most: number) => most > 0 && seen > OUTLIER.factor * most;
  const many = traffic.answers >= OUTLIER.answers;
  if (many && jumped(traffic.answerRate, usual.answerRate)) return true;

  // What came in and was not answered must be under way: a gauge that agrees is a second witness, as in a real
  // surge, which must not wait. What the reading does not cover is not known.
  const admitted = (traffic.admittedRate * traffic.intervalMs) / 1000;
  const stayed = Math.max(0, admitted - traffic.answers);
  const gauge = traffic.inFlightNow;
  const joined = toMs - traffic.intervalMs <= usual.toMs + 1;
  const grown =
    joined && gauge !== null && usual.inFlightNow !== null ? gauge - usual.inFlightNow : null;
  if (grown !== null && grown > stayed + OUTLIER.skew * admitted + OUTLIER.requests) return true;
  if (admitted >= OUTLIER.answers && jumped(traffic.admittedRate, usual.admittedRate)) {
    const witnessed = grown !== null && stayed > 0.5 * admitted && grown > 0.5 * stayed;
    if (!witnessed) return true;
  }
  const little = traffic.inFlight ?? 0;
  return many && jumped(little, usual.inFlight) && !(gauge !== null && gauge > 0.5 * little);
}
