/** The embedded Redis: joined when one lives, started when none does, stopped by the last that used it. Stage: daemon. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { FlyballError } from '../errors.js';
import type { Logger } from '../log.js';
import { openDataDir } from './data-dir.js';
import {
  ask,
  LOG_FILE,
  lastLogLines,
  launch,
  serverPid,
  shutDown,
  socketPath,
} from './embedded-server.js';
import { addUser, livingUsers } from './embedded-users.js';
import { withFolderLock } from './folder-lock.js';
import { REDIS_FILE, type RedisFile } from './locate.js';
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.js';

export interface EmbeddedRedis {
  /** `unix:///…`, the same that `redis.json` names. */
  url: string;
  /** True when it was running already. */
  joined: boolean;
  /** Starts the server again if it has died, on the same socket and data; joins it if another user was quicker. */
  revive(): Promise<void>;
  /** Ends this use; the last living user stops the server. Idempotent, and never throws. */
  release(): Promise<void>;
}

export interface EmbeddedRedisOptions {
  /** Folder of everything it writes; made when missing. */
  dataDir: string;
  log: Logger;
  /** Longest wait for a server to start, to read its data, or to be stopped. Default 30 s. */
  deadlineMs?: number;
}

/** The server's identity, written the moment it is spawned: `redis.json` follows only when it answers. */
const SERVER_FILE = 'server.json';
const ASK_MS = 2_000;
const POLL_MS = 25;
/** So long may a living server be without its socket: it has just been spawned. */
const BIND_WITHIN_MS = 5_000;
const UNUSABLE = new Set([
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOSPC',
  'EDQUOT',
  'ENOTDIR',
  'EEXIST',
  'EISDIR',
]);

/**
 * A private redis-server in `dataDir` for this process: it joins one that lives there, whoever started it, else
 * starts one that outlives this process. Each user leaves a file with its identity, so that the last to release
 * stops the server and a killed user does not count.
 */
export async function startEmbeddedRedis(options: EmbeddedRedisOptions): Promise<EmbeddedRedis> {
  const { log, deadlineMs = 30_000 } = options;
  const dataDir = resolve(options.dataDir);
  try {
    openDataDir(dataDir);
    return await withFolderLock(dataDir, 2 * deadlineMs, async () => {
      const socket = socketPath(dataDir);
      const joined = await joinLiving(dataDir, socket, deadlineMs);
      if (!joined) await startServer(dataDir, socket, deadlineMs);
      const url = `unix://${socket.split('/').map(encodeURIComponent).join('/')}`;
      let user: string;
      const pid = await serverPid(socket, ASK_MS);
      try {
        writeWhole(dataDir, REDIS_FILE, { schema: 1, url, socket, pid } satisfies RedisFile);
        user = addUser(dataDir);
      } catch (error) {
        if (!joined) await shutDown(socket);
        throw error;
      }
      log.info({ event: 'redis', source: 'embedded', socket, pid, joined });
      let released: Promise<void> | undefined;
      return {
        url,
        joined,
        revive: () =>
          withFolderLock(dataDir, 2 * deadlineMs, async () => {
            if (released || (await joinLiving(dataDir, socket, deadlineMs))) return;
            await startServer(dataDir, socket, deadlineMs);
            const pid = await serverPid(socket, ASK_MS);
            writeWhole(dataDir, REDIS_FILE, { schema: 1, url, socket, pid } satisfies RedisFile);
            log.warn({ event: 'redis_revived', source: 'embedded', socket, pid });
          }),
        release: () => {
          released ??= leave(dataDir, socket, user, log, deadlineMs);
          return released;
        },
      };
    });
  } catch (error) {
    throw explained(dataDir, error);
  }
}

