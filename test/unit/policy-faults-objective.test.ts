/** Objectives and breakers that could never hold, never end, or count nothing are faults of the policy. */
import { expect, test } from 'vitest';
import { ERRORS, faultsOf, LIMITER, only, P95, UPSTREAM } from '../support/policy-faults.js';

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

test('database waits of the step law need a signal', () => {
  const control = { law: 'step', dbWaitsAbove: 5 };
  expect(only({ limiter: LIMITER, control })).toMatch(
    /^control\.dbWaitsAbove watches database waits/,
  );
});
