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
import type { Fit } from './fit.js';
import { type RunOptions, runScenario } from './run.js';
import { loadOf, type Scenario } from './scenario.js';
import { type Score, scoreRun } from './score.js';
import { type ClientModel, defaultService, type ServiceModel, statedCapacity } from './service.js';
import { drawTraffic } from './traffic.js';

export const CONTENDERS = ['policy', 'none', 'static', 'step', 'best'] as const;
export type Contender = (typeof CONTENDERS)[number];

export interface Plant {
  service: ServiceModel;
  capacityPerSecond: number;
  clients?: ClientModel;
  /** True: nobody has fitted it to the service's own history. */
  isDefault: boolean;
  /** How it was fitted. */
  fit?: Fit;
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

export interface Contest {
  /** Runs one of them, of this policy or of another with the same objective; the best is searched once and kept. */
  run(contender: Contender, of?: Policy): Result;
}

/** Plant, load and seed of one scenario, ready for whoever is to be compared. Pure. */
export function contest(policy: Policy, plant: Plant, scenario: Scenario, seed: number): Contest {
  const { service, capacityPerSecond, clients } = plant;
  const options: RunOptions = {
    policy,
    scenario,
    service,
    capacityPerSecond,
    seed,
    traffic: drawTraffic(loadOf(scenario, capacityPerSecond), 1000 * scenario.durationS, seed),
    ...(clients && { clients }),
  };
  let best: Second[] | undefined;
  return {
    run(contender, of = policy) {
      best ??= bestConstant(options).seconds;
      const changes: Change[] = [];
      const controller = controllerOf(contender, of, (change) => changes.push(change));
      const seconds =
        controller === null ? best : runScenario({ ...options, policy: of }, controller);
      const score = scoreRun(of, scenario, seconds, best, changes, capacityPerSecond);
      return { score, seconds, changes };
    },
  };
}

/** Runs all contenders on the same plant, load and seed. Pure. */
export function compare(
  policy: Policy,
  plant: Plant,
  scenario: Scenario,
  seed: number,
): Comparison {
  const { run } = contest(policy, plant, scenario, seed);
  const results = Object.fromEntries(CONTENDERS.map((each) => [each, run(each)]));
  return { scenario, seed, results: results as Comparison['results'] };
}

/** Null: the best constant, which is known already. */
function controllerOf(
  contender: Contender,
  policy: Policy,
  note: (change: Change) => void,
): Controller | null {
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  switch (contender) {
    case 'policy':
      return byPolicy(policy, note);
    case 'none':
      return noLimit();
    case 'static':
      return constant({ rate, capacity, inFlightMax });
    case 'step':
      return byPolicy(withStepRule(policy), note);
    case 'best':
      return null;
  }
}
