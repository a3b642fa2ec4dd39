/** Which Redis is meant; reads files and environment only. Stage: all that touch Redis. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { FlyballError } from '../errors.js';
import { parseRedisUrl } from './url.js';

/** Where the private Redis and other files of this folder's Flyball live, unless FLYBALL_DATA_DIR says otherwise. */
export const DEFAULT_DATA_DIR = '.flyball';
/** The file in the data folder that says where the embedded Redis listens. */
export const REDIS_FILE = 'redis.json';

/** What may stand in front of every key. */
export const PREFIX_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;

export type RedisSource = 'option' | 'environment' | 'embedded';

export interface RedisTarget {
  /** As given: may hold a password. Show it only through `redactUrl`. */
  url: string;
  source: RedisSource;
}

export interface ResolveOptions {
  /** Any form that `parseRedisUrl` knows; leads over the environment. */
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
  // Whoever hands on what the environment says has chosen nothing.
  if (options.url && options.url !== env.FLYBALL_REDIS_URL) {
    return checked({ url: options.url, source: 'option' });
  }
  if (env.FLYBALL_REDIS_URL) return checked({ url: env.FLYBALL_REDIS_URL, source: 'environment' });
  const dataDir = resolveDataDir(options);
  const file = readRedisFile(dataDir);
  if (file) return checked({ url: file.url, source: 'embedded' });
  throw notConfigured(dataDir);
}

/** The key prefix: as given, else FLYBALL_PREFIX, else undefined for the default. Not checked. */
export function resolvePrefix(
  given: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): string | undefined {
  return given ?? (env.FLYBALL_PREFIX || undefined);
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

function checked(target: RedisTarget): RedisTarget {
  parseRedisUrl(target.url);
  return target;
}
