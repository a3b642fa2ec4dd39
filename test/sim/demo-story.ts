/** The story of the demo on the small plant: calm → surge → database at half speed → upstream fails → calm. Stage: test. */
import { type Policy, policySchema } from '../../src/testing.js';
import { type LoopResult, runLoop } from './loop.js';
import { createPlant, type PlantPhase, type PlantSecond } from './plant.js';

/** 10 connections held for 100 ms each. */
export const KNEE = 100;

export const STORY: readonly PlantPhase[] = [
  { seconds: 11, rate: 0.4 * KNEE },
  { seconds: 15, rate: 10 * KNEE },
  { seconds: 20, rate: 10 * KNEE, slowdown: 2 },
  { seconds: 10, rate: 10 * KNEE, upstreamFails: true },
  { seconds: 19, rate: 0.4 * KNEE },
];

export function demoPolicy(
  overrides: Partial<Parameters<typeof policySchema.parse>[0] & object> = {},
): Policy {
  return policySchema.parse({
    limiter: { name: 'checkout', rate: 100, capacity: 50, inFlightMax: 24 },
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      errors: { source: 'telemetry', stat: 'errorRatio' },
      dbWait: { source: 'telemetry', stat: 'poolWaiting' },
      upstream: { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' },
    },
    objective: { p95: { below: '250ms' }, errors: { below: '1%' }, dbWait: { below: 5 } },
    control: { law: 'adaptive' },
    bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
    breaker: { on: 'upstream', above: 20, per: '5s', openFor: '3s', probeRate: 2 },
    mode: 'auto',
    ...overrides,
  });
}

export function playStory(policy: Policy | null, seed: number, phases = STORY) {
  const plant = createPlant({
    phases,
    seed,
    connections: 10,
    holdMs: 100,
    clientTimeoutMs: 2000,
    goodMs: 1000,
  });
  let loop: LoopResult = { changes: [], openMs: [], states: [] };
  if (policy === null) plant.run(plant.durationMs);
  else loop = runLoop(policy, plant);
  return { seconds: plant.seconds, loop };
}

/** Means over the seconds of a phase from `after` on. */
export function phaseFigures(seconds: readonly PlantSecond[], phase: number, after = 0) {
  const of = seconds.filter((second) => second.phase === phase && second.sincePhase >= after);
  const latencies = of.flatMap((second) => second.latencies).sort((a, b) => a - b);
  return {
    goodPerSecond: of.reduce((sum, second) => sum + second.good, 0) / Math.max(1, of.length),
    p95Ms: latencies[Math.floor(0.95 * latencies.length)] ?? 0,
    poolWaiting: of.reduce((sum, second) => sum + second.poolWaiting, 0) / Math.max(1, of.length),
  };
}
