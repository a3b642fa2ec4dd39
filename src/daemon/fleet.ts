/** Which limiters this Redis knows, and which daemons live: the two registries. Stage: daemon. */
import { hostname } from 'node:os';
import type { RedisClient } from '../actuate/actuator.js';
import { fleetKeys, type LimiterAddress, NAME_PATTERN } from '../redis/keys.js';

/** What `flyball:daemons` holds of each daemon, under its owner id. */
export interface DaemonRecord {
  name: string;
  host: string;
  pid: number;
  /** Where its metrics are. */
  http: string;
  atMs: number;
  /** Limiters it holds the lease of. */
  leads: string[];
  policyFaults: number;
}

/** A daemon that was not heard of for this long is dropped from the registry. */
const FORGET_AFTER_MS = 60_000;

/**
 * Every registered limiter: also those whose policy files lie with another daemon, or nowhere any more. Names that
 * no Flyball could have written are left out: one bad field must not take the others' daemon away.
 */
export async function registeredLimiters(
  redis: RedisClient,
  prefix: string,
): Promise<LimiterAddress[]> {
  const registry = await redis.hgetall(fleetKeys(prefix).limiters);
  return Object.entries(registry)
    .filter(([name, group]) => [name, group || 'none'].every((part) => NAME_PATTERN.test(part)))
    .map(([name, group]) => ({ name, group: group === '' ? undefined : group, prefix }));
}

/** Writes this daemon's record and drops those of daemons long silent. */
export async function announce(
  redis: RedisClient,
  prefix: string,
  owner: string,
  record: Omit<DaemonRecord, 'host' | 'pid'>,
): Promise<void> {
  const key = fleetKeys(prefix).daemons;
  const whole: DaemonRecord = { ...record, host: hostname(), pid: process.pid };
  await redis.hset(key, owner, JSON.stringify(whole));
  for (const [other, text] of Object.entries(await redis.hgetall(key))) {
    if (other !== owner && isSilent(text, record.atMs)) await redis.hdel(key, other);
  }
}

export async function withdraw(redis: RedisClient, prefix: string, owner: string): Promise<void> {
  await redis.hdel(fleetKeys(prefix).daemons, owner);
}

function isSilent(text: string, nowMs: number): boolean {
  try {
    return !(nowMs - (JSON.parse(text) as DaemonRecord).atMs <= FORGET_AFTER_MS);
  } catch {
    return true;
  }
}
