/** The adopted policy as Redis holds it, and earlier versions: daemons act on this, not on their files. Stage: actuate, daemon. */
import { FlyballError } from '../errors.js';
import { textHash } from '../policy/hash.js';
import type { LoadedPolicy } from '../policy/load.js';
import { policySchema } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from './actuator.js';

/**
 * The policy of that hash, or null when it is not stored whole: a text that is another policy's, or was changed,
 * does not count. One that this version cannot read is an error.
 */
export async function readAdopted(
  redis: RedisClient,
  address: LimiterAddress,
  hash: string,
): Promise<LoadedPolicy | null> {
  const keys = limiterKeys(address);
  // A key of another type reads as none.
  const texts = await redis.mget(keys.policyVersion(hash), keys.policy);
  const json = texts.find((text) => text !== null && textHash(text) === hash);
  if (json === undefined || json === null) return null;
  const parsed = policySchema.safeParse(JSON.parse(json));
  if (!parsed.success) {
    throw new FlyballError(
      'FLYBALL_E_POLICY_UNREADABLE',
      `the adopted policy of ${address.name} cannot be read by this version (${parsed.error.issues[0]?.path.join('.')}: ${parsed.error.issues[0]?.message}). Run the version that adopted it, or adopt a policy again.`,
    );
  }
  return { file: 'adopted', policy: parsed.data, hash, json };
}
