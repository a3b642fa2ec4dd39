/** How a policy with faults is answered: all at once, by field, value and what is allowed, in our words, without secrets. */
import { expect, test } from 'vitest';
import { formatFault, PolicyError } from '../../src/errors.js';
import { resolvePolicy } from '../../src/policy/parse.js';
import { faultsOf, LIMITER, only, P95, UPSTREAM } from '../support/policy-faults.js';

test('C87: every fault of a file at once, each with field, value and what is allowed', () => {
  const faults = faultsOf({
    limiter: { name: 'Check Out', rate: '10/s', burst: 20, capacity: 0.5, windowMS: 1000 },
    signals: { p95: P95, '1st': P95 },
    objective: { p95: { below: '1%' }, p59: { below: '250ms' } },
    bounds: { rate: { min: 500, max: 100 } },
    breaker: { on: 'upstrem', above: 100, treshold: 3 },
    mode: 'automatic',
  });
  expect(faults.sort()).toEqual([
    'bounds.rate.min is 500 but bounds.rate.max is 100. Swap them.',
    'breaker.on names no signal: there is no "upstrem" in signals. Use one of: p95, 1st.',
    expect.stringMatching(/^breaker\.treshold is not a field\. Allowed: on, above, per/),
    'limiter.burst is not our word. Say capacity (most tokens held).',
    'limiter.capacity is 0.5, not a number (tokens), at least 1 and at most 1000000000.',
    expect.stringMatching(/^limiter\.name is "Check Out", not a name \(1 to 64 of a-z/),
    'limiter.rate is "10/s", not a number (tokens per second), at least 0.000001 and at most 1000000. Write 10, no quotes.',
    expect.stringMatching(/^limiter\.windowMS is not our word\. A token bucket has no window/),
    'mode is "automatic", not one of "off", "shadow", "recommend", "auto".',
    'objective.p59 names no signal: there is no "p59" in signals. Use one of: p95, 1st.',
    expect.stringMatching(
      /^objective\.p95\.below is "1%", but signal "p95" is a time: write '250ms'/,
    ),
    expect.stringMatching(/^signals\.1st is not a plain identifier/),
  ]);
});

test.each([
  ['rat', 1, 'limiter.rat is not a field. Did you mean rate?'],
  ['capcity', 1, 'limiter.capcity is not a field. Did you mean capacity?'],
  ['inflightMax', 1, 'limiter.inflightMax is not a field. Did you mean inFlightMax?'],
  [
    'limit',
    1,
    'limiter.limit is not our word. Say rate (tokens per second) or capacity (most tokens held).',
  ],
  [
    'max',
    1,
    'limiter.max is not our word. Say rate (tokens per second) or capacity (most tokens held).',
  ],
  ['burst', 1, 'limiter.burst is not our word. Say capacity (most tokens held).'],
  [
    'concurrency',
    1,
    'limiter.concurrency is not our word. Say inFlightMax (most admitted requests under way).',
  ],
])('C87: limiter.%s is answered with our word', (field, value, said) => {
  expect(only({ limiter: { ...LIMITER, [field]: value } })).toBe(said);
});

test.each(['points', 'weight'])('C87: limiter.%s is a cost', (field) => {
  expect(only({ limiter: { ...LIMITER, [field]: 1 } })).toMatch(
    /Say cost \(tokens a request takes/,
  );
});

test.each(['windowMs', 'windowMS', 'window', 'interval'])(
  'C87: limiter.%s has no place',
  (field) => {
    expect(only({ limiter: { ...LIMITER, [field]: 1 } })).toMatch(/has no window: say rate/);
  },
);

test('a foreign word is answered by where it stands', () => {
  const policy = { limiter: LIMITER, signals: { p95: P95, upstream: UPSTREAM } };
  expect(faultsOf({ ...policy, objective: { p95: { threshold: '250ms' } } })).toEqual([
    'objective.p95.threshold is not our word. Say below (or above).',
    'objective.p95 gives neither of below, above. Give exactly one.',
  ]);
  expect(only({ ...policy, breaker: { on: 'upstream', above: 9, windowMs: 1000 } })).toBe(
    'breaker.windowMs is not our word. Say per.',
  );
  expect(only({ ...policy, circuitBreaker: {} })).toBe(
    'circuitBreaker is not our word. Say breaker.',
  );
  expect(only({ ...policy, objectives: {} })).toBe(
    'objectives is not a field. Did you mean objective?',
  );
});

test.each([
  ['controller', 'controller is not our word. Say control.'],
  ['onError', 'onError is not our word. Say onRedisError.'],
])('%s is answered with our word', (field, said) => {
  expect(only({ limiter: LIMITER, [field]: {} })).toBe(said);
});

test.each([
  [1, 'is 1: '],
  ['100%', 'is "100%": '],
])('an error ratio below %j would always hold', (below, said) => {
  const signals = { errors: { source: 'telemetry', stat: 'errorRatio' } };
  expect(only({ limiter: LIMITER, signals, objective: { errors: { below } } })).toMatch(
    `objective.errors.below ${said}a share is never above all of it`,
  );
});

test.each([
  ['1e3', 'Write 1000, no quotes.'],
  ['10/s', 'Write 10, no quotes.'],
  ['ten', 'at most 1000000.'],
])('C85 C87: rate %j is not a number', (rate, end) => {
  const said = only({ limiter: { ...LIMITER, rate } });
  expect(
    said.startsWith(`limiter.rate is ${JSON.stringify(rate)}, not a number (tokens per second)`),
  ).toBe(true);
  expect(said.endsWith(end)).toBe(true);
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, null, true, [], 2e6, 1e-9])(
  'rate %j is refused',
  (rate) => {
    expect(only({ limiter: { ...LIMITER, rate } })).toMatch(
      /^limiter\.rate is .*, not a number \(tokens/,
    );
  },
);

test('what is missing is named', () => {
  expect(only({})).toBe('limiter is missing. Give an object in braces.');
  expect(faultsOf({ limiter: {} })).toEqual([
    expect.stringMatching(/^limiter\.name is missing\. Give a name/),
    expect.stringMatching(/^limiter\.rate is missing\. Give a number/),
    expect.stringMatching(/^limiter\.capacity is missing\. Give a number/),
  ]);
});

test.each([[undefined], [null], [5], ['policy'], [[LIMITER]]])('%j is no policy', (input) => {
  expect(only(input)).toMatch(/is not a policy/);
});

test('a password in a policy is refused and not repeated', () => {
  const signal = { source: 'postgres', stat: 'waiting', url: 'postgres://me:hunter2@db/shop' };
  const said = only({ limiter: LIMITER, signals: { dbWait: signal } });
  expect(said).toMatch(/^signals\.dbWait\.url holds a password/);
  expect(said).not.toContain('hunter2');
  for (const url of [
    'postgres://me:hun/ter2@db/shop',
    'postgres://db/shop?user=me&sslpassword=hunter2',
    'postgres://db/shop?Password=hunter2',
  ]) {
    expect(only({ limiter: LIMITER, signals: { dbWait: { ...signal, url } } })).toMatch(
      /holds a password/,
    );
  }
  const env = (name: string) => ({
    limiter: LIMITER,
    signals: { dbWait: { ...signal, url: { env: name } } },
  });
  expect(faultsOf(env('DATABASE_URL'))).toEqual([]);
  expect(only(env('database url'))).toMatch(/^signals\.dbWait\.url/);
});

test('a signal of an unknown source or stat says which there are', () => {
  const policy = (signal: object) => ({ limiter: LIMITER, signals: { s: signal } });
  expect(only(policy({ source: 'oracle', stat: 'waiting' }))).toBe(
    'signals.s.source is "oracle", not one of "telemetry", "postgres", "mysql", "prometheus", "scrape", "custom".',
  );
  expect(only(policy({ source: 'telemetry', stat: 'p95' }))).toMatch(
    /^signals\.s\.stat is "p95", not one of "latency"/,
  );
  expect(only(policy({ ...P95, of: 95 }))).toMatch(
    /^signals\.s\.of is 95, not 'mean' or a quantile/,
  );
  expect(only(policy({ ...P95, percentile: 95 }))).toBe(
    'signals.s.percentile is not our word. Say of.',
  );
});

test('faults read as one line a fault, with the file', () => {
  try {
    resolvePolicy(
      { limiter: LIMITER, bounds: { rate: { min: 500, max: 600 } } },
      'policies/checkout.ts',
    );
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(PolicyError);
    expect((error as PolicyError).faults.map(formatFault)).toEqual([
      'FLYBALL_E_POLICY_INVALID policies/checkout.ts: bounds.rate.min is 500 but limiter.rate is 100. Raise rate or lower min.',
    ]);
  }
});

test.each(['user', '{}', '{a b}', '{a}{b}', '{a}x{b}', `{a}${'x'.repeat(300)}`])(
  'a subject template that the SDK could not fill is a fault: %j',
  (subject) => {
    expect(
      only({ limiter: { ...LIMITER, perSubject: { subject, rate: 1, capacity: 5 } } }),
    ).toMatch(/^limiter\.perSubject\.subject is .* not a template/);
  },
);
