/** The story of the demo on the plant: calm → surge → database at half speed → upstream fails → calm. Stage: test. */
import { addBins, quantileOfBins } from '../../src/histogram.js';
import { byPolicy, type Change, noLimit } from '../../src/sim/controllers.js';
import type { Second } from '../../src/sim/counts.js';
import { createPlant } from '../../src/sim/plant.js';
import { closeLoop } from '../../src/sim/run.js';
import { type Policy, policySchema } from '../../src/testing.js';

/** 10 connections held for 100 ms each. */
export const KNEE = 100;

export interface StoryPhase {
  seconds: number;
  /** Arrivals a second, before retries. */
  rate: number;
  databaseSpeed?: number;
  upstreamFails?: boolean;
}

export const STORY: readonly StoryPhase[] = [
  { seconds: 11, rate: 0.4 * KNEE },
  { seconds: 15, rate: 10 * KNEE },
  { seconds: 20, rate: 10 * KNEE, databaseSpeed: 0.5 },
  { seconds: 10, rate: 10 * KNEE, upstreamFails: true },
  { seconds: 19, rate: 0.4 * KNEE },
];

export interface StorySecond extends Second {
  phase: number;
  /** Seconds since the phase began. */
  sincePhase: number;
}

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

/** Connections are what is scarce; clients try once more after a timeout or a failure. */
export function playStory(policy: Policy | null, seed: number, phases = STORY) {
  const starts: number[] = [];
  let durationS = 0;
  for (const { seconds } of phases) {
    starts.push(durationS);
    durationS += seconds;
  }
  const phaseAt = (second: number) => starts.findLastIndex((start) => second >= start);
  const plant = createPlant({
    service: {
      workers: 1e9,
      queueMax: 0,
      app: { kind: 'constant', meanMs: 0 },
      alpha: 0,
      beta: 0,
      pool: { connections: 10, hold: { kind: 'lognormal', meanMs: 100, cv: 0.23 } },
      upstreamMs: 20,
      upstreamFailMs: 1,
    },
    clients: { timeoutMs: 2000, retries: 1, backoffMs: 100, retryDenied: false },
    load: {
      at(ms) {
        const { rate, databaseSpeed = 1, upstreamFails } = phases[phaseAt(ms / 1000)]!;
        const fails = { failRatio: upstreamFails ? 1 : 0, blind: false };
        return { arrivalsPerSecond: rate, speed: 1, replicas: 1, databaseSpeed, ...fails };
      },
    },
    durationMs: 1000 * durationS,
    goodMs: 1000,
    seed,
    failureCode: 'SYSTEMERROR',
  });
  const changes: Change[] = [];
  const controller = policy === null ? noLimit() : byPolicy(policy, (one) => changes.push(one));
  closeLoop(plant, controller, { policy: policy ?? demoPolicy(), durationMs: 1000 * durationS });
  const seconds = plant.seconds.map((second, i): StorySecond => {
    const phase = phaseAt(i);
    return { ...second, phase, sincePhase: i - starts[phase]! };
  });
  return { seconds, changes };
}

/** Means over the seconds of a phase from `after` on. */
export function phaseFigures(seconds: readonly StorySecond[], phase: number, after = 0) {
  const of = seconds.filter((second) => second.phase === phase && second.sincePhase >= after);
  const latency = {};
  for (const second of of) addBins(latency, second.latency);
  return {
    goodPerSecond: of.reduce((sum, second) => sum + second.good, 0) / Math.max(1, of.length),
    p95Ms: quantileOfBins(latency, 0.95) ?? 0,
    poolWaiting: of.reduce((sum, second) => sum + second.queue, 0) / Math.max(1, of.length),
  };
}
