/** One command's connection to Redis: found, checked within a deadline, closed at the end; limiter names resolved with did-you-mean. Stage: cli. */
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { awaitRedis, connect, type RedisClient, resolveRedis } from '../redis/connect.js';
import {
  assertName,
  fleetKeys,
  type LimiterAddress,
  limiterKeys,
  NAME_PATTERN,
} from '../redis/keys.js';
import { PREFIX_PATTERN, resolvePrefix } from '../redis/locate.js';
import { type CliIo, UsageError } from './output.js';
import { clean, closest } from './text.js';

/** A person at a terminal waits this long for Redis before they are told. */
const CONNECT_DEADLINE_MS = 5000;

/** As the daemon takes it: a brace in it would move keys to other cluster slots. */

export interface Session {
  redis: RedisClient;
  /** Without its password. */
  url: string;
  prefix: string | undefined;
}

/** Where Redis is, for the person; the flag, else the environment, else the data folder. */
export function cliRedis(io: CliIo): { url: string; source: string; prefix: string | undefined } {
  const { url, source } = resolveRedis({ url: io.globals.redis, env: io.env });
  const prefix = resolvePrefix(io.globals.prefix, io.env);
  if (prefix !== undefined && !PREFIX_PATTERN.test(prefix)) {
    throw new UsageError(
      `the key prefix is ${JSON.stringify(prefix)}.`,
      "Use 1 to 64 letters, digits, '.', '_', '-'.",
    );
  }
  return { url, source, prefix };
}

/** Runs `work` with a live connection and closes it whatever happens. */
export async function withRedis<T>(io: CliIo, work: (session: Session) => Promise<T>): Promise<T> {
  const { url, prefix } = cliRedis(io);
  const redis = connect({ url, name: 'cli', env: io.env });
  // Faults reach the person by the command that failed; without a listener ioredis would print them too.
  redis.on('error', () => {});
  try {
    await awaitRedis(redis, { url, deadlineMs: CONNECT_DEADLINE_MS });
    return await work({ redis, url: redactUrl(url), prefix });
  } finally {
    redis.disconnect();
  }
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
  const near = closest(name, known);
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
