/** Which Redis is meant, and its URL as connection options; reads files and environment only. Stage: all that touch Redis. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RedisOptions } from 'ioredis';
import { FlyballError } from '../errors.js';
import { redactUrl } from '../log.js';

/** Where the private Redis and other files of this folder's Flyball live, unless FLYBALL_DATA_DIR says otherwise. */
export const DEFAULT_DATA_DIR = '.flyball';
/** The file in the data folder that says where the embedded Redis listens. */
export const REDIS_FILE = 'redis.json';

export type RedisSource = 'option' | 'environment' | 'embedded';

export interface RedisTarget {
  /** As given: may hold a password. Show it only through `redactUrl`. */
  url: string;
  source: RedisSource;
}

export interface ResolveOptions {
  /** `redis://`, `rediss://` or `unix:///path`; leads over the environment. */
  url?: string | undefined;
  /** Folder of `redis.json`. Default: FLYBALL_DATA_DIR, else `./.flyball`. */
  dataDir?: string | undefined;
  env?: NodeJS.ProcessEnv | undefined;
}

/** What `redis.json` holds. */
export interface RedisFile {
  schema: 1;
  url: string;
  socket: string;
  pid: number;
}

export function resolveDataDir(options: Pick<ResolveOptions, 'dataDir' | 'env'> = {}): string {
  const env = options.env ?? process.env;
  return resolve(options.dataDir ?? (env.FLYBALL_DATA_DIR || DEFAULT_DATA_DIR));
}

/**
 * The Redis to use: an explicit URL, else FLYBALL_REDIS_URL, else the embedded Redis whose `redis.json` lies in
 * the data folder, else an error that says what to set. Nothing is connected or started.
 */
export function resolveRedis(options: ResolveOptions = {}): RedisTarget {
  const env = options.env ?? process.env;
  if (options.url) return checked({ url: options.url, source: 'option' });
  if (env.FLYBALL_REDIS_URL) return checked({ url: env.FLYBALL_REDIS_URL, source: 'environment' });
  const dataDir = resolveDataDir(options);
  const file = readRedisFile(dataDir);
  if (file) return checked({ url: file.url, source: 'embedded' });
  throw notConfigured(dataDir);
}

export function notConfigured(dataDir: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_REDIS_NOT_CONFIGURED',
    `no Redis is known: FLYBALL_REDIS_URL is not set and ${join(dataDir, REDIS_FILE)} is not there, or not whole. Set FLYBALL_REDIS_URL (redis://, rediss:// or unix:///path), or start \`flyball run\`, which brings a private Redis.`,
  );
}

/** `redis.json` of a data folder; null when there is none or it is not whole. */
export function readRedisFile(dataDir: string): RedisFile | null {
  try {
    const file = JSON.parse(readFileSync(join(dataDir, REDIS_FILE), 'utf8')) as Partial<RedisFile>;
    if (file.schema !== 1 || typeof file.url !== 'string' || typeof file.socket !== 'string') {
      return null;
    }
    return Number.isInteger(file.pid) ? (file as RedisFile) : null;
  } catch {
    return null;
  }
}

/** URL → host, port, path, TLS, database, user and password. A fault names the URL without its password. */
export function parseRedisUrl(url: string): RedisOptions {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw badUrl(url, 'is not a URL');
  }
  const auth = {
    ...(parsed.username && { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password && { password: decodeURIComponent(parsed.password) }),
  };
  if (parsed.protocol === 'unix:') {
    const path = decodeURIComponent(parsed.pathname);
    if (!path.startsWith('/') || path.length < 2) throw badUrl(url, 'has no absolute socket path');
    return { ...auth, path, db: database(url, parsed.searchParams.get('db') ?? '') };
  }
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw badUrl(url, `begins with ${parsed.protocol}//`);
  }
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  if (!host) throw badUrl(url, 'names no host');
  return {
    ...auth,
    host,
    port: parsed.port ? Number(parsed.port) : 6379,
    db: database(url, parsed.pathname.replace(/^\//, '')),
    ...(parsed.protocol === 'rediss:' && { tls: { servername: host } }),
  };
}

/** User and password from the environment, for a URL that carries none. */
export function environmentAuth(env: NodeJS.ProcessEnv): RedisOptions {
  const file = env.FLYBALL_REDIS_PASSWORD_FILE;
  let password = env.FLYBALL_REDIS_PASSWORD;
  if (!password && file) {
    try {
      password = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    } catch (cause) {
      throw new FlyballError(
        'FLYBALL_E_REDIS_PASSWORD_FILE',
        `FLYBALL_REDIS_PASSWORD_FILE is ${JSON.stringify(file)}, which cannot be read (${(cause as NodeJS.ErrnoException).code}). Give a readable file that holds the password alone.`,
      );
    }
  }
  if (!password) return {};
  return { password, ...(env.FLYBALL_REDIS_USERNAME && { username: env.FLYBALL_REDIS_USERNAME }) };
}

function checked(target: RedisTarget): RedisTarget {
  parseRedisUrl(target.url);
  return target;
}

function database(url: string, text: string): number {
  if (text === '') return 0;
  if (!/^\d{1,5}$/.test(text)) throw badUrl(url, `names database ${JSON.stringify(text)}`);
  return Number(text);
}

function badUrl(url: string, fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_REDIS_URL',
    `Redis URL ${JSON.stringify(redactUrl(url))} ${fault}. Use redis://host:port/db, rediss://host:port/db or unix:///path/to/socket.`,
  );
}
