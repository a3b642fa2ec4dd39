/** The limiter that a canary runs on: made anew for each, and known by the epoch of its params. Stage: actuate. */
import { canaryPolicy } from '../policy/canary-policy.js';
import { policyHash, policyJson } from '../policy/hash.js';
import type { Canary } from '../redis/canary.js';
import { effective, settled } from '../redis/effective.js';
import { fleetKeys, type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import type { RedisClient } from './actuator.js';
import { adopt, type LoadedPolicy, policyAddress } from './adopt.js';
import type { AdoptOptions, AdoptOutcome } from './adopt-types.js';
import { canaryAddress, clearCanary } from './canary-end.js';

/** A daemon that led the canary before, or somebody else's beginning, may make its params in between. */
const ATTEMPTS = 5;

/**
 * The part of the version for so many percent, on params that nobody else has made: their epoch is this canary's alone.
 * In `auto` it begins at its part of what is in force, not of the policy's numbers.
 */
export async function makeCanaryLimiter(
  redis: RedisClient,
  loaded: LoadedPolicy,
  percent: number,
  of: { params: Params; nowUs: number },
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const address = policyAddress(loaded.policy, options.prefix);
  const policy = canaryPolicy(loaded.policy, percent);
  const json = policyJson(policy);
  const part = { file: loaded.file, policy, hash: policyHash(policy), json };
  const { rate, inFlightMax } = settled(of.params, effective(of.params, of.nowUs / 1000));
  const share = percent / 100;
  const cap = inFlightMax === 0 ? 0 : Math.max(1, Math.round(inFlightMax * share));
  const { actor, why, leaseMs, nowMs, prefix } = options;
  const given: AdoptOptions = {
    ...{ actor, why, leaseMs, nowMs, prefix },
    moved: (there) => (there === null ? null : `${policy.limiter.name} was made by somebody else`),
    begins: { rate: rate * share, inFlightMax: cap },
  };
  for (let attempt = 1; ; attempt++) {
    await clearCanary(redis, address);
    const outcome = await adopt(redis, part, given);
    if (outcome.status !== 'refused' || attempt === ATTEMPTS) return outcome;
    if (outcome.reason !== 'moved' && outcome.reason !== 'write') return outcome;
  }
}

/**
 * Is it still what was made for this canary? Else what it has seen proves nothing of it: somebody began another at the
 * same moment, took it off, or Redis lost it. `tripped`: its breaker has opened since.
 */
export async function lookAtCanaryLimiter(
  redis: RedisClient,
  of: LimiterAddress,
  canary: Canary,
): Promise<{ whole: boolean; tripped: boolean }> {
  const address = canaryAddress(of);
  const { params } = limiterKeys(address);
  const [[epoch, generation], registered, ttlMs] = await Promise.all([
    redis.hmget(params, 'epoch', 'generation'),
    redis.hexists(fleetKeys(of.prefix).limiters, address.name),
    redis.pttl(params),
  ]);
  const whole = Number(epoch) === canary.epoch && registered === 1 && ttlMs === -1;
  return { whole, tripped: Number(generation ?? 0) > 0 };
}
