/** Runs one flyball command on the data that the last demo left: wakes its Redis, and lets it sleep again. Stage: demo. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FlyballError } from '../errors.js';
import { createLog } from '../log.js';
import { startEmbeddedRedis } from '../redis/embedded.js';

const MAIN = fileURLToPath(new URL('../cli/main.js', import.meta.url));

export async function runOnKeptData(
  folder: string,
  words: readonly string[],
  io: { env: NodeJS.ProcessEnv; flags: { json: boolean; quiet: boolean; input: boolean } },
): Promise<number> {
  if (!existsSync(join(folder, 'result.json'))) {
    throw new FlyballError(
      'FLYBALL_E_DEMO_NO_DATA',
      `${folder} holds no finished demo. Run \`npm start\` first.`,
    );
  }
  const redis = await startEmbeddedRedis({ dataDir: folder, log: createLog({ level: 'silent' }) });
  try {
    const { json, quiet, input } = io.flags;
    const flags = [json && '--json', quiet && '--quiet', !input && '--no-input'].filter(
      (flag) => flag !== false,
    );
    const { FLYBALL_REDIS_URL: _none, ...env } = io.env;
    const child = spawn(process.execPath, [MAIN, ...flags, ...words], {
      stdio: 'inherit',
      env: { ...env, FLYBALL_DATA_DIR: folder },
    });
    return await new Promise<number>((ok, no) => {
      child.once('error', no);
      child.once('exit', (code) => ok(code ?? 1));
    });
  } finally {
    await redis.release();
  }
}
