/** The demo's data folder: one demo at a time in it, fresh at the start, kept at the end. Stage: demo. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FlyballError } from '../errors.js';
import { createLog } from '../log.js';
import { openDataDir } from '../redis/data-dir.js';
import { startEmbeddedRedis } from '../redis/embedded.js';
import { REDIS_FILE, resolveDataDir } from '../redis/locate.js';
import { isAlive, ownIdentity, type ProcessIdentity } from '../redis/process-identity.js';

const OWNER_FILE = 'demo.json';

/** `.flyball/demo`, or `demo` in FLYBALL_DATA_DIR. */
export function demoFolder(env: NodeJS.ProcessEnv): string {
  return join(resolveDataDir({ env }), 'demo');
}

/** Empties the folder and claims it. A Redis that `--keep` left running there is stopped first. */
export async function claimFolder(folder: string): Promise<{ logDir: string }> {
  const owner = readOwner(folder);
  if (owner && isAlive(owner) && owner.pid !== process.pid) {
    throw new FlyballError(
      'FLYBALL_E_DEMO_RUNNING',
      `another demo (process ${owner.pid}) runs in ${folder}. Wait for it, or give this one its own FLYBALL_DATA_DIR.`,
    );
  }
  if (existsSync(join(folder, REDIS_FILE))) await stopKeptRedis(folder);
  rmSync(folder, { recursive: true, force: true });
  const logDir = join(folder, 'log');
  openDataDir(logDir);
  writeFileSync(join(folder, OWNER_FILE), JSON.stringify(ownIdentity()));
  return { logDir };
}

export function releaseFolder(folder: string): void {
  rmSync(join(folder, OWNER_FILE), { force: true });
}

/** To join and to leave as the last user is to stop it. */
export async function stopKeptRedis(folder: string): Promise<void> {
  const redis = await startEmbeddedRedis({ dataDir: folder, log: createLog({ level: 'silent' }) });
  await redis.release();
}

function readOwner(folder: string): ProcessIdentity | null {
  try {
    return JSON.parse(readFileSync(join(folder, OWNER_FILE), 'utf8')) as ProcessIdentity;
  } catch {
    return null;
  }
}
