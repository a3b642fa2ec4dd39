/** Which limiters this Redis knows. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { fleetKeys, type LimiterAddress, NAME_PATTERN } from '../redis/keys.js';

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
