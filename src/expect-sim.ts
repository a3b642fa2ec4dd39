/** `expectSim(policy).on('surge').goodput.toBeAbove(0.9)`: what a policy must keep, in any test runner. Stage: simulate. */
import { PolicyError } from './errors.js';
import { parsePolicy } from './policy/parse.js';
import type { Policy, PolicyInput } from './policy/schema.js';
import {
  CONTENDERS,
  type Contender,
  type Contest,
  contest,
  defaultPlant,
  type Plant,
  type Result,
} from './sim/compare.js';
import { cellsOf, figuresOf, HEAD, type Row } from './sim/rows.js';
import { goodMs } from './sim/run.js';
import { SCENARIOS, type ScenarioName } from './sim/scenarios.js';

/** Fails with the number, the limit and the row of the table. A metric that is not known (no disturbance) fails too. */
export interface SimMatchers {
  toBeAbove(limit: number): void;
  toBeBelow(limit: number): void;
  /** Both ends included. */
  toBeWithin(least: number, most: number): void;
}

/** What a policy is judged by in a scenario; `docs/guides/simulate.md` says what each means. */
export interface SimExpectation {
  /** The random start of all that follows. Default 1. */
  seed(seed: number): SimExpectation;
  /** Good answers ÷ those of the best constant limits, 0 … 1. */
  readonly goodput: SimMatchers;
  /** Seconds in which the response time missed its objective. */
  readonly sloMissedS: SimMatchers;
  /** Seconds from the worst disturbance until it is near the best again. */
  readonly convergenceS: SimMatchers;
  /** Most admitted ÷ what the service carries, less 1. */
  readonly overshoot: SimMatchers;
  readonly changesPerMinute: SimMatchers;
  /** Times the breaker opened while the upstream was well. */
  readonly falseTrips: SimMatchers;
}

export interface SimSubject {
  on(scenario: ScenarioName): SimExpectation;
}

/** Failures look like those of `node:assert`, which every runner shows well. */
class SimAssertionError extends Error {
  override readonly name = 'AssertionError';
  readonly code = 'ERR_ASSERTION';
  readonly generatedMessage = false;

  constructor(
    message: string,
    readonly actual: number | null,
    readonly expected: string,
  ) {
    super(message);
  }
}

/**
 * Simulates the policy as if its mode were `auto`, on the default plant or on one of yours. A policy with faults throws
 * a `PolicyError`. Results are kept in the process: several expectations of one scenario cost one run.
 */
export function expectSim(
  input: PolicyInput | Policy,
  options: { plant?: Plant } = {},
): SimSubject {
  const parsed = parsePolicy(input, '(expectSim)');
  if (parsed.faults) throw new PolicyError(parsed.faults);
  const { policy } = parsed;
  const plant = options.plant ?? defaultPlant(policy);
  return {
    on(name) {
      const scenario = SCENARIOS.find((each) => each.name === name);
      if (scenario === undefined) {
        const names = SCENARIOS.map((each) => each.name).join(', ');
        throw new RangeError(`${JSON.stringify(name)} is no scenario: take one of ${names}.`);
      }
      return expectation(policy, plant, scenario, 1);
    },
  };
}

type Metric = Exclude<keyof SimExpectation, 'seed'>;

function expectation(
  policy: Policy,
  plant: Plant,
  scenario: (typeof SCENARIOS)[number],
  seed: number,
): SimExpectation {
  const run = () => resultsOf(policy, plant, scenario, seed);
  const matchers = (metric: Metric): SimMatchers => {
    const check = (holds: (value: number) => boolean, expected: string) => {
      const value = run().result('policy').score[metric];
      if (value !== null && holds(value)) return;
      const shown =
        value === null ? 'not known (nothing to converge from)' : Number(value.toFixed(3));
      const what = `${policy.limiter.name} on ${scenario.name}, seed ${seed}: ${metric} is ${shown}`;
      throw new SimAssertionError(
        `${what}; expected ${expected}.\n\n${tableOf(run())}`,
        value,
        expected,
      );
    };
    return {
      toBeAbove: (limit) => check((value) => value > limit, `above ${limit}`),
      toBeBelow: (limit) => check((value) => value < limit, `below ${limit}`),
      toBeWithin: (least, most) =>
        check((value) => value >= least && value <= most, `within ${least} … ${most}`),
    };
  };
  return {
    seed: (other) => expectation(policy, plant, scenario, other),
    goodput: matchers('goodput'),
    sloMissedS: matchers('sloMissedS'),
    convergenceS: matchers('convergenceS'),
    overshoot: matchers('overshoot'),
    changesPerMinute: matchers('changesPerMinute'),
    falseTrips: matchers('falseTrips'),
  };
}

/** Contests kept, each with its search of the best; the oldest goes. */
const KEPT = 32;
const contests = new Map<string, Contest>();
const runs = new Map<string, Results>();

interface Results {
  scenario: (typeof SCENARIOS)[number];
  seed: number;
  /** Run when it is asked for: a passing test needs no comparison. */
  result(contender: Contender): Result;
}

function resultsOf(
  policy: Policy,
  plant: Plant,
  scenario: (typeof SCENARIOS)[number],
  seed: number,
): Results {
  const { service, capacityPerSecond, clients } = plant;
  const where = { service, capacityPerSecond, clients, goodMs: goodMs(policy) };
  const place = JSON.stringify([where, scenario.name, seed]);
  return kept(runs, JSON.stringify([policy, place]), () => {
    const { run } = kept(contests, place, () => contest(policy, plant, scenario, seed));
    const done = new Map<Contender, Result>();
    return {
      scenario,
      seed,
      result: (contender) => kept(done, contender, () => run(contender, policy)),
    };
  });
}

function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  if (map.size > KEPT) map.delete(map.keys().next().value as K);
  return made;
}

/** The row of `flyball simulate`, with its head. */
function tableOf({ scenario, seed, result }: Results): string {
  const row: Row = {
    scenario: scenario.name,
    says: scenario.says,
    seeds: [seed],
    goodput: Object.fromEntries(
      CONTENDERS.map((contender) => [contender, result(contender).score.goodput]),
    ) as Row['goodput'],
    policy: figuresOf([result('policy').score]),
    bestPerSecond: result('best').score.goodPerSecond,
  };
  const cells = cellsOf(row);
  const widths = cells.map((cell, i) => Math.max(cell.length, HEAD[i]!.length));
  return [HEAD, cells]
    .map((line) => line.map((cell, i) => cell.padEnd(widths[i]!)).join('  '))
    .join('\n');
}
