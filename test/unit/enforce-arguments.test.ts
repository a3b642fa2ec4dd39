import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import {
  checkCall,
  checkCost,
  checkDuration,
  checkFunction,
  checkSubject,
} from '../../src/enforce/arguments.js';
import { collectMetrics } from '../../src/enforce/metrics.js';
import { resolveOptions } from '../../src/enforce/options.js';
import { protect } from '../../src/enforce/protect.js';
import { FlyballTypeError } from '../../src/errors.js';
import { createLimiter, createQueueGate, FlyballDeniedError } from '../../src/index.js';

test.each([
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -5,
  -0,
  0,
  '5',
  ' 5 ',
  '0x10',
  Number('1e309'),
  null,
  undefined,
  true,
  [1],
  {},
  5n,
  0.0000001,
  1.0000001,
  1e10,
])('C18: cost %s is a TypeError that names it', (cost) => {
  expect(() => checkCost(cost)).toThrow(TypeError);
  expect(() => checkCost(cost)).toThrow(FlyballTypeError);
  expect(() => checkCost(cost)).toThrow(/cost is .+ at most 6 decimals/);
});

test('C18: -0 is told apart from 0 in the error', () => {
  expect(() => checkCost(-0)).toThrow(/cost is -0/);
});

test.each([1, 1.5, 0.1, 0.000001, 123456.654321, 1e9])('C18: cost %s passes', (cost) => {
  expect(() => checkCost(cost)).not.toThrow();
});

test.each(['', 5, {}, ['a'], '\ud800', 'a\udfffb', 'x'.repeat(65_537)])(
  'C33: subject %j is a TypeError',
  (subject) => {
    expect(() => checkSubject(subject)).toThrow(FlyballTypeError);
  },
);

test.each([
  '{',
  '}',
  '{}',
  'a:b',
  '\u00c9',
  'E\u0301',
  '\n',
  '__proto__',
  '😀',
  'x'.repeat(10_240),
  null,
  undefined,
])('C33: subject %j passes', (subject) => {
  expect(() => checkSubject(subject)).not.toThrow();
});

test('a duration error names field, value and what is allowed', () => {
  expect(() => checkDuration('deadlineMs', '50ms', 1, 60_000)).toThrow(
    /deadlineMs is "50ms".+from 1 to 60000/,
  );
});

test.each([
  [{ name: 'a', burst: 5 }, /does not know "burst".+capacity/],
  [{ name: 'a', burst: 5 }, /Say capacity \(most tokens held\)/],
  [{ name: 'a', ratePerSecond: 5 }, /Say rate \(tokens per second\)/],
  [{ name: 'a', onRedisEror: 'open' }, /Did you mean onRedisError\?/],
  [{ name: 'a', prefix: 'a b' }, /prefix is "a b".+letters, digits/],
  [
    { name: 'a', perSubject: { limit: 10, window: '1m' } },
    /perSubject does not know "limit".+Say rate/,
  ],
  [{ name: 'A b' }, /limiter name "A b"/],
  [{ name: 'a', rate: 0 }, /rate is 0/],
  [{ name: 'a', rate: Number.NaN }, /rate is NaN/],
  [{ name: 'a', capacity: 5 }, /rate is missing/],
  [{ name: 'a', rate: 5, inFlightMax: 2.5 }, /inFlightMax is 2.5/],
  [{ name: 'a', deadlineMs: 0 }, /deadlineMs is 0/],
  [{ name: 'a', deadlineMs: Number.POSITIVE_INFINITY }, /deadlineMs is Infinity/],
  [{ name: 'a', onRedisError: 'fail' }, /onRedisError is "fail"/],
  [{ name: 'a', perSubject: { subject: 'user', rate: 1, capacity: 1 } }, /share one bucket/],
])('createLimiter refuses %j', (options, message) => {
  expect(() => resolveOptions(options as never)).toThrow(message);
  expect(() => resolveOptions(options as never)).toThrow(FlyballTypeError);
});

test('what take and run are given beside the subject is checked before anything is sent', () => {
  for (const [take, signal, what] of [
    [null, undefined, /second argument of take is null/],
    [5, undefined, /second argument of take is 5/],
    [{}, {}, /signal is an object.*AbortController/],
    [{}, null, /signal is null/],
  ] as const) {
    expect(() => checkCall(take, signal)).toThrow(FlyballTypeError);
    expect(() => checkCall(take, signal)).toThrow(what);
  }
  expect(() => checkCall({}, AbortSignal.timeout(1000))).not.toThrow();
  expect(() => checkFunction(null)).toThrow(/second argument of run is null/);
});

test('an option that does not exist is told by everything that takes options', () => {
  const limiter = createLimiter({ name: 'a', url: 'redis://127.0.0.1:1', onWarning: () => {} });
  const cases: [() => unknown, RegExp][] = [
    [
      () => protect('a', () => 1, { timeout: 5 } as never),
      /protect does not know "timeout".+Say timeoutMs/,
    ],
    [
      () => protect('a', () => 1, { limiter, breaker: { resetTimeout: 5 } } as never),
      /protect: breaker does not know "resetTimeout".+Say openMs/,
    ],
    [() => createQueueGate(limiter, { maxDelay: 5 } as never), /Did you mean maxDelayMs\?/],
    [
      () => createQueueGate(limiter, { costs: { urgent: 5 } } as never),
      /It takes critical, default/,
    ],
    [() => collectMetrics(limiter, { registry: 1 } as never), /Say register\./],
    [() => collectMetrics(limiter, new Registry() as never), /It takes register/],
  ];
  for (const [call, message] of cases) {
    expect(call).toThrow(FlyballTypeError);
    expect(call).toThrow(message);
  }
  return limiter.close();
});

test('a denial is known by its name, as by its class', async () => {
  const limiter = createLimiter({
    name: 'a',
    url: 'redis://127.0.0.1:1',
    onRedisError: 'closed',
    deadlineMs: 10,
    onWarning: () => {},
  });
  const denied = await limiter.run(null, () => 1).catch((error: unknown) => error);
  expect(denied).toBeInstanceOf(FlyballDeniedError);
  expect((denied as Error).name).toBe('FlyballDeniedError');
  await limiter.close();
});
