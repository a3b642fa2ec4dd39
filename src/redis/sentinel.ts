/** Options of a client that follows the master which Sentinel names, through a failover too. Stage: all that touch Redis. */
import type { RedisOptions } from 'ioredis';
import { type Login, sentinelAuth, type TlsFiles } from './credentials.js';
import type { RedisPlace } from './url.js';

const SENTINEL_TIMEOUT_MS = 2_000;

/**
 * A master that dies closes its connections, one that is demoted answers READONLY, one that hangs is silent: each
 * leads to a new connection, which asks Sentinel. ioredis's `failoverDetector` would be a little quicker with the
 * last, but word of a failover that comes while the client asks already ends that client for good.
 */
export function sentinelOptions(
  place: RedisPlace & { kind: 'sentinel' },
  tls: TlsFiles | undefined,
  env: NodeJS.ProcessEnv,
  retryMs: (attempt: number) => number,
): RedisOptions {
  const { username, password }: Login = sentinelAuth(env);
  return {
    sentinels: place.sentinels,
    name: place.master,
    ...(username && { sentinelUsername: username }),
    ...(password && { sentinelPassword: password }),
    sentinelRetryStrategy: retryMs,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    ...(tls && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}
