/** One scenario, all who are compared: the policy, no limit, a static limit, the step rule, the best constant. Stage: simulate. */
import type { Policy } from '../policy/schema.js';
import { bestConstant } from './best.js';
import {
  byPolicy,
  type Change,
  type Controller,
  constant,
  noLimit,
  withStepRule,
} from './controllers.js';
import type { Second } from './counts.js';
import { runScenario } from './run.js';
import type { Scenario } from './scenario.js';
import { type Score, scoreRun } from './score.js';
import { type ClientModel, defaultService, type ServiceModel, statedCapacity } from './service.js';

export const CONTENDERS = ['policy', 'none', 'static', 'step', 'best'] as const;
export type Contender = (typeof CONTENDERS)[number];

export interface Plant {
  service: ServiceModel;
  capacityPerSecond: number;
  clients?: ClientModel;
  /** True: nobody has fitted it to the service's own history. */
  isDefault: boolean;
}

export interface Result {
  score: Score;
  seconds: Second[];
  changes: Change[];
}

export interface Comparison {
  scenario: Scenario;
  seed: number;
  results: Record<Contender, Result>;
}

/** The plant that stands in for a service of which nothing is known. */
export function defaultPlant(policy: Policy): Plant {
  return {
    service: defaultService(policy),
    capacityPerSecond: statedCapacity(policy),
    isDefault: true,
  };
}

/** Runs all contenders on the same plant, load and seed. Pure. */
export function compare(
  policy: Policy,
  plant: Plant,
  scenario: Scenario,
  seed: number,
): Comparison {
  const { service, capacityPerSecond, clients } = plant;
  const options = {
    policy,
    scenario,
    service,
    capacityPerSecond,
    seed,
    ...(clients && { clients }),
  };
  const best = bestConstant(options).seconds;
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  const run = (make: (note: (change: Change) => void) => Controller): Result => {
    const changes: Change[] = [];
    const seconds = runScenario(
      options,
      make((change) => changes.push(change)),
    );
    const score = scoreRun(policy, scenario, seconds, best, changes, capacityPerSecond);
    return { score, seconds, changes };
  };
  return {
    scenario,
    seed,
    results: {
      policy: run((note) => byPolicy(policy, note)),
      none: run(noLimit),
      static: run(() => constant({ rate, capacity, inFlightMax })),
      step: run((note) => byPolicy(withStepRule(policy), note)),
      best: {
        seconds: best,
        changes: [],
        score: scoreRun(policy, scenario, best, best, [], capacityPerSecond),
      },
    },
  };
}
