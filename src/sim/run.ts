/** The closed loop in virtual time: plant → readings → controller → plant. Stage: simulate. */
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
  /** Stop early: searching for the best constant needs one phase after the other. */
  untilS?: number;
}

/** A decision takes so long to be in force. */
const WRITE_MS = 20;
const GOOD_MS = 1000;

/** Runs the scenario once. Pure: the same options and an equal controller give the same seconds. */
export function runScenario(options: RunOptions, controller: Controller): Second[] {
  const { policy, scenario, service, capacityPerSecond, seed, tickMs = 1000 } = options;
  const durationMs = (options.untilS ?? scenario.durationS) * 1000;
  const plant = createPlant({
    service,
    clients: { ...(options.clients ?? DEFAULT_CLIENTS), ...scenario.clients },
    load: loadOf(scenario, capacityPerSecond),
    durationMs,
    goodMs: goodMs(policy),
    seed,
    failureCode: failureCode(policy),
  });
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
  return plant.seconds.slice(0, Math.round(durationMs / 1000));
}

/** An answer is good within the tightest objective for response time. */
export function goodMs(policy: Policy): number {
  return latencyObjectiveMs(policy) ?? GOOD_MS;
}

/** The code that the breaker's signal counts, so that the scenario's failures are its failures. */
function failureCode(policy: Policy): string {
  const on = policy.breaker && policy.signals[policy.breaker.on];
  return (on?.stat === 'errors' && on.code) || 'FAILED';
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
