/** What a limiter has counted, with what its canary counted in its place. Stage: enforce. */
import type { InForce } from '../redis/calls.js';
import type { LimiterParts } from './limiter-parts.js';
import type { LimiterStats } from './stats.js';

export function statsOf(own: LimiterParts, canary: LimiterParts | null): LimiterStats {
  const stats = readStats(own);
  return canary === null ? stats : withCounts(stats, readStats(canary));
}

function readStats({ stats, link, view, inFlight }: LimiterParts): LimiterStats {
  return {
    ...stats.snapshot(),
    calls: stats.calls,
    late: stats.late,
    overtaken: stats.overtaken,
    redisErrors: stats.redisErrors,
    outages: stats.outages,
    redisUp: link.up,
    telemetryDropped: stats.telemetryDropped,
    inForce: inForceOf(view.current),
    inFlight: inFlight.inUse,
    share: Number.isFinite(inFlight.share) ? inFlight.share : null,
    processes: view.processes,
    abandoned: inFlight.abandoned,
    missingAttributes: stats.missingAttributes,
    overflow: stats.overflow,
    refunded: stats.refunded,
    refundsDropped: stats.refundsDropped,
  };
}

function inForceOf(current: InForce | null): LimiterStats['inForce'] {
  if (current === null) return null;
  const { epoch, revision, state, mode } = current;
  return { epoch, revision, state, mode };
}

/** Requests of both. What is in force, shares and the link are the limiter's own. */
const COUNTS = [
  ...(['admitted', 'shadowAllowed', 'shadowDenied', 'nearLimit', 'calls', 'late'] as const),
  ...(['overtaken', 'redisErrors', 'telemetryDropped', 'inFlight', 'abandoned'] as const),
  ...(['overflow', 'refunded', 'refundsDropped', 'decisionSumMs'] as const),
];

function withCounts(stats: LimiterStats, canary: LimiterStats): LimiterStats {
  const sums = { ...stats };
  for (const name of COUNTS) sums[name] += canary[name];
  for (const name of ['decisions', 'denied', 'wouldDeny'] as const) {
    sums[name] = { ...stats[name] };
    for (const [key, count] of Object.entries(canary[name])) {
      sums[name][key] = (sums[name][key] ?? 0) + count;
    }
  }
  sums.decisionMs = stats.decisionMs.map((count, i) => count + (canary.decisionMs[i] ?? 0));
  return sums;
}
