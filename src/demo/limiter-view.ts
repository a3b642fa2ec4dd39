/** The demo's eye on the limiter: what is in force now, its audit entries, and whether they verify. Stage: demo. */
import { readParams } from '../actuate/actuator.js';
import { readEntries, type StoredEntry, type VerifyReport, verifyAudit } from '../actuate/audit.js';
import { FlyballError } from '../errors.js';
import { effective } from '../redis/effective.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import type { LimiterView } from './play.js';

export const LIMITER = 'checkout';
const ADOPT_DEADLINE_MS = 20_000;

export async function readLimiter(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<LimiterView | null> {
  const { params, nowUs } = await readParams(redis, address);
  if (params === null) return null;
  const { state, rate, inFlightMax } = effective(params, nowUs / 1000);
  return { state, rate, inFlightMax, revision: params.revision };
}

/** Resolves when a daemon has adopted the policy. */
export async function awaitAdopted(redis: RedisClient, address: LimiterAddress): Promise<void> {
  const giveUpAt = performance.now() + ADOPT_DEADLINE_MS;
  while ((await readLimiter(redis, address)) === null) {
    if (performance.now() > giveUpAt) {
      throw new FlyballError(
        'FLYBALL_E_DEMO_ADOPT',
        `no daemon adopted the policy of ${address.name} within ${ADOPT_DEADLINE_MS / 1000} s. Read the daemons' logs in the demo's data folder.`,
      );
    }
    await new Promise((ok) => setTimeout(ok, 100));
  }
}

/** All changes, oldest first, and the proof of the whole log. */
export async function readAudit(
  redis: RedisClient,
  address: LimiterAddress,
): Promise<{ changes: StoredEntry[]; verify: VerifyReport }> {
  const { entries } = await readEntries(redis, address, { kind: 'change', limit: 10_000 });
  const verify = await verifyAudit(redis, address, {
    ...(entries[0] ? { anchor: entries[0].hash } : {}),
  });
  return { changes: entries.reverse(), verify };
}

/** On a Redis that is not the demo's own, an earlier demo may have left its limiter behind. */
export async function forgetLimiter(redis: RedisClient, address: LimiterAddress): Promise<void> {
  const k = limiterKeys(address);
  await redis.del(k.params, k.bucket, k.inFlight, k.audit, k.lease, k.state, k.status, k.policy);
}
