/** The simulator's plant against queueing theory: M/M/c by Erlang C, M/G/1 by Pollaczek and Khinchine, and the USL. */
import { describe, expect, test } from 'vitest';
import { binValue } from '../../src/histogram.js';
import type { TelemetryReading } from '../../src/sense/readings.js';
import { createPlant } from '../../src/sim/plant.js';
import type { Times } from '../../src/sim/random.js';
import { DEFAULT_CLIENTS, type ServiceModel, serviceOf } from '../../src/sim/service.js';

const QUEUE: ServiceModel = {
  workers: 1,
  queueMax: 1e9,
  app: { kind: 'exponential', meanMs: 10 },
  alpha: 0,
  beta: 0,
  pool: null,
  upstreamMs: 0,
  upstreamFailMs: 0,
};

/** Runs an open queue for long; mean response time of all answers (ms) and good answers a second. */
function run(service: ServiceModel, perSecond: number, seconds: number, seed = 1) {
  const plant = createPlant({
    service,
    clients: { ...DEFAULT_CLIENTS, timeoutMs: 1e9 },
    load: {
      at: () => ({
        arrivalsPerSecond: perSecond,
        speed: 1,
        replicas: 1,
        databaseSpeed: 1,
        failRatio: 0,
        blind: false,
      }),
    },
    durationMs: seconds * 1000,
    goodMs: 1e9,
    seed,
    failureCode: 'FAILED',
  });
  plant.run(seconds * 1000);
  let answers = 0;
  let sumMs = 0;
  let waitMs = 0;
  for (let t = plant.telemetry(); t.kind === 'telemetry'; t = plant.telemetry()) {
    const of: TelemetryReading = t;
    answers += of.ok;
    sumMs += of.latencySumMs;
    waitMs += of.dbWaitSumMs;
  }
  const good = plant.seconds.slice(5).reduce((sum, { good }) => sum + good, 0);
  return { meanMs: sumMs / answers, meanWaitMs: waitMs / answers, perSecond: good / (seconds - 5) };
}

/** Mean wait in M/M/c: C(c, a) ÷ (c·μ − λ). */
function erlangWaitMs(servers: number, meanMs: number, perSecond: number): number {
  const a = (perSecond * meanMs) / 1000;
  let blocking = 1;
  for (let k = 1; k <= servers; k++) blocking = (a * blocking) / (k + a * blocking);
  const waits = blocking / (1 - (a / servers) * (1 - blocking));
  return waits / (servers / meanMs - perSecond / 1000);
}

describe.each([
  [1, 0.5],
  [1, 0.8],
  [4, 0.7],
  [16, 0.9],
])('M/M/%i at %f of its capacity', (servers, load) => {
  const perSecond = (load * servers * 1000) / 10;
  const expected = erlangWaitMs(servers, 10, perSecond);

  test('workers wait as Erlang C says', () => {
    const { meanMs } = run({ ...QUEUE, workers: servers }, perSecond, 120_000 / perSecond);
    expect(meanMs).toBeGreaterThan(0.94 * (10 + expected));
    expect(meanMs).toBeLessThan(1.06 * (10 + expected));
  });

  test('so do connections of the pool, and the wait is told', () => {
    const service: ServiceModel = {
      ...QUEUE,
      workers: 1e6,
      app: { kind: 'constant', meanMs: 1 },
      pool: { connections: servers, hold: { kind: 'exponential', meanMs: 10 } },
    };
    const { meanWaitMs } = run(service, perSecond, 120_000 / perSecond);
    expect(meanWaitMs).toBeGreaterThan(0.88 * expected);
    expect(meanWaitMs).toBeLessThan(1.12 * expected);
  });
});

describe('M/G/1', () => {
  const cases: [string, Times, number][] = [
    ['constant', { kind: 'constant', meanMs: 10 }, 0],
    ['lognormal, cv 0.8', { kind: 'lognormal', meanMs: 10, cv: 0.8 }, 0.64],
    ['exponential', { kind: 'exponential', meanMs: 10 }, 1],
  ];
  test.each(cases)('%s: ρ · (1 + cv²) · s ÷ 2(1 − ρ)', (_, app, cv2) => {
    const expected = 10 + (0.7 * (1 + cv2) * 10) / (2 * 0.3);
    const { meanMs } = run({ ...QUEUE, app }, 70, 2500);
    expect(meanMs).toBeGreaterThan(0.94 * expected);
    expect(meanMs).toBeLessThan(1.06 * expected);
  });
});

test('nothing is lost: what is offered is answered', () => {
  expect(run(QUEUE, 50, 200).perSecond).toBeCloseTo(50, -1);
});

describe('a service with contention', () => {
  const service = serviceOf({ capacityPerSecond: 200, leisureMs: 50 });

  test('at leisure it takes its time, at nine tenths of the capacity it carries all', () => {
    expect(run(service, 5, 200).meanMs).toBeGreaterThan(45);
    expect(run(service, 5, 200).meanMs).toBeLessThan(56);
    expect(run(service, 180, 60).perSecond).toBeGreaterThan(172);
  });

  test('far past the knee it collapses: more offered, less answered', () => {
    expect(run(service, 240, 60).perSecond).toBeGreaterThan(225);
    expect(run(service, 400, 60).perSecond).toBeLessThan(170);
  });
});

test('the same seed gives the same run, another one another', () => {
  const one = () => run(QUEUE, 50, 60, 7);
  expect(one()).toEqual(one());
  expect(run(QUEUE, 50, 60, 8)).not.toEqual(one());
  expect(binValue(0)).toBeCloseTo(1, 1);
});
