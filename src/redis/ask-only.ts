/** A script call that Redis itself keeps from writing: what it would answer, or that it would write. Stage: cli, api. */
import type { RedisClient, ScriptCall } from './run-script.js';

/** `EVAL_RO` runs a script up to its first write, which Redis refuses. */
const WOULD_WRITE = /Write commands are not allowed from read-only scripts/;

/** The reply; null: the call would have written, and nothing was. Never by hash, so that no script is loaded either. */
export async function askOnly(
  redis: RedisClient,
  { script, keys, args }: ScriptCall,
): Promise<unknown> {
  try {
    return await redis.call('EVAL_RO', script.lua, String(keys.length), ...keys, ...args);
  } catch (error) {
    if (error instanceof Error && WOULD_WRITE.test(error.message)) return null;
    throw error;
  }
}
