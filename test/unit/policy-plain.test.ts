import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  adaptive,
  env,
  postgres,
  step,
  telemetry,
  upstreamErrors,
} from '../../src/policy/author.js';
import { definePolicy } from '../../src/policy/define.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { parsePolicy, resolvePolicy } from '../../src/policy/parse.js';
import { plainData } from '../../src/policy/plain.js';

const FULL = definePolicy({
  limiter: {
    name: 'checkout',
    rate: 100,
    capacity: 200,
    inFlightMax: 24,
    perSubject: { subject: 'user:{userId}', rate: 5, capacity: 10, follow: true },
    reserve: { default: '10%', sheddable: 0.3 },
  },
  signals: {
    p95: telemetry.latency('p95'),
    tail: telemetry.latency('p99.9'),
    errors: telemetry.errorRatio(),
    dbWait: postgres.waiting({ url: env('DATABASE_URL') }),
    upstream: upstreamErrors('SYSTEMERROR'),
  },
  objective: {
    p95: { below: '250ms', sustain: '2s' },
    errors: { below: '1%' },
    dbWait: { below: 5 },
  },
  control: adaptive(),
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  breaker: { on: 'upstream', above: 100, per: '1m', openFor: '5s' },
  whenLost: { after: '2m', rate: 50 },
  onRedisError: 'closed',
  mode: 'auto',
});

test('text becomes numbers with units last: ms and 0 … 1', () => {
  const policy = resolvePolicy(FULL);
  expect(policy.objective).toEqual({
    p95: { below: 250, weight: 1, sustain: 2000 },
    errors: { below: 0.01, weight: 1, sustain: 0 },
    dbWait: { below: 5, weight: 1, sustain: 0 },
  });
  expect(policy.breaker).toMatchObject({
    per: 60_000,
    openFor: 5000,
    openForMax: 60_000,
    minAnswers: 10,
  });
  expect(policy.limiter.reserve).toEqual({ default: 0.1, sheddable: 0.3 });
  expect(policy.signals.tail).toEqual({ source: 'telemetry', stat: 'latency', of: 0.999 });
  expect(policy.signals.dbWait).toMatchObject({ url: { env: 'DATABASE_URL' }, deadlineMs: 800 });
});

test('what came out is valid input again and comes out the same, through JSON too', () => {
  const rate = fc.double({ min: 1, max: 1e5, noNaN: true });
  const time = fc.oneof(
    fc.integer({ min: 1000, max: 60_000 }),
    fc.integer({ min: 1, max: 50 }).map((n) => `${n}s` as const),
    fc.integer({ min: 1000, max: 9999 }).map((n) => `${n}ms` as const),
  );
  fc.assert(
    fc.property(rate, rate, time, time, fc.boolean(), (own, capacity, slowFor, after, stepped) => {
      const first = resolvePolicy({
        ...FULL,
        limiter: { ...FULL.limiter, rate: own, capacity: Math.max(20, capacity) },
        control: stepped ? step({ slowFor, healthyBelow: '0.1%' }) : adaptive(),
        bounds: { rate: { min: own / 2, max: own * 2 }, inFlight: { min: 2, max: 64 } },
        whenLost: { after },
      });
      expect(resolvePolicy(first)).toEqual(first);
      const read = resolvePolicy(JSON.parse(policyJson(first)));
      expect(read).toEqual(first);
      expect(policyHash(read)).toBe(policyHash(first));
    }),
    { numRuns: 50 },
  );
});

