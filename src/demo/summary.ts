/** What a play came to, by phase and in all: pure, from its seconds. The shapes of the demo's JSON. Stage: demo. */
import { type Histogram, mean, merge, quantile } from './histogram.js';
import type { PlayRecord, PlaySecond } from './play.js';
import { isDisturbance, PHASES, type PhaseName, SETTLE_SECONDS } from './story.js';

/** Times in ms. null: nothing to measure (no request admitted, no decision taken). */
export interface Figures {
  /** Orders that arrived; a retry is not another order. */
  offered: number;
  /** Orders answered ok within 1 s of being sent. */
  good: number;
  goodputPerSecond: number;
  /** Of admitted requests; one that timed out at the client counts with its 2 s. */
  meanMs: number | null;
  p50Ms: number | null;
  p95Ms: number | null;
  p99Ms: number | null;
  /** Share of admitted requests answered with 5xx. Refusals at the door are not in it. */
  errorRatio5xx: number | null;
  /** Requests waiting for a pool connection + sessions waiting, over the disturbances (or the phase). */
  dbWaitsMean: number | null;
  dbWaitsMax: number | null;
  secondsAtRateZero: number;
  decisionP99Ms: number | null;
}

export interface PlaySummary extends Figures {
  phases: Record<PhaseName, Figures>;
}

export function summarise(record: PlayRecord): PlaySummary {
  const disturbed = record.seconds.filter((s) => isDisturbance(s.phase));
  const all = figures(record.seconds, playSeconds(record), disturbed);
  const phases = PHASES.map((name) => {
    const phase = record.phases.find((p) => p.name === name)!;
    // What is answered after the last arrival belongs to the last phase, but adds no time to it.
    const own = record.seconds.filter((s) => s.phase === name);
    return [name, figures(own, phase.seconds, own)] as const;
  });
  return { ...all, phases: Object.fromEntries(phases) as Record<PhaseName, Figures> };
}

function figures(
  seconds: readonly PlaySecond[],
  lengthSeconds: number,
  waitSeconds: readonly PlaySecond[],
): Figures {
  const sum = (pick: (s: PlaySecond) => number) => seconds.reduce((n, s) => n + pick(s), 0);
  const latency = merge(seconds.map((s) => s.latency));
  const decisions = merge(seconds.map((s) => s.decisions));
  const waits = waitSeconds.flatMap((s) => s.waits);
  const good = sum((s) => s.good);
  return {
    offered: sum((s) => s.offered),
    good,
    goodputPerSecond: round(good / lengthSeconds),
    ...latencyFigures(latency),
    errorRatio5xx: latency.count === 0 ? null : round(sum((s) => s.failed) / latency.count, 4),
    dbWaitsMean: waits.length === 0 ? null : round(waits.reduce((a, b) => a + b) / waits.length),
    dbWaitsMax: waits.length === 0 ? null : Math.max(...waits),
    secondsAtRateZero: round(sum((s) => s.atRateZero)),
    decisionP99Ms: rounded(quantile(decisions, 0.99), 2),
  };
}

function latencyFigures(latency: Histogram) {
  return {
    meanMs: rounded(mean(latency)),
    p50Ms: rounded(quantile(latency, 0.5)),
    p95Ms: rounded(quantile(latency, 0.95)),
    p99Ms: rounded(quantile(latency, 0.99)),
  };
}

/** p95 of admitted requests in the disturbances, without the first seconds of each. */
export function settledP95Ms(record: PlayRecord): number | null {
  const settled = record.seconds.filter((second) => {
    const phase = record.phases.find((p) => p.name === second.phase)!;
    return isDisturbance(phase.name) && second.second >= phase.from + SETTLE_SECONDS;
  });
  return rounded(quantile(merge(settled.map((s) => s.latency)), 0.95));
}

function playSeconds(record: PlayRecord): number {
  return record.phases.reduce((sum, phase) => sum + phase.seconds, 0);
}

function round(value: number, digits = 1): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}

function rounded(value: number | null, digits = 1): number | null {
  return value === null ? null : round(value, digits);
}
