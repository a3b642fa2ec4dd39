/** Takes a canary's limiter off: unregistered at once, and its keys end by themselves. Stage: actuate. */
import { type Canary, canaryName, goesOn, parseCanary } from '../redis/canary.js';
import { fleetKeys, type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from './actuator.js';

/** Takes that are under way still end there, and people may look at it. */
const KEPT_MS = 3_600_000;
/** An exporter whose place is away for the night has it all the same. */
const LOG_KEPT_MS = 24 * KEPT_MS;

export function canaryAddress(address: LimiterAddress): LimiterAddress {
  return { ...address, name: canaryName(address.name) };
}

/** Those that would stay for ever; the others have a life of their own. */
function lastingKeys(address: LimiterAddress): string[] {
  const { params, audit, policy, sources, overrides, retention } = limiterKeys(address);
  return [params, audit, policy, sources, overrides, retention];
}

/**
 * Daemons that have led it leave it with the registry. Nothing is done where a canary goes on: somebody has begun
 * another since. One that is begun just now is taken off all the same, and made anew by who leads its limiter.
 */
export async function retireCanary(redis: RedisClient, of: LimiterAddress): Promise<void> {
  const standing = await redis.hget(limiterKeys(of).params, 'canary');
  if (goesOn(parseCanary(standing))) return;
  const address = canaryAddress(of);
  await redis.hdel(fleetKeys(of.prefix).limiters, address.name);
  const { params, audit, retention, policyVersion } = limiterKeys(address);
  const [hash] = await redis.hmget(params, 'policyHash');
  const version = hash ? [policyVersion(hash)] : [];
  for (const key of [...lastingKeys(address), ...version]) {
    await redis.pexpire(key, key === audit || key === retention ? LOG_KEPT_MS : KEPT_MS);
  }
}

/** What an earlier canary left must not end under this one; its numbers and buckets are of another version. */
export async function clearCanary(redis: RedisClient, of: LimiterAddress): Promise<void> {
  const address = canaryAddress(of);
  const { params, bucket, shadowBucket } = limiterKeys(address);
  for (const key of lastingKeys(address)) if (key !== params) await redis.persist(key);
  for (const key of [params, bucket, shadowBucket]) await redis.del(key);
}

/** What is told of one that goes on when another version takes its place. */
export function endedSentence(canary: Canary): string {
  return ` That ends the canary of policy ${canary.policy.slice(0, 12)}.`;
}
