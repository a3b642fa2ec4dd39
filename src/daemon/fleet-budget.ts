/** The turn of a limiter within what the whole fleet may change: a raise that has no room is decided again, without it. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { DecideState, Decision, Sample } from '../decide/types.js';
import { turn } from '../guard/turn.js';
import type { Logger } from '../log.js';
import type { Policy } from '../policy/schema.js';
import { type FleetBudget, spendBudget } from '../redis/budget.js';

/** Asks for a raise by that factor; a cut is counted and always granted. */
export type SpendChange = (factor: number) => Promise<boolean>;

/** Null: nothing bounds the fleet, and nothing is asked. */
export function createSpendChange(
  redis: RedisClient,
  prefix: string,
  budget: FleetBudget,
  log: Logger,
): SpendChange | null {
  const { changesPerMinute, doublingsPerHour } = budget;
  if (changesPerMinute === undefined && doublingsPerHour === undefined) return null;
  let failing = false;
  return async (factor) => {
    try {
      const granted = await spendBudget(redis, { prefix, ...budget, factor });
      failing = false;
      return granted;
    } catch (error) {
      if (!failing) {
        log.warn(
          { event: 'fleet_budget_unasked', err: error },
          `What the fleet may change could not be asked: ${(error as Error).message}. Raises wait.`,
        );
      }
      failing = true;
      throw error;
    }
  };
}

/** What the breaker does is never asked for: safety does not wait. */
export async function turnWithin(
  spend: SpendChange | null,
  policy: Policy,
  before: DecideState,
  sample: Sample,
): Promise<{ state: DecideState; decision: Decision }> {
  const turned = turn(policy, before, sample);
  const { decision } = turned;
  if (spend === null || !decision.change || decision.cause === 'breaker') return turned;
  const raise = raiseOf(decision, sample);
  // The budget may lie on a server that is away: a cut is told of and waits for no answer, a raise waits for one.
  const answer = spend(raise).catch(() => false);
  if (raise <= 1 || (await answer)) return turned;
  sample.raisesWait = true;
  return turn(policy, before, sample);
}

/** The larger of the two factors; above 1 it is a raise. */
function raiseOf(decision: Decision, sample: Sample): number {
  const { rate, inFlightMax } = sample.inForce.target;
  const factor = (to: number, from: number) => (to === from ? 1 : from > 0 ? to / from : 2);
  return Math.max(factor(decision.rate, rate), factor(decision.inFlightMax, inFlightMax));
}
