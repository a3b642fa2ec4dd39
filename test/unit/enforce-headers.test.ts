import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TakeDecision } from '../../src/enforce/decision.js';
import { headersOf, sfString } from '../../src/enforce/headers.js';
import { problemOf, statusOf } from '../../src/enforce/problem.js';

const NUMBERS = { rate: 100, capacity: 200, inFlightMax: 24, subjectRate: -1, subjectCapacity: 0 };

function decision(fields: Partial<TakeDecision>): TakeDecision {
  return {
    allowed: false,
    wouldAllow: false,
    reason: 'rate',
    limit: 'rate',
    remaining: 0,
    delayMs: 0,
    retryAfterMs: 300,
    revision: 1,
    epoch: 1,
    state: 'closed',
    generation: 0,
    source: 'redis',
    subject: null,
    note() {},
    done() {},
    id: null,
    refund: () => Promise.reject(new Error('not asked')),
    ...fields,
  };
}

test('C49: 0.7 tokens left and a retry of 0.3 s: r=0, t=1; a window of 500 ms is w=1', () => {
  const numbers = { ...NUMBERS, rate: 20, capacity: 10 };
  const headers = headersOf('checkout', decision({ remaining: 0.7 }), numbers, { random: () => 0 });
  expect(headers).toEqual({
    'RateLimit-Policy': '"checkout";q=10;w=1',
    RateLimit: '"checkout";r=0;t=1',
    'Retry-After': '1',
  });
});

test('C49: a name is an escaped structured-field string', () => {
  expect(sfString('a"b')).toBe('"a\\"b"');
  expect(sfString('a\\b')).toBe('"a\\\\b"');
  expect(sfString('é\n')).toBe('"__"');
});

test('C49: limits go in one list, the subject hashed; what denied is shown', () => {
  const numbers = { ...NUMBERS, subjectRate: 5, subjectCapacity: 10 };
  const denied = decision({ subject: 'user:ada', limit: 'subject', reason: 'subject' });
  const headers = headersOf('checkout', denied, numbers);
  expect(headers['RateLimit-Policy']).toMatch(
    /^"checkout";q=200;w=2, "checkout\.subject";q=10;w=2;pk=:[A-Za-z0-9+/]{16}:$/,
  );
  expect(JSON.stringify(headers)).not.toContain('ada');
  expect(headers.RateLimit).toBe('"checkout.subject";r=0;t=1');
  const byTotal = headersOf('checkout', decision({ subject: 'user:ada' }), numbers);
  expect(byTotal.RateLimit).toBe('"checkout";r=0;t=1');
});

test('a cap refusal shows r=0 however many tokens are left', () => {
  const headers = headersOf(
    'checkout',
    decision({ limit: 'in_flight', reason: 'in_flight', remaining: 150, retryAfterMs: 80 }),
    NUMBERS,
  );
  expect(headers.RateLimit).toBe('"checkout";r=0;t=1');
});

test('C48: Retry-After is never 0, never below t, and never earlier than the wait', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (retryAfterMs, r) => {
        const headers = headersOf('a', decision({ retryAfterMs }), NUMBERS, { random: () => r });
        const t = Number(/t=(\d+)/.exec(headers.RateLimit!)![1]);
        const retry = Number(headers['Retry-After']);
        expect(retry).toBeGreaterThanOrEqual(t);
        expect(t).toBeGreaterThanOrEqual(1);
        expect(t * 1000).toBeGreaterThanOrEqual(retryAfterMs);
      },
    ),
  );
});

test('C17: no retry time is no Retry-After and no t', () => {
  const denied = decision({ limit: 'cost', reason: 'cost_exceeds_capacity', retryAfterMs: null });
  const headers = headersOf('a', denied, NUMBERS);
  expect(headers['Retry-After']).toBeUndefined();
  expect(headers.RateLimit).toBe('"a";r=0');
  expect(problemOf('a', denied).retryAfterSeconds).toBeUndefined();
});

test('at rate 0 there is no window, and an open breaker still says when', () => {
  const open = decision({ limit: 'breaker', reason: 'breaker_open', retryAfterMs: 4200 });
  const headers = headersOf('a', open, { ...NUMBERS, rate: 0 }, { random: () => 0.99 });
  expect(headers['RateLimit-Policy']).toBe('"a";q=200');
  expect(headers.RateLimit).toBe('"a";r=0;t=5');
  expect(headers['Retry-After']).toBe('6');
});

test('429 for the client’s own bucket, 503 for the state of the service; the problem says which and why', () => {
  expect(statusOf(decision({ limit: 'subject' }))).toBe(429);
  for (const limit of ['rate', 'in_flight', 'breaker', 'reserve', 'redis'] as const) {
    expect(statusOf(decision({ limit }))).toBe(503);
  }
  expect(problemOf('checkout', decision({ limit: 'subject', reason: 'subject' }))).toEqual({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Too many requests',
    status: 429,
    detail:
      'Limiter checkout denied the request: this client used up its own allowance. Try again in 1 s.',
    limiter: 'checkout',
    limit: 'subject',
    reason: 'subject',
    retryAfterSeconds: 1,
    'violated-policies': ['checkout.subject'],
  });
});

test('legacy headers only when asked for', () => {
  expect(headersOf('a', decision({}), NUMBERS)['X-RateLimit-Limit']).toBeUndefined();
  expect(headersOf('a', decision({}), NUMBERS, { legacyHeaders: true })).toMatchObject({
    'X-RateLimit-Limit': '200',
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Reset': '1',
  });
});
