/** Reads what `status` shows of one limiter, from Redis alone: it works with every daemon dead. Stage: cli, api. */
import { readParams } from '../actuate/actuator.js';
import { readEntries, type StoredEntry } from '../actuate/audit.js';
import { readPolicy } from '../actuate/verbs/apply.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { LOOK_SECONDS } from '../redis/look.js';
import type { Params } from '../redis/params.js';
import type { RedisClient } from '../redis/run-script.js';
import type { LimiterStatus } from '../report/status.js';
import type { Session } from './limiters.js';
import { liveProcesses, sumSeconds, type Traffic, trafficOfHash } from './traffic.js';

/** Seconds of telemetry that say what binds now; the running second is not whole and is left out. */
export const TRAFFIC_SECONDS = LOOK_SECONDS;

export interface StatusFacts {
  address: LimiterAddress;
  params: Params | null;
  nowMs: number;
  policy: Policy | null;
  /** The holder of the lease, if any. */
  owner: string | null;
  /** What the daemon wrote at its last tick, as it is; null when it has lapsed. */
  status: Partial<LimiterStatus> | null;
  traffic: Traffic;
  newest: StoredEntry | null;
}

export async function readStatusFacts(
  session: Session,
  address: LimiterAddress,
): Promise<StatusFacts> {
  const { redis } = session;
  const keys = limiterKeys(address);
  const { params, nowUs } = await readParams(redis, address);
  const second = Math.floor(nowUs / 1_000_000);
  const seconds = Array.from({ length: TRAFFIC_SECONDS }, (_, i) => second - 1 - i);
  const [policy, [lease = null, statusText = null], shares, newest, ...telemetry] =
    await Promise.all([
      readPolicy(redis, address),
      // MGET: a key of another type reads as none.
      redis.mget(keys.lease, keys.status),
      redis.hgetall(keys.inFlight),
      readNewestChange(redis, address),
      ...seconds.map((s) => redis.hgetall(keys.telemetry(s))),
    ]);
  return {
    address,
    params,
    nowMs: nowUs / 1000,
    policy,
    owner: leaseOwner(lease),
    status: parseStatus(statusText),
    traffic: {
      ...sumSeconds(telemetry.map(trafficOfHash), TRAFFIC_SECONDS),
      ...liveProcesses(shares, nowUs),
    },
    newest,
  };
}

/** Without its log a limiter is still to be looked at. */
export async function readNewestChange(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<StoredEntry | null> {
  const newest = await readEntries(redis, address, { limit: 1, kind: 'change' }).catch(() => null);
  return newest?.entries[0] ?? null;
}

/** Of `owner:token`; the token is of no use to a person. */
export function leaseOwner(lease: string | null): string | null {
  return lease === null ? null : lease.replace(/:\d+$/, '');
}

/** What a daemon wrote of its last tick, as far as it is an object at all. */
export function parseStatus(text: string | null): Partial<LimiterStatus> | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Partial<LimiterStatus>) : null;
  } catch {
    return null;
  }
}
