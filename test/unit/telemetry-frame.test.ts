import { expect, test } from 'vitest';
import { telemetryFrame } from '../../src/estimate/telemetry-frame.js';
import { telemetry } from '../../src/policy/author.js';
import { policySchema, type Signal } from '../../src/policy/schema.js';
import type { TelemetryReading } from '../../src/sense/readings.js';

const READING: TelemetryReading = {
  kind: 'telemetry',
  fromMs: 8_000,
  toMs: 10_000,
  processes: 2,
  reporting: 2,
  offered: 100,
  admitted: 80,
  denied: { rate: 20 },
  ok: 60,
  failed: 20,
  timedOut: 5,
  cancelled: 0,
  latency: {},
  latencySumMs: 0,
  codes: { HTTP_503: 8, TIMEOUT: 5 },
  upstreams: { pay: { ok: 30, failed: 10, codes: { HTTP_503: 6 } } },
  dbWait: {},
  dbWaitSumMs: 0,
  poolWaiting: null,
  inFlight: 4,
  oldestMs: 1500,
  cpu: 0.6,
  memory: null,
  loopDelay: { 100: 3, 150: 1 },
  loopDelaySumMs: 44,
  generation: null,
};

function frame(written: object, reading = READING) {
  const limiter = { name: 'checkout', rate: 1, capacity: 1 };
  const { s } = policySchema.parse({ limiter, signals: { s: written } }).signals;
  const seen = telemetryFrame(s as Signal, reading, []);
  return seen && { count: seen.count, value: seen.value, ...(seen.bins && { bins: seen.bins }) };
}

test('error ratios by code and upstream: failures with it, of all answers there', () => {
  expect(frame(telemetry.errorRatio())).toEqual({ count: 80, value: 20 });
  expect(frame(telemetry.errorRatio({ code: 'HTTP_503' }))).toEqual({ count: 80, value: 8 });
  expect(frame(telemetry.errorRatio({ upstream: 'pay' }))).toEqual({ count: 40, value: 10 });
  const both = telemetry.errorRatio({ code: 'HTTP_503', upstream: 'pay' });
  expect(frame(both)).toEqual({ count: 40, value: 6 });
  // A code that nobody reported is none; an upstream of which nothing is known is unknown.
  expect(frame(telemetry.errorRatio({ code: 'OTHER' }))).toEqual({ count: 80, value: 0 });
  expect(frame(telemetry.errorRatio({ upstream: 'ship' }))).toEqual({ count: 0, value: 0 });
});

test('offered, admitted and denied, the oldest under way, and how the services fare', () => {
  expect(frame(telemetry.offered())).toEqual({ count: 1, value: 50 });
  expect(frame(telemetry.admitted())).toEqual({ count: 1, value: 40 });
  expect(frame(telemetry.deniedRatio())).toEqual({ count: 100, value: 20 });
  expect(frame(telemetry.oldest())).toEqual({ count: 1, value: 1500 });
  expect(frame(telemetry.cpu())).toEqual({ count: 1, value: 0.6 });
  expect(frame(telemetry.eventLoopDelay())).toEqual({ count: 4, value: 44 });
  expect(frame(telemetry.eventLoopDelay('p95'))).toMatchObject({
    count: 4,
    bins: expect.anything(),
  });
});

test('what no service tells is no zero', () => {
  const { cpu: _cpu, loopDelay: _delay, ...older } = READING;
  expect(frame(telemetry.memory())).toBeNull();
  expect(frame(telemetry.cpu(), older)).toBeNull();
  expect(frame(telemetry.eventLoopDelay('p95'), older)).toMatchObject({ count: 0 });
});
