/** One process's counts of a second, added to the telemetry in one call. Stage: enforce. */
import { type RedisClient, runScript } from './run-script.js';
import { reportScript } from './scripts.gen.js';
import { TELEMETRY_TTL_MS } from './telemetry-fields.js';

/** `counts`: fields and whole numbers from 1 up, a line each. Sent once: an unanswered one may have been added. */
export async function sendReport(redis: RedisClient, key: string, counts: string): Promise<void> {
  await runScript(redis, { script: reportScript, keys: [key], args: [TELEMETRY_TTL_MS, counts] });
}
