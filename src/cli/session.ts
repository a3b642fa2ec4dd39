/** One command's connection to Redis: found, checked within a deadline, closed at the end. Stage: cli. */
import { redactUrl } from '../log.js';
import { awaitRedis, connect, resolveRedis } from '../redis/connect.js';
import { PREFIX_PATTERN, resolvePrefix } from '../redis/locate.js';
import type { Session } from '../view/limiters.js';
import { type CliIo, UsageError } from './output.js';

export { findLimiter, listLimiters, type Session } from '../view/limiters.js';

/** A person at a terminal waits this long for Redis before they are told. */
const CONNECT_DEADLINE_MS = 5000;

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
