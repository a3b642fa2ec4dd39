/** Policies and histories for tests of the simulator. Stage: test. */

import { createPlant } from '../../src/sim/plant.js';
import { DEFAULT_CLIENTS, type ServiceModel } from '../../src/sim/service.js';
import type { HistoryPoint, PolicyInput } from '../../src/testing.js';

/** A policy with objective and breaker for a service of about `rate` requests a second. */
export function policyAt(rate: number, overrides: Partial<PolicyInput> = {}): PolicyInput {
  const inFlightMax = Math.max(4, Math.round(0.24 * rate));
  return {
    limiter: { name: `shop-${rate}`, rate, capacity: Math.max(10, rate / 2), inFlightMax },
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      errors: { source: 'telemetry', stat: 'errorRatio' },
    },
    objective: { p95: { below: '250ms' } },
    control: { law: 'adaptive' },
    bounds: {
      rate: { min: rate / 10, max: 4 * rate },
      inFlight: { min: 2, max: Math.max(8, Math.round(0.8 * rate)) },
    },
    breaker: { on: 'errors', above: '50%', openFor: '5s' },
    mode: 'auto',
    ...overrides,
  };
}

/** What a service would have reported, a second a point: load that swings between a tenth and `top` of `perSecond`. */
export function historyOf(
  service: ServiceModel,
  perSecond: number,
  { top = 1.2, seconds = 1200, seed = 1 } = {},
): HistoryPoint[] {
  const swing = (ms: number) => 0.5 - 0.5 * Math.cos((4 * Math.PI * ms) / (1000 * seconds));
  const usual = { speed: 1, replicas: 1, databaseSpeed: 1, failRatio: 0, blind: false };
  const plant = createPlant({
    service,
    clients: DEFAULT_CLIENTS,
    load: {
      at: (ms) => ({ ...usual, arrivalsPerSecond: perSecond * (0.1 + (top - 0.1) * swing(ms)) }),
    },
    durationMs: 1000 * seconds,
    goodMs: 1e9,
    seed,
    failureCode: 'FAILED',
  });
  // Somebody has limited it, or it would have collapsed.
  plant.enforce({ rate: 1.05 * perSecond, capacity: perSecond, inFlightMax: 0, generation: 0 });
  plant.run(1000 * seconds);
  const points: HistoryPoint[] = [];
  for (let t = plant.telemetry(); t.kind === 'telemetry'; t = plant.telemetry()) {
    const answers = t.ok + t.failed;
    if (answers === 0) continue;
    const okPerSecond = (1000 * t.ok) / (t.toMs - t.fromMs);
    points.push({ atMs: t.toMs, okPerSecond, meanMs: t.latencySumMs / answers });
  }
  return points;
}
