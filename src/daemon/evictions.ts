/** Tells when a server may throw keys away, and when it has: each is a limit that was forgotten. Stage: daemon. */
import type { Logger } from '../log.js';
import { EVICTION_MEND, EVICTS, evictionRisk, infoField } from '../redis/eviction.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { isCluster, masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import { slotOf } from '../redis/slot.js';

const EVERY_MS = 10_000;
/** So many looks without a key thrown away end an episode: ten minutes. */
const QUIET_LOOKS = 60;

/** A server throws keys away, since a while. */
export interface Eviction {
  /** Another number for each growth that begins after a quiet time. */
  episode: number;
  address: string;
  /** Keys that the server had evicted before it began, and has by now, as it counts them. */
  before: number;
  now: number;
  /** Its maxmemory-policy. */
  policy: string;
}

export interface EvictionWatch {
  /** What the server of this limiter has thrown away of late; null: nothing. */
  of(address: LimiterAddress): Eviction | null;
  close(): void;
}

interface Server {
  runId: string;
  /** As last read. */
  evicted: number;
  eviction: Eviction | null;
  quietLooks: number;
}

/** The policy is told at the start, and evictions whenever there were new ones; `onEvicted` with how many. */
export async function watchEvictions(
  redis: RedisClient,
  log: Logger,
  onEvicted: (keys: number, eviction: Eviction) => void = () => {},
  everyMs = EVERY_MS,
): Promise<EvictionWatch> {
  const servers = new Map<string, Server>();
  let episodes = 0;

  function grown(server: Server, address: string, now: number, policy: string): void {
    const keys = now - server.evicted;
    const { episode, before } = server.eviction ?? {
      episode: ++episodes,
      before: server.evicted,
    };
    server.eviction = { episode, address, before, now, policy };
    onEvicted(keys, server.eviction);
    log.warn(
      { event: 'redis_evicted', address, keys },
      `Redis at ${address} has evicted ${keys} keys: its memory is full, and limits may have been forgotten. Give it more, or another server to Flyball.`,
    );
  }

  async function look(first: boolean): Promise<void> {
    for (const client of masters(redis)) {
      const { host = '', port = '', path } = client.options;
      const address = path ?? `${host}:${port}`;
      const info = await client.info('server', 'memory', 'stats').catch(() => '');
      const policy = infoField(info, 'maxmemory_policy') ?? '';
      if (first) warnOfPolicy(policy, address, log);
      const runId = infoField(info, 'run_id') ?? '';
      const evicted = Number(infoField(info, 'evicted_keys') ?? Number.NaN);
      if (Number.isNaN(evicted)) continue;
      const known = servers.get(address);
      // One that was started again, or another in its place, counts anew.
      if (known?.runId !== runId || evicted < known.evicted) {
        servers.set(address, { runId, evicted, eviction: null, quietLooks: 0 });
        continue;
      }
      known.quietLooks = evicted > known.evicted ? 0 : known.quietLooks + 1;
      if (evicted > known.evicted) grown(known, address, evicted, policy);
      else if (known.quietLooks >= QUIET_LOOKS) known.eviction = null;
      known.evicted = evicted;
    }
  }
  await look(true);
  const timer = setInterval(() => void look(false), everyMs);
  timer.unref();
  return {
    of(address) {
      if (!isCluster(redis)) return [...servers.values()][0]?.eviction ?? null;
      // The client's own map: it is what commands go by.
      const [master = ''] = redis.slots[slotOf(limiterKeys(address).params)] ?? [];
      return servers.get(master)?.eviction ?? null;
    },
    close: () => clearInterval(timer),
  };
}

function warnOfPolicy(policy: string, address: string, log: Logger): void {
  const risk = evictionRisk(policy);
  if (risk === 'none') return;
  log.warn(
    { event: 'redis_eviction', policy, address },
    `Redis evicts by ${policy}: ${EVICTS[risk]} can be thrown away when memory is short. ${EVICTION_MEND}`,
  );
}
