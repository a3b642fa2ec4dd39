/** Where this limiter's keys lie: the registry in Redis names its group, the caller's group is second best. Stage: enforce. */
import { fleetKeys, type LimiterKeys, limiterKeys, NAME_PATTERN } from '../redis/keys.js';
import type { RedisClient, ResolvedOptions } from './options.js';

export interface KeyFinder {
  /** null until the registry has been asked once. */
  readonly keys: LimiterKeys | null;
  /** Ask the registry again; keeps what is known when it does not answer. */
  find(): Promise<LimiterKeys>;
}

export function createKeyFinder(redis: RedisClient, options: ResolvedOptions): KeyFinder {
  const { name, prefix } = options;
  let keys: LimiterKeys | null = null;
  let group: string | undefined;
  let asking: Promise<LimiterKeys> | null = null;

  async function ask(): Promise<LimiterKeys> {
    const registered = await redis
      .hget(fleetKeys(prefix).limiters, name)
      // A user without this right still finds its limiter by the group it was given.
      .catch((error: Error) => {
        if (error.message.startsWith('NOPERM')) return null;
        throw error;
      });
    // A registry that was flushed knows nobody: what it said before still holds.
    const found = registered === null ? (group ?? options.group) : groupOf(registered);
    if (keys === null || found !== group) keys = limiterKeys({ name, group: found, prefix });
    group = found;
    return keys;
  }

  return {
    get keys() {
      return keys;
    },
    find() {
      asking ??= ask().finally(() => {
        asking = null;
      });
      return asking;
    },
  };
}

function groupOf(registered: string): string | undefined {
  return NAME_PATTERN.test(registered) ? registered : undefined;
}
