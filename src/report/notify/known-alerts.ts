/** What has been told already, fleet-wide: a hash in Redis, so that the next leader neither tells it again nor forgets its end. Stage: report. */
import { fleetKeys } from '../../redis/keys.js';
import type { RedisClient } from '../../redis/run-script.js';
import type { Alert } from './alert.js';

export interface KnownAlerts {
  /** True: this one is to be told, by the caller alone. */
  claim(alert: Alert): Promise<boolean>;
  /** What is there is replaced: it is told anyhow. */
  replace(alert: Alert): Promise<void>;
  /** True: it was known, and its end is to be told, by the caller alone. */
  end(key: string): Promise<boolean>;
  /** Of all limiters; what no daemon of today can read is left out. */
  all(): Promise<Alert[]>;
  forget(keys: readonly string[]): Promise<void>;
}

/** Without Redis each daemon knows what it told itself: better twice than never. */
export function createKnownAlerts(redis: RedisClient, prefix: string): KnownAlerts {
  const key = fleetKeys(prefix).alerts;
  /** What could not be put into Redis. */
  const own = new Set<string>();

  async function anyhow<T>(ask: () => Promise<T>, without: () => T): Promise<T> {
    try {
      return await ask();
    } catch {
      return without();
    }
  }

  return {
    claim(alert) {
      return anyhow(
        async () => (await redis.hsetnx(key, alert.key, JSON.stringify(alert))) === 1,
        () => {
          const known = own.has(alert.key);
          own.add(alert.key);
          return !known;
        },
      );
    },
    async replace(alert) {
      await anyhow(
        () => redis.hset(key, alert.key, JSON.stringify(alert)),
        () => 0,
      );
    },
    async end(alertKey) {
      const known = own.delete(alertKey);
      return anyhow(
        async () => (await redis.hdel(key, alertKey)) === 1 || known,
        () => known,
      );
    },
    async all() {
      const texts = await anyhow(
        () => redis.hvals(key),
        () => [],
      );
      return texts.flatMap((text) => read(text) ?? []);
    },
    async forget(keys) {
      if (keys.length > 0) {
        await anyhow(
          () => redis.hdel(key, ...keys),
          () => 0,
        );
      }
    },
  };
}

function read(text: string): Alert | null {
  try {
    const alert = JSON.parse(text) as Partial<Alert>;
    const sound =
      typeof alert.key === 'string' &&
      typeof alert.kind === 'string' &&
      typeof alert.atMs === 'number' &&
      Array.isArray(alert.numbers);
    return sound ? (alert as Alert) : null;
  } catch {
    return null;
  }
}
