/** Policies in memory, as loading a file would give them; adopted by a person or a daemon. */
import type { Redis } from 'ioredis';
import { type AdoptOutcome, adopt, type LoadedPolicy } from '../../src/actuate/adopt.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';

/** 100/s within 20 … 400, cap 24 within 2 … 64; mode recommend unless `more` says otherwise. */
export function loadedPolicy(more: Partial<PolicyInput> = {}, file = 'checkout.ts'): LoadedPolicy {
  const policy = policySchema.parse({
    limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 24 },
    bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
    ...more,
  });
  const text = `// ${file}\nexport default ${JSON.stringify(more)};\n`;
  return { file, policy, hash: policyHash(policy), json: policyJson(policy), text };
}

export async function adoptBy(
  redis: Redis,
  kind: 'autopilot' | 'person',
  loaded: LoadedPolicy,
): Promise<AdoptOutcome> {
  const outcome = await adopt(redis, loaded, {
    actor: { kind, name: kind === 'person' ? 'kim@host (unverified)' : 'd1' },
    leaseMs: 60_000,
    nowMs: Date.now(),
  });
  if (outcome.status === 'refused') throw new Error(outcome.sentence);
  return outcome;
}