test('any input at all gives a policy or faults, each with a message; never a throw', () => {
  const part = fc.oneof(fc.anything(), fc.constantFrom('1%', '250ms', 100, {}, [], null));
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.constantFrom(
          'limiter',
          'signals',
          'objective',
          'bounds',
          'breaker',
          'control',
          'mode',
          'x',
        ),
        fc.oneof(
          part,
          fc.dictionary(
            fc.constantFrom(
              'name',
              'rate',
              'capacity',
              'p95',
              'on',
              'above',
              'min',
              'law',
              'inFlight',
            ),
            fc.oneof(
              part,
              fc.dictionary(fc.constantFrom('min', 'max', 'below', 'source', 'stat'), part),
            ),
          ),
        ),
      ),
      (input) => {
        const result = parsePolicy(input, 'x.ts');
        if (result.faults) {
          expect(result.faults.length).toBeGreaterThan(0);
          for (const { message } of result.faults) expect(message).toMatch(/\w.*\.|: |\)$/);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test('the hash is of what the policy says, not of how it is written', () => {
  const base = resolvePolicy(FULL);
  const { limiter, ...rest } = FULL;
  const turned = resolvePolicy({
    ...rest,
    limiter,
    objective: { ...FULL.objective, p95: { sustain: 2000, below: 250 } },
  });
  expect(policyHash(turned)).toBe(policyHash(base));
  const other = resolvePolicy({ ...FULL, limiter: { ...limiter, rate: 101 } });
  expect(policyHash(other)).not.toBe(policyHash(base));
});

test('a fresh limiter gets the policy’s numbers, its bounds and its safe values', () => {
  expect(paramsFromPolicy(resolvePolicy(FULL))).toEqual({
    mode: 'auto',
    state: 'closed',
    generation: 0,
    rate: 100,
    capacity: 200,
    inFlightMax: 24,
    subjectRate: 5,
    subjectCapacity: 10,
    subjectFollow: 1,
    policyRate: 100,
    minRate: 20,
    maxRate: 400,
    minCapacity: 200,
    maxCapacity: 200,
    minInFlight: 2,
    maxInFlight: 64,
    openUntil: 0,
    openForMs: 5000,
    probeRate: 1,
    lostAfterMs: 120_000,
    lostOverMs: 30_000,
    safeRate: 50,
    safeInFlight: 24,
    reserveDefault: 0.1,
    reserveSheddable: 0.3,
    frozenUntil: 0,
    pinnedUntil: 0,
    holdBreaker: 0,
    heldBy: '',
    onRedisError: 'closed',
    subject: 'user:{userId}',
    algorithm: '',
    terms: '',
    subjectRules: 0,
    subjectTerms: '',
    rollout: '',
    windowMs: 0,
    cells: 0,
  });
});

test('bounds that are left out are the policy’s own number; no cap is 0, no subject is -1', () => {
  const policy = resolvePolicy({ limiter: { name: 'a', rate: 0.5, capacity: 3 } });
  expect(paramsFromPolicy(policy)).toMatchObject({
    mode: 'recommend',
    minRate: 0.5,
    maxRate: 0.5,
    minCapacity: 3,
    maxCapacity: 3,
    inFlightMax: 0,
    minInFlight: 0,
    maxInFlight: 0,
    safeRate: 0.5,
    safeInFlight: 0,
    subjectRate: -1,
    subjectCapacity: 0,
    subjectFollow: 0,
    probeRate: 0.5,
    onRedisError: '',
    subject: '',
  });
});

test('plain data is copied; code, instances and circles are named, and nothing runs', () => {
  const circle: Record<string, unknown> = { a: 1 };
  circle.self = circle;
  const { faults } = plainData({
    f: () => 1,
    d: new Date(),
    deep: [{ m: new Map() }],
    circle,
    n: 5n,
  });
  expect(faults.map(({ field }) => field)).toEqual(['f', 'd', 'deep.0.m', 'circle.self', 'n']);
  const shared = { x: 1 };
  expect(plainData({ a: shared, b: shared, c: undefined })).toEqual({
    value: { a: { x: 1 }, b: { x: 1 } },
    faults: [],
  });
  const trap = JSON.parse('{"__proto__": {"polluted": true}}');
  const { value } = plainData(trap);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(Object.keys(value as object)).toEqual(['__proto__']);
});
