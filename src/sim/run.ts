/** The closed loop in virtual time: plant → readings → controller → plant. Stage: simulate. */
import { tripsOf } from '../decide/trips.js';
import type { Policy } from '../policy/schema.js';
import type { Reading, Readings } from '../sense/readings.js';
import type { Controller } from './controllers.js';
import type { Second } from './counts.js';
import { createPlant, type Plant } from './plant.js';
import { loadOf, type Scenario } from './scenario.js';
import {
  type ClientModel,
  DEFAULT_CLIENTS,
  latencyObjectiveMs,
  type ServiceModel,
} from './service.js';
import type { Traffic } from './traffic.js';

export interface RunOptions {
  policy: Policy;
  scenario: Scenario;
  service: ServiceModel;
  /** What the service carries: the unit of the scenario's load. */
  capacityPerSecond: number;
  clients?: ClientModel;
  seed: number;
  /** Time between ticks. Default 1 s. */
  tickMs?: number;
  /** Arrivals drawn before, from the same scenario and seed. */
  traffic?: Traffic;
}

/** A decision takes so long to be in force. */
const WRITE_MS = 20;
const GOOD_MS = 1000;

/** Runs the scenario once. Pure: the same options and an equal controller give the same seconds. */
export function runScenario(options: RunOptions, controller: Controller): Second[] {
  const plant = plantOf(options);
  const { policy, scenario, tickMs } = options;
  closeLoop(plant, controller, { policy, durationMs: 1000 * scenario.durationS, tickMs });
  return plant.seconds;
}

/** The plant of a run at its start; `lean`: it keeps only what is answered in each second. */
export function plantOf(options: RunOptions, lean = false): Plant {
  const { policy, scenario, service, capacityPerSecond, seed, traffic } = options;
  return createPlant({
    service,
    clients: { ...(options.clients ?? DEFAULT_CLIENTS), ...scenario.clients },
    load: loadOf(scenario, capacityPerSecond),
    durationMs: 1000 * scenario.durationS,
    goodMs: goodMs(policy),
    seed,
    failureCode: failureCode(policy),
    lean,
    ...(traffic && { traffic }),
  });
}

/** Runs a plant to its end under a controller that is asked at each tick. */
export function closeLoop(
  plant: Plant,
  controller: Controller,
  options: { policy: Policy; durationMs: number; tickMs?: number | undefined },
): void {
  const { policy, durationMs, tickMs = 1000 } = options;
  plant.enforce(controller.start);
  for (let nowMs = tickMs; nowMs <= durationMs; nowMs += tickMs) {
    while (controller.dueMs < nowMs) {
      plant.run(controller.dueMs);
      plant.enforce(controller.due());
    }
    plant.run(nowMs);
    const telemetry = plant.telemetry();
    const signals = gauges(policy, plant, nowMs, telemetry.kind === 'missing');
    const next = controller.tick({ atMs: nowMs, telemetry, signals }, nowMs, tickMs);
    if (next === null) continue;
    plant.run(nowMs + WRITE_MS);
    plant.enforce(next);
  }
  plant.run(durationMs);
}

/** An answer is good within the tightest objective for response time. */
export function goodMs(policy: Policy): number {
  return latencyObjectiveMs(policy) ?? GOOD_MS;
}

/** The code that a level of the breaker counts, so that the scenario's failures are its failures. */
function failureCode(policy: Policy): string {
  for (const { signal } of tripsOf(policy)) {
    if (signal?.stat === 'errors' && signal.code !== undefined) return signal.code;
  }
  return 'FAILED';
}

/** Signals that do not come from telemetry: the plant's database stands for every database. */
function gauges(policy: Policy, plant: Plant, nowMs: number, blind: boolean): Readings['signals'] {
  const signals: Record<string, Reading> = {};
  for (const [name, signal] of Object.entries(policy.signals)) {
    if (signal.source === 'telemetry') continue;
    const { waiting, busyRatio } = plant.pool();
    const value =
      signal.stat === 'waiting' ? waiting : signal.stat === 'connectionsRatio' ? busyRatio : null;
    signals[name] =
      value === null || blind
        ? { kind: 'missing', reason: 'no_data' }
        : { kind: 'value', value, atMs: nowMs, count: 1 };
  }
  return signals;
}
