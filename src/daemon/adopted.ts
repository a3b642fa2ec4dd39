/** The adopted policy as Redis holds it: daemons act on this, not on their files. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { LoadedPolicy } from '../actuate/adopt.js';
import { FlyballError } from '../errors.js';
import { policySchema } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';

/** The policy of that hash, or null when it is not stored. One that this version cannot read is an error. */
export async function readAdopted(
  redis: RedisClient,
  address: LimiterAddress,
  hash: string,
): Promise<LoadedPolicy | null> {
  const keys = limiterKeys(address);
  const json = (await redis.get(keys.policyVersion(hash))) ?? (await redis.get(keys.policy));
  if (json === null) return null;
  const parsed = policySchema.safeParse(JSON.parse(json));
  if (!parsed.success) {
    throw new FlyballError(
      'FLYBALL_E_POLICY_UNREADABLE',
      `the adopted policy of ${address.name} cannot be read by this version (${parsed.error.issues[0]?.path.join('.')}: ${parsed.error.issues[0]?.message}). Run the version that adopted it, or adopt a policy again.`,
    );
  }
  return { file: 'adopted', policy: parsed.data, hash, json };
}
