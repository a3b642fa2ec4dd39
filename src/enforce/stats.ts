/** Counters of one limiter in this process, for metrics and tests. Stage: enforce → report. */
import type { Decision } from './decision.js';

/** Upper edges of the decision latency histogram, ms; the last bucket has none. */
export const LATENCY_EDGES_MS = [0.5, 1, 2, 5, 10, 20, 50, 100] as const;

export interface LimiterStats {
  /** Decisions by who took them. */
  decisions: Record<string, number>;
  admitted: number;
  denied: Record<string, number>;
  /** Shadow mode: would have been denied, by reason. */
  wouldDeny: Record<string, number>;
  /** Script calls, and those that came too late to charge. */
  calls: number;
  late: number;
  /** Charged by Redis in time, but the answer came after the deadline: decided without it. */
  overtaken: number;
  redisErrors: number;
  /** How often Redis went away, and whether it is away now. */
  outages: number;
  redisUp: boolean;
  /** Telemetry intervals that could not be sent. */
  telemetryDropped: number;
  inFlight: number;
  /** This process's part of the cap; null when unknown or without a cap. */
  share: number | null;
  processes: number;
  abandoned: number;
  /** Requests whose subject lacked an attribute and fell to the client's address. */
  missingAttributes: number;
  /** Counts of decision times, not cumulative: `latency[i]` ≤ `LATENCY_EDGES_MS[i]`. */
  decisionMs: number[];
}

export interface Stats {
  calls: number;
  late: number;
  overtaken: number;
  redisErrors: number;
  outages: number;
  telemetryDropped: number;
  missingAttributes: number;
  decided(decision: Decision, tookMs: number): void;
  snapshot(): Pick<LimiterStats, 'decisions' | 'admitted' | 'denied' | 'wouldDeny' | 'decisionMs'>;
}

export function createStats(): Stats {
  const decisions: Record<string, number> = {};
  const denied: Record<string, number> = {};
  const wouldDeny: Record<string, number> = {};
  const decisionMs = new Array<number>(LATENCY_EDGES_MS.length + 1).fill(0);
  let admitted = 0;
  const count = (of: Record<string, number>, key: string) => {
    of[key] = (of[key] ?? 0) + 1;
  };
  return {
    calls: 0,
    late: 0,
    overtaken: 0,
    redisErrors: 0,
    outages: 0,
    telemetryDropped: 0,
    missingAttributes: 0,
    decided(decision, tookMs) {
      count(decisions, decision.source);
      if (decision.allowed) admitted += 1;
      else count(denied, decision.reason);
      if (decision.allowed && !decision.wouldAllow) count(wouldDeny, decision.reason);
      let i = 0;
      while (i < LATENCY_EDGES_MS.length && tookMs > LATENCY_EDGES_MS[i]!) i++;
      decisionMs[i]! += 1;
    },
    snapshot: () => ({
      decisions: { ...decisions },
      admitted,
      denied: { ...denied },
      wouldDeny: { ...wouldDeny },
      decisionMs: [...decisionMs],
    }),
  };
}
