/** One place that opens connections to Redis, with limits on every wait. Stage: all that touch Redis. */
import { isIP } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { VERSION } from '../version.js';
import { createCluster } from './cluster.js';
import {
  environmentAuth,
  environmentTls,
  type TlsFiles,
  tlsFault,
  unusedTlsSetting,
} from './credentials.js';
import { embeddedConnector } from './embedded-connector.js';
import { type RedisTarget, type ResolveOptions, resolveRedis } from './locate.js';
import type { RedisClient } from './run-script.js';
import { sentinelOptions } from './sentinel.js';
import { parseRedisUrl, type RedisPlace } from './url.js';

export { type RedisTarget, resolveDataDir, resolveRedis } from './locate.js';
export type { RedisClient } from './run-script.js';

export type ConnectionRole = 'daemon' | 'cli' | 'sdk' | 'demo';

export interface ConnectOptions extends ResolveOptions {
  /** Shown by CLIENT LIST as `flyball-<role>/<version>`. */
  name: ConnectionRole;
  /**
   * For decisions on a request's path: a command fails at once when Redis is away and is never queued. Otherwise
   * it waits for a connection that is being made, and up to 5 s for its reply. No command is ever sent twice.
   */
  hotPath?: boolean | undefined;
  /**
   * Without a URL, look for the embedded Redis of this data folder at each attempt to connect, at most 0.8 s
   * apart, instead of once.
   */
  embeddedIn?: string | undefined;
}

/** Longest wait for the reply to one command of a daemon or CLI. */
const COMMAND_TIMEOUT_MS = 5_000;
/** A server that owes a reply this long is taken for dead, and the connection is made anew. */
const SILENT_AFTER_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** Below one second, so that a Redis that is back is used within a second. */
const MAX_RECONNECT_MS = 800;

/** What goes wrong on the way to a server, besides what its commands answer. */
const FAULTS = ['error', 'node error', 'sentinelError'];

/** A command that was under way when the connection broke is failed, not sent again: it may have taken effect. */
const NEVER_TWICE: RedisOptions = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
};

const HOT_PATH: RedisOptions = {
  ...NEVER_TWICE,
  enableOfflineQueue: false,
  // The ready check is an INFO before the first command; a server that still loads answers LOADING, which is enough.
  enableReadyCheck: false,
  socketTimeout: SILENT_AFTER_MS,
  // A connection that never came about would keep a service that has closed its limiters alive for 2 s.
  disconnectTimeout: 200,
};

const PATIENT: RedisOptions = {
  ...NEVER_TWICE,
  commandTimeout: COMMAND_TIMEOUT_MS,
  // A server that was cut off without a word keeps its connection for a quarter of an hour else.
  socketTimeout: COMMAND_TIMEOUT_MS + 1_000,
};

/**
 * A connection that is being opened: to one server, to the master that Sentinel names, or to a Cluster. It reconnects
 * by itself until `quit` or `disconnect`. Throws only for a setting that cannot be used.
 */
export function connect(options: ConnectOptions): RedisClient {
  const redis = open(options);
  if (redis instanceof Redis) redis.on('error', (error) => leaveWrongDatabase(redis, error));
  // First of all other listeners, since the error of a failed handshake carries its arguments, the password among them.
  for (const event of FAULTS) redis.on(event, forgetCommand);
  return redis;
}

/** Where SELECT is refused ioredis goes on in database 0, with the keys of others: nothing may be sent there. */
function leaveWrongDatabase(redis: Redis, error: Error & { command?: { name?: string } }): void {
  if (error.command?.name !== 'select') return;
  // Nor is it ready for the moment until it has closed.
  redis.status = 'close';
  redis.disconnect(true);
}

function forgetCommand(error: Error & { command?: unknown; lastNodeError?: Error }): void {
  if (error.command) Object.defineProperty(error, 'command', { value: undefined });
  if (error.lastNodeError) forgetCommand(error.lastNodeError);
}

