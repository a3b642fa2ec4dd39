/** Counters of one limiter in this process, for metrics and tests. Stage: enforce → report. */
import type { InForce } from '../redis/calls.js';
import type { LimiterState, Mode } from '../redis/params.js';
import type { Decision } from './decision.js';
import type { TakeWish } from './pending-take.js';
import type { Samples } from './samples.js';
import { createTally, type Tally } from './tally.js';
import type { TopSubjects } from './top-subjects.js';

/** Upper edges of the decision latency histogram, ms; the last bucket has none. */
export const LATENCY_EDGES_MS = [0.5, 1, 2, 5, 10, 20, 50, 100] as const;

export interface LimiterStats {
  /** Decisions by who took them. */
  decisions: Record<string, number>;
  admitted: number;
  denied: Record<string, number>;
  /** Admitted in shadow, but would have been denied, by reason. */
  wouldDeny: Record<string, number>;
  /** Takes that a rollout has not reached: what enforcement would have answered. */
  shadowAllowed: number;
  shadowDenied: number;
  /** Admitted by Redis with at most a fifth of the capacity left: four fifths are used. */
  nearLimit: number;
  /** The newest numbers seen in force; null before the first, and without params. */
  inForce: { epoch: number; revision: number; state: LimiterState; mode: Mode } | null;
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
  /** Takes of subjects past the most that may live: they share one bucket. */
  overflow: number;
  /** Takes that Redis gave back, and those that could not be: their tokens come back by the rate. */
  refunded: number;
  refundsDropped: number;
  /** Counts of decision times, not cumulative: `latency[i]` ≤ `LATENCY_EDGES_MS[i]`. */
  decisionMs: number[];
  /** Their sum. */
  decisionSumMs: number;
}

export interface Stats {
  calls: number;
  late: number;
  overtaken: number;
  redisErrors: number;
  outages: number;
  telemetryDropped: number;
  missingAttributes: number;
  overflow: number;
  refunded: number;
  refundsDropped: number;
  /** The one place that hears of each decision. */
  decided(decision: Decision, wish: Pick<TakeWish, 'cost' | 'priority'>, tookMs: number): void;
  /** Numbers of a reply, with the tokens that a window of another algorithm holds. */
  sees(inForce: InForce, windowMs: number): void;
  /** Decisions made without Redis, and those slower than 5 ms, so far. */
  readonly fallback: number;
  readonly slow: number;
  snapshot(): Pick<
    LimiterStats,
    | 'decisions'
    | 'admitted'
    | 'denied'
    | 'wouldDeny'
    | 'shadowAllowed'
    | 'shadowDenied'
    | 'nearLimit'
    | 'decisionMs'
    | 'decisionSumMs'
  >;
}

/** A decision that took longer is told to the daemon: the p99 should lie below. */
const SLOW_MS = 5;
/** What is left of the capacity when a limit counts as near. */
const NEAR_SHARE = 0.2;

export function createStats(samples: Samples, top: TopSubjects | null): Stats {
  /** One of few, on every decision. */
  const decisions = createTally();
  const denied = createTally();
  const wouldDeny: Record<string, number> = {};
  let fallback = 0;
  let slow = 0;
  const decisionMs = new Array<number>(LATENCY_EDGES_MS.length + 1).fill(0);
  let admitted = 0;
  let nearLimit = 0;
  let shadowDenied = 0;
  let sumMs = 0;
  let nearTotal = -1;
  let nearSubject = -1;
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
    overflow: 0,
    refunded: 0,
    refundsDropped: 0,
    decided(decision, wish, tookMs) {
      const { allowed, source, subject } = decision;
      decisions.of(source).n += 1;
      if (source === 'local' || source === 'open' || source === 'closed') fallback += 1;
      if (tookMs > SLOW_MS) slow += 1;
      if (allowed) {
        admitted += 1;
        if (decision.reason === 'ok' && (source === 'redis' || source === 'unmanaged')) {
          if (decision.remaining <= (subject === null ? nearTotal : nearSubject)) nearLimit += 1;
        }
      } else denied.of(decision.reason).n += 1;
      if (decision.allowed && !decision.wouldAllow) {
        count(wouldDeny, decision.reason);
        if (source === 'shadow') shadowDenied += 1;
      }
      let i = 0;
      while (i < LATENCY_EDGES_MS.length && tookMs > LATENCY_EDGES_MS[i]!) i++;
      decisionMs[i]! += 1;
      sumMs += tookMs;
      if (top !== null && subject !== null) top.decided(subject, wish.cost, !decision.wouldAllow);
      if (samples.asked) samples.decided(decision, wish, tookMs);
    },
    get fallback() {
      return fallback;
    },
    get slow() {
      return slow;
    },
    sees({ rate, capacity, subjectRate, subjectCapacity }, windowMs) {
      const total = windowMs > 0 ? (rate * windowMs) / 1000 : capacity;
      const own = windowMs > 0 ? (subjectRate * windowMs) / 1000 : subjectCapacity;
      nearTotal = total * NEAR_SHARE;
      // `remaining` is of the bucket with fewer tokens, which is never more than the smaller one holds.
      nearSubject = subjectRate < 0 ? nearTotal : Math.min(total, own) * NEAR_SHARE;
    },
    snapshot: () => ({
      decisions: countsOf(decisions),
      admitted,
      denied: countsOf(denied),
      wouldDeny: { ...wouldDeny },
      shadowAllowed: (countsOf(decisions).shadow ?? 0) - shadowDenied,
      shadowDenied,
      nearLimit,
      decisionMs: [...decisionMs],
      decisionSumMs: sumMs,
    }),
  };
}

function countsOf(tally: Tally): Record<string, number> {
  const counts: Record<string, number> = {};
  tally.each((name, { n }) => {
    counts[name] = n;
  });
  return counts;
}
