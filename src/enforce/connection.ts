/** One connection a process and Redis, shared by its limiters; or the caller's own client. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { connect, resolveDataDir, resolveRedis } from '../redis/connect.js';
import { readRedisFile } from '../redis/locate.js';
import { show } from './arguments.js';
import type { LimiterOptions, RedisClient } from './options.js';
import type { Warn } from './warnings.js';

export interface Connection {
  readonly redis: RedisClient;
  /** The last user of a shared connection closes it; a caller's own is left open. */
  release(): void;
}

interface Shared {
  redis: RedisClient;
  users: number;
}

const sharedByPlace = new Map<string, Shared>();
/** The default of `createLimiter`. */
const DEFAULT_DEADLINE_MS = 50;
/** Listeners that one limiter adds: `close`, `error` twice, and `ready` once more while it waits. */
const LISTENERS = 3;
/** Faults are counted and warned of by the limiter; without a listener ioredis prints each. */
const ignoreFault = () => {};

export function openConnection(
  options: Pick<LimiterOptions, 'redis' | 'url' | 'deadlineMs'>,
  warn: Warn,
): Connection {
  const own = options.redis;
  if (own !== undefined) checkOwn(own, options.deadlineMs ?? DEFAULT_DEADLINE_MS, warn);
  const place = own === undefined ? placeOf(options.url, warn) : null;
  const redis = own ?? share(place!);
  changeListeners(redis, LISTENERS);
  redis.on('error', ignoreFault);
  let held = true;
  return {
    redis,
    release() {
      if (!held) return;
      held = false;
      changeListeners(redis, -LISTENERS);
      if (own !== undefined) redis.off('error', ignoreFault);
      else unshare(place!);
    },
  };
}

/** 0 is a caller's word for any number. */
function changeListeners(redis: RedisClient, by: number): void {
  const most = redis.getMaxListeners();
  if (most > 0) redis.setMaxListeners(Math.max(1, most + by));
}

/** A URL, or the data folder in which a private Redis is, or will be once `flyball run` has started. */
type Place = { url: string } | { embeddedIn: string };

function placeOf(url: string | undefined, warn: Warn): Place {
  if (url || process.env.FLYBALL_REDIS_URL) return { url: resolveRedis({ url }).url };
  const embeddedIn = resolveDataDir();
  if (readRedisFile(embeddedIn) === null) {
    warn(
      'FLYBALL_W_REDIS_NOT_CONFIGURED',
      `no Redis is known yet: FLYBALL_REDIS_URL is not set and ${embeddedIn} holds no redis.json. It is looked for again and again, and onRedisError decides meanwhile. Set FLYBALL_REDIS_URL, or start \`flyball run\`, which brings a private Redis.`,
    );
  }
  return { embeddedIn };
}

function keyOf(place: Place): string {
  return 'url' in place ? place.url : `embedded ${place.embeddedIn}`;
}

function share(place: Place): RedisClient {
  let shared = sharedByPlace.get(keyOf(place));
  if (shared === undefined) {
    shared = { redis: connect({ ...place, name: 'sdk', hotPath: true }), users: 0 };
    sharedByPlace.set(keyOf(place), shared);
  }
  shared.users += 1;
  return shared.redis;
}

function unshare(place: Place): void {
  const shared = sharedByPlace.get(keyOf(place))!;
  shared.users -= 1;
  if (shared.users > 0) return;
  sharedByPlace.delete(keyOf(place));
  shared.redis.disconnect();
}

/** What of a caller's own client would break the limits. */
function checkOwn(redis: RedisClient, deadlineMs: number, warn: Warn): void {
  const client = 'options' in redis ? (redis.options as OwnOptions) : {};
  if (client.keyPrefix) {
    throw new FlyballTypeError(
      'FLYBALL_E_ENFORCE_OPTION',
      `redis has keyPrefix ${show(client.keyPrefix)}, which would hide its keys from the daemon. Give a client without it; createLimiter's own \`prefix\` sets the keys' prefix.`,
    );
  }
  const delayMs = client.retryDelayOnFailover ?? 0;
  if (delayMs > 0 && delayMs < deadlineMs) {
    warn(
      'FLYBALL_W_CLIENT_RESENDS',
      `your Cluster client sends unanswered commands again ${delayMs} ms after a node was lost (retryDelayOnFailover), within the deadline of ${deadlineMs} ms, so a take may be charged twice. Set retryDelayOnFailover: 0.`,
    );
  }
  if (client.autoResendUnfulfilledCommands === true) {
    warn(
      'FLYBALL_W_CLIENT_RESENDS',
      'your Redis client sends unanswered commands again when it reconnects, so a take may be charged twice if that is quicker than the deadline. Set autoResendUnfulfilledCommands: false.',
    );
  }
}

interface OwnOptions {
  keyPrefix?: string;
  autoResendUnfulfilledCommands?: boolean;
  /** Of a Cluster alone. */
  retryDelayOnFailover?: number;
}
