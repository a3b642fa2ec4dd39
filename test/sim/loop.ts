/** The loop in virtual time: plant → estimate → turn → plant, with params kept as Redis would. Stage: test. */
import {
  createDecideState,
  createEstimateState,
  type Decision,
  enforcedNumbers,
  estimate,
  type InForceView,
  type Policy,
  type Readings,
  type Sample,
  turn,
} from '../../src/testing.js';
import type { Plant } from './plant.js';

export interface Change {
  atMs: number;
  decision: Decision;
  sample: Sample;
}

export interface LoopResult {
  changes: Change[];
  /** ms at rate zero, by phase start order of the plant. */
  openMs: number[];
  states: { atMs: number; state: InForceView['state'] }[];
}

/** Runs the plant to its end with a tick a second; a decision takes `writeMs` to be in force. */
export function runLoop(policy: Policy, plant: Plant, tickMs = 1000, writeMs = 20): LoopResult {
  let estimates = createEstimateState();
  let state = createDecideState(policy);
  const { rate, capacity, inFlightMax = 0 } = policy.limiter;
  const stored = { state: 'closed' as InForceView['state'], rate, capacity, inFlightMax };
  let generation = 0;
  let revision = 1;
  let openUntilMs = 0;
  let changedAtMs = 0;
  let stateAtMs = 0;
  const result: LoopResult = { changes: [], openMs: [], states: [] };
  const enforce = () => {
    const numbers = enforcedNumbers(policy, stored);
    plant.enforce({ ...numbers, inFlightMax: numbers.inFlightMax || 1e9, generation });
  };
  enforce();
  for (let nowMs = tickMs; nowMs <= plant.durationMs; nowMs += tickMs) {
    if (stored.state === 'open' && nowMs >= openUntilMs) {
      plant.run(openUntilMs);
      stored.state = 'half-open';
      stateAtMs = openUntilMs;
      enforce();
    }
    plant.run(nowMs);
    const telemetry = plant.telemetry();
    const readings: Readings = {
      atMs: nowMs,
      telemetry: telemetry ?? { kind: 'missing', reason: 'no_data' },
      signals: {},
    };
    const next = estimate(policy, estimates, readings, tickMs);
    estimates = next.state;
    const target = {
      rate: stored.rate,
      capacity: stored.capacity,
      inFlightMax: stored.inFlightMax,
    };
    const sample: Sample = {
      nowMs,
      dtMs: tickMs,
      ...next.estimates,
      inForce: {
        epoch: 1,
        revision,
        generation,
        mode: 'auto',
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
    const { state: after, decision } = turn(policy, state, sample);
    state = after;
    result.states.push({ atMs: nowMs, state: stored.state });
    if (!decision.change) continue;
    plant.run(nowMs + writeMs);
    revision++;
    changedAtMs = nowMs;
    if (decision.state !== stored.state) stateAtMs = nowMs;
    if (decision.state === 'open') {
      generation++;
      openUntilMs = nowMs + (decision.openForMs ?? 5000);
    }
    stored.state = decision.state;
    stored.rate = decision.rate;
    stored.capacity = decision.capacity;
    stored.inFlightMax = decision.inFlightMax;
    enforce();
    result.changes.push({ atMs: nowMs, decision, sample });
  }
  plant.run(plant.durationMs);
  return result;
}
