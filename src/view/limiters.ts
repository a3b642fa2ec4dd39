/** The limiters that a Redis knows, and one of them by its name with did-you-mean. Stage: cli, api. */
import { closest, third } from '../closest.js';
import { FlyballError } from '../errors.js';
import {
  assertName,
  fleetKeys,
  type LimiterAddress,
  limiterKeys,
  NAME_PATTERN,
} from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { clean } from './text.js';

/** Where limiters are looked for. */
export interface Session {
  redis: RedisClient;
  /** Without its password. */
  url: string;
  prefix: string | undefined;
}

/**
 * All limiters the registry knows, by name. A group of `''` is none. Names that no Flyball could have written
 * are left out: one bad field must not take `status` away from the others.
 */
export async function listLimiters(session: Session): Promise<LimiterAddress[]> {
  const registry = await session.redis.hgetall(fleetKeys(session.prefix).limiters);
  return Object.entries(registry)
    .filter(
      ([name, group]) => NAME_PATTERN.test(name) && (group === '' || NAME_PATTERN.test(group)),
    )
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, group]) => address(session, name, group));
}

/** The limiter of that name; an unknown one is an error that names the closest and the rest. */
export async function findLimiter(session: Session, name: string): Promise<LimiterAddress> {
  assertName('limiter', name);
  const group = await session.redis.hget(fleetKeys(session.prefix).limiters, name);
  if (group !== null) return address(session, name, group);
  // The registry may have been lost alone; params under the plain name are proof enough.
  const plain = address(session, name, '');
  if ((await session.redis.exists(limiterKeys(plain).params)) === 1) return plain;
  const known = (await listLimiters(session)).map((limiter) => limiter.name);
  throw new FlyballError('FLYBALL_E_CLI_UNKNOWN_LIMITER', unknown(session, name, known));
}

function unknown(session: Session, name: string, known: readonly string[]): string {
  const near = closest(name, known, () => third(name.length, 2))?.name;
  const where = `in Redis at ${session.url}${session.prefix ? ` under prefix ${session.prefix}` : ''}`;
  const mean = near ? ` Did you mean ${clean(near)}?` : '';
  const shown = known.slice(0, 10).map(clean).join(', ');
  const list =
    known.length === 0
      ? ' No limiter is known there: `flyball run` adopts policies and registers them.'
      : ` Known: ${shown}${known.length > 10 ? ` and ${known.length - 10} more (flyball status)` : ''}.`;
  return `no limiter ${JSON.stringify(name)} ${where}.${mean}${list}`;
}

function address(session: Session, name: string, group: string | undefined): LimiterAddress {
  return { name, group: group || undefined, prefix: session.prefix };
}
