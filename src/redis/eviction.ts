/** What a server would throw away when its memory is full, by its maxmemory-policy. Pure. Stage: daemon, cli. */

/** `all`: params, audit log and policies too; `buckets`: what a subject has used, so that it has a full bucket again. */
export type EvictionRisk = 'all' | 'buckets' | 'none';

/**
 * Params have no TTL, so only `allkeys-*` reaches them. `volatile-ttl` takes the keys first that would soon be full
 * buckets anyway; the other `volatile-*` take any.
 */
export function evictionRisk(policy: string): EvictionRisk {
  if (policy.startsWith('allkeys')) return 'all';
  return policy.startsWith('volatile') && policy !== 'volatile-ttl' ? 'buckets' : 'none';
}

export const EVICTS: Record<Exclude<EvictionRisk, 'none'>, string> = {
  all: 'params, the audit log and policies',
  buckets: 'buckets, which then count as full, leases and telemetry',
};

export const EVICTION_MEND = 'Set maxmemory-policy to noeviction or volatile-ttl.';

/** One field of the text that INFO answers with. */
export function infoField(text: string, field: string): string | undefined {
  return new RegExp(`^${field}:([^\\r\\n]*)`, 'm').exec(text)?.[1];
}
