import { expect, test } from 'vitest';
import { formatFault, PolicyError } from '../../src/errors.js';
import { parsePolicy, resolvePolicy } from '../../src/policy/parse.js';

const LIMITER = { name: 'checkout', rate: 100, capacity: 200 };
const P95 = { source: 'telemetry', stat: 'latency', of: 0.95 };
const ERRORS = { source: 'telemetry', stat: 'errorRatio' };
const UPSTREAM = { source: 'telemetry', stat: 'errors', code: 'SYSTEMERROR' };

/** `field message` of each fault. */
function faultsOf(input: unknown): string[] {
  const result = parsePolicy(input, 'policies/x.ts');
  return (result.faults ?? []).map((fault) => `${fault.field} ${fault.message}`);
}

/** The one fault of a limiter with these fields; anything but one fails the test. */
function only(input: unknown): string {
  const faults = faultsOf(input);
  expect(faults).toHaveLength(1);
  return faults[0]!;
}

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

test('bounds hold the policy’s own numbers, and auto needs them', () => {
  const auto = { limiter: { ...LIMITER, inFlightMax: 8 }, mode: 'auto' };
  expect(faultsOf(auto)).toEqual([
    expect.stringMatching(/^bounds\.rate is missing: mode 'auto'/),
    expect.stringMatching(/^bounds\.inFlight is missing: mode 'auto'/),
  ]);
  const rate = { min: 20, max: 400 };
  expect(only({ ...auto, bounds: { rate } })).toMatch(/^bounds\.inFlight is missing/);
  expect(faultsOf({ ...auto, bounds: { rate, inFlight: { min: 2, max: 64 } } })).toEqual([]);
  // A part that is faulty itself is not called missing too.
  expect(only({ ...auto, bounds: { rate: 5, inFlight: { min: 2, max: 64 } } })).toBe(
    'bounds.rate is 5, not an object in braces.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate: { min: 500, max: 600 } } })).toBe(
    'bounds.rate.min is 500 but limiter.rate is 100. Raise rate or lower min.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate: { min: 1, max: 50 } } })).toBe(
    'bounds.rate.max is 50 but limiter.rate is 100. Lower rate or raise max.',
  );
  expect(only({ limiter: LIMITER, bounds: { rate, inFlight: { min: 1, max: 2 } } })).toBe(
    'bounds.inFlight bounds a cap that is not there. Give limiter.inFlightMax.',
  );
});

test('C87: the lowest capacity must hold the largest cost', () => {
  expect(only({ limiter: { ...LIMITER, maxCost: 500 } })).toMatch(
    /^limiter\.capacity is 200, below limiter\.maxCost 500: .*Raise it to at least 500\.$/,
  );
  const limiter = { ...LIMITER, maxCost: 50 };
  const bounds = { rate: { min: 1, max: 400 }, capacity: { min: 10, max: 400 } };
  expect(only({ limiter, bounds })).toMatch(
    /^bounds\.capacity\.min is 10, below limiter\.maxCost 50/,
  );
  const perSubject = { subject: 'user:{userId}', rate: 1, capacity: 5 };
  expect(only({ limiter: { ...limiter, perSubject } })).toMatch(
    /^limiter\.perSubject\.capacity is 5/,
  );
});

test('what cannot be given back cannot be counted by its end', () => {
  const paced = { ...LIMITER, algorithm: 'leaky-bucket' };
  expect(only({ limiter: { ...paced, count: 'failures' } })).toMatch(
    /^limiter\.count is 'failures', but a leaky bucket gives nothing back/,
  );
});

test('a reserve leaves room for one take, and what is shed first leaves more', () => {
  expect(only({ limiter: { ...LIMITER, reserve: { default: 0.5, sheddable: 0.2 } } })).toMatch(
    /^limiter\.reserve\.sheddable is 0\.2, below reserve\.default 0\.5/,
  );
  expect(only({ limiter: { ...LIMITER, capacity: 2, reserve: { sheddable: '80%' } } })).toMatch(
    /^limiter\.reserve\.sheddable is 0\.8: of a capacity of 2/,
  );
});

test.each([
  [P95, '1%', 'a time'],
  [ERRORS, '250ms', 'a ratio'],
  [ERRORS, 5, 'a ratio'],
  [UPSTREAM, '5s', 'a count'],
  [UPSTREAM, '5%', 'a count'],
  [{ source: 'telemetry', stat: 'goodput' }, '5%', 'a number per second'],
])('a level of %j written %j is in the wrong unit', (signal, below, kind) => {
  const said = only({ limiter: LIMITER, signals: { s: signal }, objective: { s: { below } } });
  expect(said).toContain(
    `objective.s.below is ${JSON.stringify(below)}, but signal "s" is ${kind}`,
  );
});

test('an objective has exactly one side', () => {
  const policy = { limiter: LIMITER, signals: { p95: P95 } };
  expect(only({ ...policy, objective: { p95: { below: 1, above: 2 } } })).toBe(
    'objective.p95 gives both of below, above. Give exactly one.',
  );
  expect(only({ ...policy, objective: { p95: {} } })).toMatch(/gives neither/);
  expect(only({ ...policy, objective: { p95: { below: '10 parsecs' } } })).toMatch(
    /^objective\.p95\.below is "10 parsecs", not a level/,
  );
});

