/** Who moves the limits in a simulation: a policy's own pipeline, or one of those it is compared with. Stage: simulate. */
import { enforcedNumbers } from '../decide/enforced.js';
import { createDecideState } from '../decide/state.js';
import type { Decision, InForceView, Sample } from '../decide/types.js';
import { createEstimateState, estimate } from '../estimate/estimate.js';
import { turn } from '../guard/turn.js';
import type { Policy } from '../policy/schema.js';
import type { Readings } from '../sense/readings.js';
import { type Enforced, NO_LIMIT } from './gate.js';

export interface Controller {
  /** In force from the start. */
  readonly start: Enforced;
  /** One tick: what is in force from `writeMs` later on, or null when nothing changes. */
  tick(readings: Readings, nowMs: number, dtMs: number): Enforced | null;
  /** Time alone changes what is in force at this moment (an open breaker half-opens); Infinity: never. */
  readonly dueMs: number;
  due(): Enforced;
}

export interface Change {
  atMs: number;
  decision: Decision;
  sample: Sample;
}

/** No limit at all. */
export function noLimit(): Controller {
  return constant(NO_LIMIT);
}

/** One rate and cap for ever; `inFlightMax` 0: no cap. */
export function constant(numbers: Omit<Enforced, 'generation'>): Controller {
  const start = { ...numbers, generation: 0 };
  return { start, tick: () => null, dueMs: Number.POSITIVE_INFINITY, due: () => start };
}

/**
 * The policy in mode `auto`: the same estimate and `turn` that the daemon runs, with the params kept as Redis would.
 * Every change is handed to `onChange`. In mode `recommend` the law knows that nothing answers to its changes.
 */
export function byPolicy(
  policy: Policy,
  onChange: (change: Change) => void = () => {},
  mode: InForceView['mode'] = 'auto',
): Controller {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  const stored = { state: 'closed' as Decision['state'], rate, capacity, inFlightMax };
  let generation = 0;
  let revision = 1;
  let openUntilMs = Number.POSITIVE_INFINITY;
  let changedAtMs = 0;
  let stateAtMs = 0;
  const enforced = (): Enforced => ({ ...enforcedNumbers(policy, stored), generation });

  return {
    start: enforced(),
    get dueMs() {
      return stored.state === 'open' ? openUntilMs : Number.POSITIVE_INFINITY;
    },
    due() {
      stored.state = 'half-open';
      stateAtMs = openUntilMs;
      return enforced();
    },
    tick(readings, nowMs, dtMs) {
      const next = estimate(policy, estimates, readings, dtMs);
      estimates = next.state;
      const target = {
        rate: stored.rate,
        capacity: stored.capacity,
        inFlightMax: stored.inFlightMax,
      };
      const sample: Sample = {
        nowMs,
        dtMs,
        ...next.estimates,
        inForce: {
          epoch: 1,
          revision,
          generation,
          mode,
          gliding: false,
          ...enforcedNumbers(policy, stored),
          state: stored.state,
          sinceChangeMs: nowMs - changedAtMs,
          inStateMs: nowMs - stateAtMs,
          held: 'none',
          holdBreaker: false,
          target,
        },
      };
      const turned = turn(policy, state, sample);
      state = turned.state;
      const { decision } = turned;
      if (!decision.change) return null;
      revision++;
      changedAtMs = nowMs;
      if (decision.state !== stored.state) stateAtMs = nowMs;
      if (decision.state === 'open') {
        generation++;
        openUntilMs = nowMs + (decision.openForMs ?? policy.breaker?.openFor ?? 5000);
      }
      stored.state = decision.state;
      stored.rate = decision.rate;
      stored.capacity = decision.capacity;
      stored.inFlightMax = decision.inFlightMax;
      onChange({ atMs: nowMs, decision, sample });
      return enforced();
    },
  };
}

/** The same policy under the rule of thumb, for comparison. */
export function withStepRule(policy: Policy): Policy {
  return {
    ...policy,
    control: {
      law: 'step',
      slowAboveMs: 500,
      slowFor: 30_000,
      down: 0.8,
      healthyBelow: 0.001,
      healthyFor: 300_000,
      up: 1.1,
      minAnswersPerMinute: 10,
      dbWaitsFor: 30_000,
    },
  };
}
