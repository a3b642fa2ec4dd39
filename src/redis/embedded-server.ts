/** The private redis-server of a data folder: where it listens, how it is started, asked and stopped. Stage: embedded Redis. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, lstatSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { FlyballError } from '../errors.js';

export const LOG_FILE = 'redis.log';
const DATA_FOLDER = 'redis';
const CONF = fileURLToPath(new URL('../../deploy/redis/redis.conf', import.meta.url));
const MINIMUM_MAJOR = 7;
/** sun_path, less its ending zero. */
const MAX_SOCKET_BYTES = process.platform === 'darwin' ? 103 : 107;

/**
 * The socket in the data folder, or, where that path is too long for a socket, in a folder of this user's under
 * the temporary folder, named after the data folder. The same for every process, so that a server whose
 * `redis.json` was lost is found again.
 */
export function socketPath(dataDir: string): string {
  const near = join(dataDir, 'redis.sock');
  if (Buffer.byteLength(near) <= MAX_SOCKET_BYTES) return near;
  const folder = join(tmpdir(), `flyball-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(folder);
  // Whoever owns the folder could put a server of his own in our socket's place.
  if (uid !== userInfo().uid || (mode & 0o777) !== 0o700) {
    throw new FlyballError(
      'FLYBALL_E_DATA_DIR',
      `${folder} is not this user's alone, and ${near} is too long for a socket. Remove that folder, or set FLYBALL_DATA_DIR to a shorter path.`,
    );
  }
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const short = join(folder, `${name}.sock`);
  if (Buffer.byteLength(short) > MAX_SOCKET_BYTES) {
    throw new FlyballError(
      'FLYBALL_E_DATA_DIR',
      `no socket fits into ${MAX_SOCKET_BYTES} bytes: neither ${near} nor ${short}. Set FLYBALL_DATA_DIR or TMPDIR to a shorter path.`,
    );
  }
  return short;
}

/** `ready`; `loading`: there, but reads its log; `silent`: connected without an answer; `none`: nobody listens. */
export type ServerAnswer = 'ready' | 'loading' | 'silent' | 'none';

export async function ask(socket: string, waitMs: number): Promise<ServerAnswer> {
  const redis = plainClient(socket, waitMs);
  let fault: NodeJS.ErrnoException | undefined;
  redis.on('error', (error) => {
    fault = error;
  });
  try {
    await redis.connect();
  } catch {
    redis.disconnect();
    // Who accepts and says nothing lives: it must not be taken for gone, and ended.
    return ['ENOENT', 'ECONNREFUSED', 'ENOTSOCK'].includes(fault?.code ?? '') ? 'none' : 'silent';
  }
  try {
    await redis.ping();
    return 'ready';
  } catch (error) {
    return /LOADING/.test((error as Error).message) ? 'loading' : 'silent';
  } finally {
    redis.disconnect();
  }
}

export async function serverPid(socket: string, waitMs: number): Promise<number> {
  const redis = plainClient(socket, waitMs);
  try {
    await redis.connect();
    return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
  } finally {
    redis.disconnect();
  }
}

/** Starts a server that outlives this process. @returns its pid, and how it ended if it does */
export function launch(dataDir: string, socket: string) {
  const program = findServer();
  const folder = join(dataDir, DATA_FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  rmSync(socket, { force: true });
  const logPath = join(dataDir, LOG_FILE);
  // What the server says before it has opened its own log goes to the same file.
  const log = openSync(logPath, 'a', 0o600);
  const args = [CONF, '--port', '0', '--unixsocket', socket, '--unixsocketperm', '700'];
  const place = ['--dir', folder, '--logfile', logPath, '--daemonize', 'no'];
  const child = spawn(program, [...args, ...place], {
    detached: true,
    cwd: folder,
    // Only what it needs: no secrets of ours, and no locale that it would refuse.
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  let ended: string | null = null;
  child.once('error', (error) => {
    ended = error.message;
  });
  child.once('exit', (code, signal) => {
    ended = `exit ${code ?? signal}`;
  });
  child.unref();
  return { pid: child.pid ?? 0, ended: () => ended, kill: () => child.kill('SIGKILL') };
}

/** Writes its log to disk and ends; forced when it could not write, since it would else stay. */
export async function shutDown(socket: string): Promise<void> {
  for (const args of [[], ['NOSAVE', 'FORCE']]) {
    const redis = plainClient(socket, 10_000);
    try {
      await redis.connect();
      await redis.call('SHUTDOWN', ...args);
    } catch {
      // It ends by closing the connection; whether it did is asked below.
    } finally {
      redis.disconnect();
    }
    if ((await ask(socket, 1_000)) === 'none') return;
  }
}

/** The end of the server's log, for an error that says why it did not start. */
export function lastLogLines(dataDir: string): string {
  try {
    const lines = readFileSync(join(dataDir, LOG_FILE), 'utf8').trim().split('\n');
    return lines.slice(-3).join(' | ');
  } catch {
    return '';
  }
}

/** FLYBALL_REDIS_SERVER, else `redis-server` or `valkey-server` on PATH, of Redis 7 or newer. */
function findServer(): string {
  const given = process.env.FLYBALL_REDIS_SERVER;
  const found: string[] = [];
  for (const program of given ? [given] : ['redis-server', 'valkey-server']) {
    try {
      const text = execFileSync(program, ['--version'], { encoding: 'utf8', stdio: 'pipe' });
      const version = /server v=(\d+)\.\S+/.exec(text);
      if (version && Number(version[1]) >= MINIMUM_MAJOR) return program;
      found.push(`${program} is ${version?.[0].slice(9) ?? 'no Redis server'}`);
    } catch {
      found.push(`${program} does not run`);
    }
  }
  throw new FlyballError(
    'FLYBALL_E_REDIS_SERVER_MISSING',
    `no redis-server ${MINIMUM_MAJOR}.0 or newer for the embedded Redis: ${found.join(', ')}. Install one, or set FLYBALL_REDIS_SERVER to its path, or FLYBALL_REDIS_URL to a Redis that runs.`,
  );
}

function plainClient(socket: string, waitMs: number): Redis {
  const redis = new Redis({
    path: socket,
    lazyConnect: true,
    retryStrategy: null,
    enableReadyCheck: false,
    connectTimeout: waitMs,
    commandTimeout: waitMs,
    disableClientInfo: true,
  });
  redis.on('error', () => {});
  return redis;
}