test('a breaker counts failures, and its level fits', () => {
  const signals = { p95: P95, errors: ERRORS, upstream: UPSTREAM };
  const breaker = (fields: object) => ({ limiter: LIMITER, signals, breaker: fields });
  expect(only(breaker({ on: 'p95', above: 5 }))).toMatch(
    /^breaker\.on names "p95", which is not of failures/,
  );
  expect(only(breaker({ on: 'upstream', above: '50%' }))).toMatch(
    /^breaker\.above is "50%", but signal "upstream" is a count/,
  );
  expect(only(breaker({ on: 'errors', above: 50 }))).toMatch(
    /^breaker\.above is 50, but signal "errors" is a ratio/,
  );
  expect(only(breaker({ on: 'errors', above: '100%' }))).toMatch(/would never trip/);
  expect(only(breaker({ on: 'upstream', above: 5, probeRate: 101, successes: 1 }))).toBe(
    'breaker.probeRate is 101 but limiter.rate is 100. Lower it to at most 100.',
  );
  expect(only(breaker({ on: 'upstream', above: 5, openFor: '2m' }))).toMatch(
    /^breaker\.openFor is 120000 ms but/,
  );
});

test('several levels: each is checked as if it stood alone, and none shares its signal', () => {
  const signals = {
    errors: ERRORS,
    upstream: UPSTREAM,
    row: { source: 'telemetry', stat: 'failuresInARow' },
    slow: { source: 'telemetry', stat: 'slowRatio', over: '2s' },
    p95: P95,
  };
  const or = (...levels: object[]) => ({
    limiter: LIMITER,
    signals,
    breaker: { on: 'errors', above: '50%', or: levels },
  });
  expect(faultsOf(or({ on: 'row', above: 20 }, { on: 'slow', above: '40%', per: '5s' }))).toEqual(
    [],
  );
  expect(only(or({ on: 'rows', above: 20 }))).toMatch(
    /^breaker\.or\.0\.on names no signal: there is no "rows"/,
  );
  expect(only(or({ on: 'row', above: 20 }, { on: 'p95', above: '2s' }))).toMatch(
    /^breaker\.or\.1\.on names "p95", which is not of failures.*For slow answers: telemetry\.slowRatio\(\)\.$/,
  );
  const denied = { source: 'telemetry', stat: 'deniedRatio' };
  expect(
    only({ limiter: LIMITER, signals: { denied }, breaker: { on: 'denied', above: '50%' } }),
  ).toMatch(/^breaker\.on names "denied", which is not of failures/);
  expect(only(or({ on: 'slow', above: 3 }))).toMatch(
    /^breaker\.or\.0\.above is 3, but signal "slow" is a ratio/,
  );
  expect(only(or({ on: 'slow', above: '100%' }))).toMatch(
    /^breaker\.or\.0\.above is 1.*never trip/,
  );
  expect(only(or({ on: 'row', above: 20, per: '1m' }))).toMatch(
    /^breaker\.or\.0\.per has no meaning for failures in a row/,
  );
  expect(only(or({ on: 'errors', above: '20%' }))).toMatch(
    /^breaker\.or\.0\.on names "errors", which has a level already/,
  );
  expect(only(or({ on: 'row', above: 20, openFor: '5s' }))).toBe(
    'breaker.or.0.openFor is not a field. Allowed: on, above, per, minAnswers.',
  );
});

test('what is shed in proportion is a share; an upstream has a name', () => {
  const breaker = (fields: object) => ({
    limiter: LIMITER,
    signals: { errors: ERRORS, upstream: UPSTREAM },
    breaker: fields,
  });
  const share = { on: 'errors', above: '50%', shed: 'proportional', upstream: 'wechat-pay' };
  expect(faultsOf(breaker(share))).toEqual([]);
  expect(only(breaker({ ...share, on: 'upstream', above: 5 }))).toMatch(
    /^breaker\.shed is "proportional", but "upstream" is not a share of the answers/,
  );
  expect(only(breaker({ ...share, shed: 'half' }))).toBe(
    'breaker.shed is "half", not one of "all", "proportional".',
  );
  expect(only(breaker({ ...share, upstream: 'WeChat Pay' }))).toMatch(
    /^breaker\.upstream is "WeChat Pay", not a name/,
  );
});

test('C83: a half-open that could never reach its verdict is refused', () => {
  const breaker = { on: 'upstream', above: 5, probeRate: 0.1, probeDeadline: '10s', successes: 3 };
  const policy = { limiter: LIMITER, signals: { upstream: UPSTREAM }, breaker };
  expect(only(policy)).toMatch(/^breaker\.successes is 3, but at probeRate 0\.1 only 1 probes fit/);
  expect(faultsOf({ ...policy, breaker: { ...breaker, successes: 1 } })).toEqual([]);
});

test('the values of a lost autopilot lie within the bounds', () => {
  const policy = { limiter: LIMITER, bounds: { rate: { min: 20, max: 400 } } };
  expect(only({ ...policy, whenLost: { rate: 5 } })).toMatch(
    /^whenLost\.rate is 5, outside bounds\.rate/,
  );
  expect(only({ ...policy, whenLost: { inFlight: 5 } })).toMatch(
    /^whenLost\.inFlight .*limiter\.inFlightMax/,
  );
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

test('database waits of the step law need a signal', () => {
  const control = { law: 'step', dbWaitsAbove: 5 };
  expect(only({ limiter: LIMITER, control })).toMatch(
    /^control\.dbWaitsAbove watches database waits/,
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
