/** The simulated service: workers with contention, a pool of connections, an upstream; and how load comes in. Stage: simulate. */
import type { Policy } from '../policy/schema.js';
import type { Times } from './random.js';

/** A service as a plant: everything constant; what changes with time is the scenario's. */
export interface ServiceModel {
  /** Requests worked on at once; the others queue, first come first served. */
  workers: number;
  /** Longest queue for a worker; beyond it a request fails at once. */
  queueMax: number;
  /** Time of the service's own part with nobody else there. */
  app: Times;
  /**
   * Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007): with n at work each takes
   * 1 + alpha · (n − 1) + beta · n · (n − 1) times as long. Zero: no contention.
   */
  alpha: number;
  beta: number;
  /** Connections of the database pool, and the time one is held; null: no database. */
  pool: { connections: number; hold: Times } | null;
  /** Time of a call upstream after the database; failing calls take `upstreamFailMs`. */
  upstreamMs: number;
  upstreamFailMs: number;
}

export interface ClientModel {
  /** A client leaves after this; the service works on all the same. */
  timeoutMs: number;
  /** Further attempts after a timeout, a failure or a denial, each after about `backoffMs`. */
  retries: number;
  backoffMs: number;
  retryDenied: boolean;
}

/** Share of the capacity that the stated rate is taken to be, of a plant that nobody has fitted. */
const STATED_SHARE = 0.9;
/** Mean response time at leisure as a share of the response-time objective, when there is one. */
const LEISURE_SHARE = 0.2;
const LEISURE_MS = 50;
/** Of the leisure time: the service's own part; the rest is the database's. */
const APP_SHARE = 0.65;
const CONTENTION = 0.3;
/**
 * The peak of throughput ÷ what is carried for long: at the peak itself a moment's queue tips it over, and the fewer
 * are at work the more their number varies.
 */
const PEAK = { least: 1.1, perRootOfWork: 0.8 };

/**
 * A plant for a policy when nothing is known of the service: its knee lies a little above the stated rate, its response
 * time at leisure well under the objective, and past the knee it collapses, as services do.
 */
export function defaultService(policy: Policy): ServiceModel {
  const leisureMs = LEISURE_SHARE * (latencyObjectiveMs(policy) ?? LEISURE_MS / LEISURE_SHARE);
  return serviceOf({ capacityPerSecond: statedCapacity(policy), leisureMs });
}

/** What a service carries whose policy states `limiter.rate`, as far as anybody knows. */
export function statedCapacity(policy: Policy): number {
  return policy.limiter.rate / STATED_SHARE;
}

/** A service that carries `capacityPerSecond` for long and collapses not far above, with `leisureMs` mean response time at leisure. */
export function serviceOf(known: {
  capacityPerSecond: number;
  leisureMs: number;
  cv?: number;
}): ServiceModel {
  const { capacityPerSecond, leisureMs, cv = 0.8 } = known;
  const appMs = APP_SHARE * leisureMs;
  const holdMs = (1 - APP_SHARE) * leisureMs;
  // X(n) = n ÷ (app · (1 + α(n−1) + βn(n−1))) peaks at n = √((1−α) ÷ β); α = 0.3 ÷ n makes it n ÷ (2.3 · app).
  const atWork = (capacityPerSecond * appMs) / 1000;
  const peak = peakShare(atWork);
  const best = Math.max(2, peak * (2 + CONTENTION) * atWork);
  const alpha = CONTENTION / best;
  return {
    workers: Math.ceil(4 * best),
    queueMax: Math.ceil(20 * capacityPerSecond),
    app: { kind: 'lognormal', meanMs: appMs, cv },
    alpha,
    beta: (1 - alpha) / best ** 2,
    pool: {
      connections: Math.max(2, Math.ceil((1.4 * capacityPerSecond * holdMs) / 1000)),
      hold: { kind: 'exponential', meanMs: holdMs },
    },
    upstreamMs: 0,
    upstreamFailMs: 5,
  };
}

/** Peak of throughput ÷ what is carried for long, with `atWork` at work then. */
function peakShare(atWork: number): number {
  return PEAK.least + PEAK.perRootOfWork / Math.sqrt(Math.max(atWork, 0.1));
}

/** The most answers a second that contention leaves, at the best number at work. */
export function peakPerSecond({ app, alpha, beta, workers }: ServiceModel): number {
  const best = beta > 0 ? Math.sqrt(Math.max(0, 1 - alpha) / beta) : workers;
  const n = Math.min(workers, Math.max(1, best));
  return (1000 * n) / (app.meanMs * (1 + alpha * (n - 1) + beta * n * (n - 1)));
}

/** What a service without a database carries for long: the share of its peak that `serviceOf` takes. */
export function carriedOf(service: ServiceModel): number {
  const peak = peakPerSecond(service);
  let carries = peak / PEAK.least;
  for (let i = 0; i < 40; i++) carries = peak / peakShare((carries * service.app.meanMs) / 1000);
  return carries;
}

export const DEFAULT_CLIENTS: ClientModel = {
  timeoutMs: 2000,
  retries: 0,
  backoffMs: 200,
  retryDenied: false,
};

/** The tightest objective for response time, in ms; null when the policy has none. */
export function latencyObjectiveMs(policy: Policy): number | null {
  let tightest: number | null = null;
  for (const [name, objective] of Object.entries(policy.objective)) {
    if (policy.signals[name]?.stat !== 'latency' || objective.below === undefined) continue;
    tightest = Math.min(tightest ?? Number.POSITIVE_INFINITY, objective.below);
  }
  return tightest;
}
