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

test('what denies whatever is left shows r=0: a cap, a breaker, a reserve, a block', () => {
  const cases = [
    ['in_flight', 'in_flight'],
    ['breaker', 'probe_budget'],
    ['reserve', 'reserve'],
    ['subject', 'blocked'],
    ['redis', 'redis_away'],
  ] as const;
  for (const [limit, reason] of cases) {
    const denied = decision({ limit, reason, remaining: 150, retryAfterMs: 80 });
    expect(headersOf('checkout', denied, NUMBERS).RateLimit).toBe('"checkout";r=0;t=1');
  }
  // A smaller cost could pass.
  const large = decision({ limit: 'rate', reason: 'rate', remaining: 3, retryAfterMs: 80 });
  expect(headersOf('checkout', large, NUMBERS).RateLimit).toBe('"checkout";r=3;t=1');
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

const PARTS_A_LIST = {
  ...{ name: ', ', rate: 1, capacity: 1, subjectRate: -1, subjectCapacity: 1, remaining: 0 },
  ...{ allowed: false, limit: 'rate' as const, retryAfterMs: 1, windowMs: 0 as const },
};

test('C49: the fields of any decision are whole numbers that hold together', () => {
  const number = fc.double({ min: 0, max: 1e9, noNaN: true });
  const positive = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
  const one =
    /"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"(?:;[a-z]+=(?:\d{1,15}|:[A-Za-z0-9+/=]+:))+/
      .source;
  // A name may hold what parts a list.
  const [item, list] = [new RegExp(`^${one}$`), new RegExp(`^${one}(?:, ${one})*$`)];
  fc.assert(
    fc.property(
      fc.record({
        name: fc.string(),
        rate: fc.oneof(fc.constant(0), positive),
        capacity: positive,
        subjectRate: fc.oneof(fc.constant(-1), positive),
        subjectCapacity: positive,
        remaining: number,
        allowed: fc.boolean(),
        limit: fc.constantFrom('rate', 'subject', 'in_flight', 'breaker'),
        retryAfterMs: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 2 ** 50 })),
        windowMs: fc.constantFrom(0, 500, 60_000),
      }),
      ({ name, allowed, limit, remaining, retryAfterMs, windowMs, ...numbers }) => {
        const taken = decision({
          allowed,
          limit: allowed ? null : (limit as TakeDecision['limit']),
          remaining,
          retryAfterMs,
          subject: 'user:ada',
        });
        const headers = headersOf(name, taken, { ...numbers, inFlightMax: 0 }, { windowMs });
        expect(headers['RateLimit-Policy']).toMatch(list);
        expect(headers.RateLimit).toMatch(item);
        const r = Number(/;r=(\d+)/.exec(headers.RateLimit!)![1]);
        expect(r).toBeLessThanOrEqual(remaining);
        const t = /;t=(\d+)/.exec(headers.RateLimit!)?.[1];
        const retry = headers['Retry-After'];
        expect(retry !== undefined).toBe(!allowed && retryAfterMs !== null);
        if (retry !== undefined) expect(Number(retry)).toBeGreaterThanOrEqual(Number(t));
        // Who spreads what is left over t stays within the rate.
        const shown = headers.RateLimit!.includes('.subject";')
          ? numbers.subjectRate
          : numbers.rate;
        if (allowed && t !== undefined)
          expect(r).toBeLessThanOrEqual(Number(t) * shown * (1 + 1e-9));
      },
    ),
    { numRuns: 500, examples: [[PARTS_A_LIST]] },
  );
});

test('jitter is a function of the random number given, and spreads a herd over a fifth of the wait', () => {
  const denied = decision({ retryAfterMs: 100_000 });
  const at = (r: number) =>
    Number(headersOf('a', denied, NUMBERS, { random: () => r })['Retry-After']);
  expect([at(0), at(0.5), at(0.9999)]).toEqual([100, 110, 120]);
  expect(at(0.5)).toBe(at(0.5));
});

test('a full bucket does not invite any pace: t is at least the time in which its tokens are paid', () => {
  const full = decision({ allowed: true, limit: null, remaining: 200, retryAfterMs: 0 });
  expect(headersOf('a', full, NUMBERS, { legacyHeaders: true })).toEqual({
    'RateLimit-Policy': '"a";q=200;w=2',
    RateLimit: '"a";r=200;t=2',
    'X-RateLimit-Limit': '200',
    'X-RateLimit-Remaining': '200',
    'X-RateLimit-Reset': '0',
  });
});

test('an algorithm with a window states rate × window as its quota', () => {
  const numbers = { ...NUMBERS, rate: 10, subjectRate: 0.5, subjectCapacity: 7 };
  const taken = decision({ allowed: true, limit: null, remaining: 12, subject: 'ada' });
  const headers = headersOf('a', taken, numbers, { windowMs: 60_000 });
  expect(headers['RateLimit-Policy']).toMatch(/^"a";q=600;w=60, "a\.subject";q=30;w=60;pk=/);
  expect(headers.RateLimit).toBe('"a.subject";r=12;t=36');
});

test('the body says the wait of the header when it is given', () => {
  expect(problemOf('a', decision({ retryAfterMs: 900 }), 2)).toMatchObject({
    retryAfterSeconds: 2,
    detail: expect.stringContaining('Try again in 2 s.'),
  });
});

test('a subject with numbers of its own is not told those of the others; r never passes q', () => {
  const numbers = { ...NUMBERS, subjectRate: 5, subjectCapacity: 10 };
  const rich = decision({ allowed: true, limit: null, remaining: 150, subject: 'user:ada' });
  expect(headersOf('a', rich, numbers)).toEqual({
    'RateLimit-Policy': '"a";q=200;w=2',
    RateLimit: '"a";r=150;t=2',
  });
  const cut = decision({ allowed: true, limit: null, remaining: 180 });
  expect(headersOf('a', cut, { ...NUMBERS, capacity: 100 }).RateLimit).toBe('"a";r=100;t=1');
});

test('a problem names the policy whose quota was used up; a cap or a breaker is none', () => {
  const violated = (limit: TakeDecision['limit']) =>
    problemOf('a', decision({ limit }))['violated-policies'];
  expect([violated('subject'), violated('rate'), violated('reserve')]).toEqual([
    ['a.subject'],
    ['a'],
    ['a'],
  ]);
  expect([violated('in_flight'), violated('breaker'), violated('redis')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
