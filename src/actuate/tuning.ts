/** The history of a limiter read and judged; what of the judgement may be put in force; when it was last done. Stage: actuate. */
import { clamp } from '../decide/bounds.js';
import type { Policy } from '../policy/schema.js';
import { readHistory } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { ParamChange, Params } from '../redis/params.js';
import { seeded } from '../sim/random.js';
import type { ServiceFacts } from '../tune/from-history.js';
import {
  type NoRecommendation,
  type Recommendation,
  recommend,
  type Tuned,
} from '../tune/recommend.js';
import type { RedisClient } from './actuator.js';

export const DEFAULT_SINCE_MS = 7 * 86_400_000;
/** The same history gives the same bands, whoever looks. */
const SEED = 1;
/** A field of the history that is no minute: when tuning by schedule last ran, and what came of it. */
const LAST_RUN = 'tuned';

/** What the policy's `tune` says of the service. */
export function factsOf({ tune }: Policy): ServiceFacts {
  const { slotsPerInstance, instances, connections, hold } = tune ?? {};
  return { slotsPerInstance, instances, connections, holdMs: hold };
}

/** Reads the last `sinceMs` of history and says what the numbers should be. */
export async function recommendFromHistory(
  redis: RedisClient,
  address: LimiterAddress,
  of: { policy: Policy; params: Params; nowMs: number; sinceMs: number; facts: ServiceFacts },
): Promise<Recommendation | NoRecommendation> {
  const { policy, params, nowMs, sinceMs, facts } = of;
  const history = await readHistory(redis, limiterKeys(address), nowMs - sinceMs);
  const { rate, capacity, inFlightMax } = params;
  const inForce = { rate, capacity, inFlightMax };
  return recommend({ policy, history, inForce, facts, random: seeded(SEED) });
}

/** What may be put in force of it: numbers that differ by more than the dead band, capacity only where it has bounds. */
export function tunedChange(policy: Policy, params: Params, tuned: Recommendation): ParamChange {
  const differs = (value: number, from: number) =>
    Math.abs(value - from) > policy.guards.deadBand * Math.max(from, Number.EPSILON);
  const change: ParamChange = {};
  // A person's bounds for a while may be narrower than the policy's, which it was judged by.
  const rate = clamp(tuned.rate.value, params.minRate, params.maxRate);
  const cap = clamp(tuned.inFlightMax?.value ?? 0, params.minInFlight, params.maxInFlight);
  if (differs(rate, params.rate)) change.rate = rate;
  const { capacity, inFlightMax } = tuned;
  if (
    capacity !== null &&
    policy.bounds?.capacity !== undefined &&
    differs(capacity.value, params.capacity)
  ) {
    change.capacity = capacity.value;
  }
  if (inFlightMax !== null && params.inFlightMax > 0 && differs(cap, params.inFlightMax)) {
    change.inFlightMax = cap;
  }
  return change;
}

/** What an entry keeps of a recommendation. */
export function tuneDetail(tuned: Recommendation): Record<string, unknown> {
  const kept = (of: Tuned | null) =>
    of === null ? null : { wanted: of.wanted, value: of.value, band: of.band, binds: of.binds };
  const { minutes, rate, capacity, inFlightMax, missing } = tuned;
  return {
    tune: {
      minutes,
      ...{ rate: kept(rate), capacity: kept(capacity), inFlightMax: kept(inFlightMax) },
      missing,
    },
  };
}

export interface LastRun {
  /** Redis time. */
  atMs: number;
  /** `begun`: the schedule was seen for the first time. */
  outcome: 'begun' | 'applied' | 'noted' | 'unchanged' | 'refused' | 'held';
  sentence: string;
}

export async function readLastRun(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<LastRun | null> {
  const text = await redis.hget(limiterKeys(address).history, LAST_RUN);
  try {
    const run = JSON.parse(text ?? 'null') as Partial<LastRun> | null;
    return typeof run?.atMs === 'number' && typeof run.outcome === 'string'
      ? { atMs: run.atMs, outcome: run.outcome, sentence: String(run.sentence ?? '') }
      : null;
  } catch {
    return null;
  }
}

export async function keepLastRun(
  redis: RedisClient,
  address: LimiterAddress,
  run: LastRun,
): Promise<void> {
  const key = limiterKeys(address).history;
  await redis.hset(key, LAST_RUN, JSON.stringify(run));
  // A limiter without rows yet: the field must not stay for ever.
  await redis.pexpire(key, 8 * 86_400_000, 'NX');
}