function open(options: ConnectOptions): RedisClient {
  const common: RedisOptions = {
    ...(options.hotPath ? HOT_PATH : PATIENT),
    connectionName: `flyball-${options.name}/${VERSION}`,
    // CLIENT SETINFO would need one more right in the ACL, and tells nothing that the name does not.
    disableClientInfo: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // A demoted master answers READONLY for ever on the old connection: make a new one.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  };
  if (options.embeddedIn !== undefined) {
    const Connector = embeddedConnector(options.embeddedIn);
    return new Redis({ ...common, Connector, retryStrategy: retryMs });
  }
  const env = options.env ?? process.env;
  const target = resolveRedis(options);
  const place = parseRedisUrl(target.url);
  const { username, password, db } = place;
  const server: RedisOptions = {
    ...common,
    ...(password || target.source === 'embedded' ? {} : environmentAuth(env)),
    ...(username && { username }),
    ...(password && { password }),
    ...(place.kind === 'cluster' ? {} : { db }),
  };
  const tls = tlsOf(place, target, env);
  if (place.kind === 'cluster') {
    return createCluster({
      nodes: place.nodes,
      node: tls === undefined ? server : { ...server, tls },
      retryMs,
      commandTimeoutMs: options.hotPath ? undefined : COMMAND_TIMEOUT_MS,
    });
  }
  if (place.kind === 'sentinel') {
    return new Redis({
      ...server,
      retryStrategy: retryMs,
      ...sentinelOptions(place, tls, env, retryMs),
    });
  }
  const { host, port, path } = place;
  const at = path === undefined ? { host, port } : { path };
  return new Redis({
    ...server,
    ...at,
    retryStrategy: retryMs,
    ...(tls && { tls }),
  } as RedisOptions);
}

function retryMs(attempt: number): number {
  return Math.min(50 * attempt, MAX_RECONNECT_MS);
}

function tlsOf(
  place: RedisPlace,
  target: RedisTarget,
  env: NodeJS.ProcessEnv,
): TlsFiles | undefined {
  if (!place.tls) {
    const unused = target.source === 'environment' ? unusedTlsSetting(env) : undefined;
    if (unused === undefined) return undefined;
    throw tlsFault(
      `${unused} is set, but FLYBALL_REDIS_URL is ${redactUrl(target.url)}, which is not encrypted. Begin the URL with rediss, or unset ${unused}.`,
    );
  }
  const host = place.kind === 'single' ? place.host : undefined;
  // An address is no name: it is checked against the certificate, and not sent as one.
  const servername = host !== undefined && isIP(host) === 0 ? { servername: host } : {};
  return { ...servername, ...environmentTls(env) };
}

/**
 * Wait until Redis answers, at most `deadlineMs`; the error names the address and the last fault seen. A wrong
 * password, a missing right or a wrong certificate is said at once: waiting does not mend it.
 */
export async function awaitRedis(
  redis: RedisClient,
  options: { url: string; deadlineMs: number },
): Promise<void> {
  let fault = 'no answer';
  const seen = ({ message }: Error) => {
    // What each Sentinel said tells more than that none could be used.
    if (message.startsWith('All sentinels are unreachable') && fault !== 'no answer') return;
    fault = /invalid reply: null|No such master/.test(message)
      ? 'Sentinel knows no master of that name'
      : message;
  };
  for (const event of FAULTS) redis.on(event, seen);
  const giveUpAt = performance.now() + options.deadlineMs;
  try {
    for (;;) {
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0) break;
      let timer: NodeJS.Timeout | undefined;
      const outcome = await Promise.race([
        redis.ping().then(
          () => 'ok' as const,
          (error: Error) => error,
        ),
        new Promise<void>((ok) => {
          timer = setTimeout(ok, leftMs);
        }),
      ]);
      // Left alone it would keep the process alive for the rest of the wait.
      clearTimeout(timer);
      if (outcome === 'ok') return;
      if (
        outcome instanceof Error &&
        !/max retries|timed out|isn't writeable/.test(outcome.message)
      ) {
        fault = outcome.message;
      }
      if (/WRONGPASS|NOAUTH|NOPERM|DB index|certificate/.test(fault)) break;
      await pause(Math.min(100, Math.max(0, giveUpAt - performance.now())));
    }
  } finally {
    for (const event of FAULTS) redis.off(event, seen);
  }
  throw new FlyballError(
    'FLYBALL_E_REDIS_UNREACHABLE',
    `Redis at ${redactUrl(options.url)} cannot be used: ${fault.replace(/\.$/, '')}. Waited at most ${options.deadlineMs} ms. Check ${whatToCheck(fault)}.`,
  );
}

function whatToCheck(fault: string): string {
  if (/certificate/.test(fault)) {
    return 'FLYBALL_REDIS_TLS_CA, FLYBALL_REDIS_TLS_CERT and FLYBALL_REDIS_TLS_SERVERNAME';
  }
  if (fault.includes('of that name')) return 'the name at the end of the URL';
  if (/sentinel.*(WRONGPASS|NOAUTH)/.test(fault)) return 'FLYBALL_REDIS_SENTINEL_PASSWORD';
  if (/DB index|'select'/.test(fault)) {
    return 'the database number at the end of the URL, and that this user may SELECT';
  }
  return 'the address, the password and that it is running';
}

function pause(ms: number): Promise<void> {
  return new Promise((ok) => setTimeout(ok, ms));
}