/** Is there a server that lives in this folder and answers? Waits while it loads. */
async function joinLiving(dataDir: string, socket: string, deadlineMs: number): Promise<boolean> {
  const known = readServerFile(dataDir);
  const begunAt = performance.now();
  for (;;) {
    const answer = await ask(socket, ASK_MS);
    if (answer === 'ready') return true;
    const waitedMs = performance.now() - begunAt;
    const lives = known !== null && isAlive(known);
    if (answer === 'none' && !lives) return false;
    if (answer === 'none' && waitedMs > Math.min(BIND_WITHIN_MS, deadlineMs)) {
      // It lives, but its socket is gone. A second one over the same files would spoil them: end it first.
      if (known && (await ended(known, deadlineMs))) return false;
    }
    if (waitedMs > deadlineMs) {
      throw new FlyballError(
        'FLYBALL_E_EMBEDDED_REDIS',
        `the embedded Redis at ${socket} (process ${known?.pid ?? 'unknown'}) gives no answer for ${deadlineMs} ms (${answer}). See ${join(dataDir, LOG_FILE)}, or end that process.`,
      );
    }
    await pause();
  }
}

async function startServer(dataDir: string, socket: string, deadlineMs: number): Promise<void> {
  const server = launch(dataDir, socket);
  try {
    writeWhole(dataDir, SERVER_FILE, identityOf(server.pid) ?? { pid: server.pid, start: '' });
    const giveUpAt = performance.now() + deadlineMs;
    while ((await ask(socket, ASK_MS)) !== 'ready') {
      const end = server.ended();
      if (end !== null || performance.now() > giveUpAt) {
        throw new FlyballError(
          'FLYBALL_E_EMBEDDED_REDIS',
          `the embedded Redis did not start (${end ?? `no answer in ${deadlineMs} ms`}). Its log ${join(dataDir, LOG_FILE)} ends: ${lastLogLines(dataDir)}`,
        );
      }
      await pause();
    }
  } catch (error) {
    server.kill();
    throw error;
  }
}

async function leave(
  dataDir: string,
  socket: string,
  user: string,
  log: Logger,
  deadlineMs: number,
): Promise<void> {
  try {
    await withFolderLock(dataDir, 2 * deadlineMs, async () => {
      rmSync(user, { force: true });
      if (livingUsers(dataDir) > 0) return;
      await shutDown(socket);
      for (const name of [REDIS_FILE, SERVER_FILE]) rmSync(join(dataDir, name), { force: true });
      rmSync(socket, { force: true });
      log.info({ event: 'redis_stopped', source: 'embedded', socket });
    });
  } catch (error) {
    log.warn({ event: 'redis_not_stopped', source: 'embedded', socket, err: error });
  }
}

/** Ends a server by its pid, known to be it by its start time. */
async function ended(server: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  process.kill(server.pid, 'SIGTERM');
  const giveUpAt = performance.now() + deadlineMs;
  while (isAlive(server) && performance.now() < giveUpAt) await pause();
  return !isAlive(server);
}

function readServerFile(dataDir: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, SERVER_FILE), 'utf8'));
  } catch {
    return null;
  }
}

/** Whole or not at all: readers never see half a file. */
function writeWhole(dataDir: string, name: string, content: object): void {
  const draft = join(dataDir, `${name}.${process.pid}`);
  try {
    writeFileSync(draft, `${JSON.stringify(content)}\n`, { mode: 0o600 });
    renameSync(draft, join(dataDir, name));
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A fault of the folder in words; any other error as it is. */
function explained(dataDir: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof FlyballError || !code || !UNUSABLE.has(code)) return error;
  const mend =
    code === 'ENOSPC' || code === 'EDQUOT' ? 'Free some space' : 'Make it a folder you may write';
  return new FlyballError(
    'FLYBALL_E_DATA_DIR',
    `the data folder ${dataDir} cannot be used: ${message}. ${mend}, or set FLYBALL_DATA_DIR to another.`,
    { cause: error },
  );
}

function pause(): Promise<void> {
  return new Promise((ok) => setTimeout(ok, POLL_MS));
}
