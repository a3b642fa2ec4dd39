/** Tells when a server may throw keys away, and when it has: each is a limit that was forgotten. Stage: daemon. */
import type { Logger } from '../log.js';
import { EVICTION_MEND, EVICTS, evictionRisk, infoField } from '../redis/eviction.js';
import { masters } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';

const EVERY_MS = 10_000;

/**
 * The policy is told at the start, and evictions whenever there were new ones.
 * @returns ends the watch
 */
export async function watchEvictions(
  redis: RedisClient,
  log: Logger,
  onEvicted: (keys: number, address: string) => void = () => {},
  everyMs = EVERY_MS,
): Promise<() => void> {
  const evicted = new Map<string, number>();
  async function look(first: boolean): Promise<void> {
    for (const server of masters(redis)) {
      const { host = '', port = '', path } = server.options;
      const address = path ?? `${host}:${port}`;
      const info = await server.info('memory', 'stats').catch(() => '');
      if (first) warnOfPolicy(infoField(info, 'maxmemory_policy') ?? '', address, log);
      const keys = Number(infoField(info, 'evicted_keys') ?? Number.NaN);
      const before = evicted.get(address);
      if (before !== undefined && keys > before) {
        onEvicted(keys - before, address);
        log.warn(
          { event: 'redis_evicted', address, keys: keys - before },
          `Redis at ${address} has evicted ${keys - before} keys: its memory is full, and limits may have been forgotten. Give it more, or another server to Flyball.`,
        );
      }
      if (!Number.isNaN(keys)) evicted.set(address, keys);
    }
  }
  await look(true);
  const timer = setInterval(() => void look(false), everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

function warnOfPolicy(policy: string, address: string, log: Logger): void {
  const risk = evictionRisk(policy);
  if (risk === 'none') return;
  log.warn(
    { event: 'redis_eviction', policy, address },
    `Redis evicts by ${policy}: ${EVICTS[risk]} can be thrown away when memory is short. ${EVICTION_MEND}`,
  );
}
