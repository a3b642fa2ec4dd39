/** Logs of canaries that are over: the registry knows them no more, and each is there for a day. Stage: audit. */
import { canaryAddress } from '../actuate/canary-end.js';
import { isCanaryName, mayHaveCanary } from '../redis/canary.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';

/** These, and the canaries of theirs that are over: one may end between two rounds of an exporter. */
export async function withRetired(
  redis: RedisClient,
  registered: readonly LimiterAddress[],
): Promise<LimiterAddress[]> {
  const names = new Set(registered.map(({ name }) => name));
  const over = registered
    .filter(({ name }) => !isCanaryName(name) && mayHaveCanary(name))
    .map(canaryAddress)
    .filter(({ name }) => !names.has(name));
  const there = await Promise.all(over.map((each) => redis.exists(limiterKeys(each).audit)));
  return [...registered, ...over.filter((_, i) => there[i] === 1)];
}
