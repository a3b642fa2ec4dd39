/** One place that opens connections to Redis, with limits on every wait. Stage: all that touch Redis. */
import { Redis, type RedisOptions } from 'ioredis';
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';
import { VERSION } from '../version.js';
import { embeddedConnector } from './embedded-connector.js';
import { environmentAuth, parseRedisUrl, type ResolveOptions, resolveRedis } from './locate.js';

export { type RedisTarget, resolveDataDir, resolveRedis } from './locate.js';

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
};

const PATIENT: RedisOptions = {
  ...NEVER_TWICE,
  commandTimeout: COMMAND_TIMEOUT_MS,
};

/** A connection that is being opened; it never throws, and reconnects by itself until `quit` or `disconnect`. */
export function connect(options: ConnectOptions): Redis {
  const redis = new Redis({
    ...(options.embeddedIn === undefined
      ? placeOf(options)
      : { Connector: embeddedConnector(options.embeddedIn) }),
    ...(options.hotPath ? HOT_PATH : PATIENT),
    connectionName: `flyball-${options.name}/${VERSION}`,
    // CLIENT SETINFO would need one more right in the ACL, and tells nothing that the name does not.
    disableClientInfo: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, MAX_RECONNECT_MS),
    // A demoted master answers READONLY for ever on the old connection: make a new one.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  });
  // First of all listeners, since the error of a failed handshake carries its arguments, the password among them.
  redis.on('error', (error: Error & { command?: unknown }) => {
    if (error.command) Object.defineProperty(error, 'command', { value: undefined });
  });
  return redis;
}

function placeOf(options: ConnectOptions): RedisOptions {
  const target = resolveRedis(options);
  const place = parseRedisUrl(target.url);
  if (place.password || target.source === 'embedded') return place;
  return { ...environmentAuth(options.env ?? process.env), ...place };
}

/** Wait until Redis answers, at most `deadlineMs`; the error names the address and the last fault seen. */
export async function awaitRedis(
  redis: Redis,
  options: { url: string; deadlineMs: number },
): Promise<void> {
  let fault = 'no answer';
  const seen = (error: Error) => {
    fault = error.message;
  };
  redis.on('error', seen);
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
      if (outcome instanceof Error && !/max retries|timed out/.test(outcome.message)) {
        fault = outcome.message;
      }
      // Waiting does not mend a wrong password or a missing right.
      if (/^(WRONGPASS|NOAUTH|NOPERM)/.test(fault)) break;
      await pause(Math.min(100, Math.max(0, giveUpAt - performance.now())));
    }
  } finally {
    redis.off('error', seen);
  }
  throw new FlyballError(
    'FLYBALL_E_REDIS_UNREACHABLE',
    `Redis at ${redactUrl(options.url)} cannot be used: ${fault}. Waited at most ${options.deadlineMs} ms. Check the address, the password and that it is running.`,
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((ok) => setTimeout(ok, ms));
}
