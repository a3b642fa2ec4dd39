/** What all autopilots of one Redis may change together. Stage: daemon. */
import { fleetKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { budgetScript } from './scripts.gen.js';

export interface FleetBudget {
  /** Most changes a minute; undefined: any number. */
  changesPerMinute?: number | undefined;
  /** Most doublings an hour, of all raises together; undefined: any number. */
  doublingsPerHour?: number | undefined;
}

/** Asks for a raise by that factor, or counts a cut (1 or less). False: a raise has to wait. */
export async function spendBudget(
  redis: RedisClient,
  call: FleetBudget & { prefix?: string | undefined; factor: number; nowUs?: number },
): Promise<boolean> {
  const { prefix, changesPerMinute, doublingsPerHour, factor, nowUs } = call;
  const raise = factor > 1 ? Math.max(1e-6, Math.min(1000, Math.log2(factor))) : 0;
  const reply = (await runScript(redis, {
    script: budgetScript,
    keys: [fleetKeys(prefix).budget],
    args: [nowUs ?? '', changesPerMinute ?? '', doublingsPerHour ?? '', raise.toFixed(6)],
  })) as [number, string];
  return Number(reply[0]) === 1;
}
