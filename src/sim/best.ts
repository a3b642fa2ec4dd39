/** The best constant limits of a scenario, phase by phase: what a controller is measured against. Stage: simulate. */
import { type Controller, constant } from './controllers.js';
import type { Second } from './counts.js';
import type { Enforced } from './gate.js';
import { type RunOptions, runScenario } from './run.js';

/** In-flight caps and rates that are tried, as multiples of what the service needs at its capacity. */
const CAPS = [0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2.2];
const RATES = [0.25, 0.5, 0.7, 0.85, 0.95, 1.05, 1.2, 2];
const NEVER_BINDS = 1e9;
/** What was admitted in vain counts against a limit, at half a good answer. */
const WASTE = 0.5;
/** A phase is judged with the seconds after it, so that it leaves no queue behind. */
const AFTER_S = 10;

export interface Best {
  seconds: Second[];
  /** The limits of each phase. */
  plan: { fromS: number; rate: number; inFlightMax: number }[];
}

/**
 * Greedy, phase after phase: every candidate is run from the start with the phases before it fixed. Constant caps
 * and constant rates are tried apart; of the two plans the better one is taken.
 */
export function bestConstant(options: RunOptions): Best {
  const { scenario, capacityPerSecond, service } = options;
  const appMs = service.app.meanMs + (service.pool?.hold.meanMs ?? 0) + service.upstreamMs;
  const needed = Math.max(2, (2 * capacityPerSecond * appMs) / 1000);
  const caps = CAPS.map((share) => ({
    rate: NEVER_BINDS,
    inFlightMax: Math.max(1, Math.round(share * needed)),
  }));
  const rates = RATES.map((share) => ({ rate: share * capacityPerSecond, inFlightMax: 0 }));
  const free = { rate: NEVER_BINDS, inFlightMax: 0 };
  const plans = [search(options, [...caps, free]), search(options, [...rates, free])];
  const runs = plans.map((plan) => ({ plan, seconds: runScenario(options, byPlan(plan)) }));
  const worth = runs.map(({ seconds }) => value(seconds, 0, scenario.durationS));
  return worth[0]! >= worth[1]! ? runs[0]! : runs[1]!;
}

type Limits = Pick<Enforced, 'rate' | 'inFlightMax'>;

function search(options: RunOptions, candidates: readonly Limits[]): Best['plan'] {
  const { scenario } = options;
  const plan: Best['plan'] = [];
  for (let k = 0; k < scenario.phases.length; k++) {
    const fromS = scenario.phases[k]!;
    const toS = scenario.phases[k + 1] ?? scenario.durationS;
    const untilS = Math.min(scenario.durationS, toS + AFTER_S);
    let best: { limits: Limits; worth: number } | undefined;
    for (const limits of candidates) {
      const tried = [...plan, { fromS, ...limits }];
      const seconds = runScenario({ ...options, untilS }, byPlan(tried));
      const worth = value(seconds, fromS, untilS);
      if (best === undefined || worth > best.worth) best = { limits, worth };
    }
    plan.push({ fromS, ...best!.limits });
  }
  return plan;
}

function value(seconds: readonly Second[], fromS: number, toS: number): number {
  let sum = 0;
  for (let s = fromS; s < Math.min(toS, seconds.length); s++) {
    const { good, late, timedOut } = seconds[s]!;
    sum += good - WASTE * (late + timedOut);
  }
  return sum;
}

/** Limits that change with the phases, known beforehand. */
function byPlan(plan: Best['plan']): Controller {
  const at = (index: number): Enforced => ({
    rate: plan[index]!.rate,
    capacity: Math.max(1, plan[index]!.rate / 10),
    inFlightMax: plan[index]!.inFlightMax,
    generation: 0,
  });
  let index = 0;
  return {
    ...constant(at(0)),
    get dueMs() {
      return (plan[index + 1]?.fromS ?? Number.POSITIVE_INFINITY) * 1000;
    },
    due: () => at(++index),
  };
}
