/** An entry in a limiter's audit log when its Redis throws keys away: who asks later why a limit was forgotten finds it. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { readEntries } from '../actuate/audit.js';
import { EVICTION_MEND, EVICTS, evictionRisk } from '../redis/eviction.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import type { Eviction, EvictionWatch } from './evictions.js';
import type { createWriter } from './writer.js';

const REDIS_EVICTED = 'redis_evicted';
const HOUR_MS = 3_600_000;
/** What could not be read or written is tried again after so long. */
const RETRY_MS = 60_000;

export interface EvictionNote {
  /** At each turn of the leader; writes once an episode, and never twice within an hour, whoever led in it. */
  act(params: Params, nowMs: number): Promise<void>;
}

export function createEvictionNote(of: {
  redis: RedisClient;
  address: LimiterAddress;
  evictions: Pick<EvictionWatch, 'of'>;
  writer: Pick<ReturnType<typeof createWriter>, 'note'>;
}): EvictionNote {
  const { redis, address, evictions, writer } = of;
  let told = 0;
  let retryAtMs = 0;
  return {
    async act(params, nowMs) {
      const eviction = evictions.of(address);
      if (eviction === null || eviction.episode === told || nowMs < retryAtMs) return;
      retryAtMs = nowMs + RETRY_MS;
      // The log itself remembers: a daemon that takes over must not tell it again.
      const { entries } = await readEntries(redis, address, {
        ...{ kind: 'note', reason: REDIS_EVICTED, sinceMs: nowMs - HOUR_MS, limit: 1 },
      });
      if (entries.length === 0 && !(await writer.note(params, noteOf(eviction)))) return;
      told = eviction.episode;
      retryAtMs = 0;
    },
  };
}

function noteOf({ address, before, now, policy }: Eviction) {
  const risk = evictionRisk(policy);
  const gone = risk === 'none' ? 'what had a TTL' : EVICTS[risk];
  const mend = risk === 'none' ? '' : ` ${EVICTION_MEND}`;
  return {
    reason: REDIS_EVICTED,
    sentence: `Redis at ${address} threw ${now - before} keys away because its memory is full (evicted keys ${before} → ${now}, maxmemory-policy ${policy}): ${gone} may be among them, and a forgotten bucket is a full one. Give it more memory, or Flyball a server of its own.${mend}`,
    detail: { address, evictedBefore: before, evictedNow: now, maxmemoryPolicy: policy },
  };
}
