/** Tiers and the most subjects in a policy: what is refused and with which mend, and what of it reaches Redis. */
import { describe, expect, test } from 'vitest';
import { paramsFromPolicy } from '../../src/policy/params.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { policySchema } from '../../src/policy/schema.js';

const PER_SUBJECT = { subject: 'user:{id}', rate: 1, capacity: 5 };
const TIERS = { on: 'paid', steps: [{ times: 3, capacity: 10 }] };

function limiter(tiers: unknown, more: Record<string, unknown> = {}): Record<string, unknown> {
  const perSubject = { ...PER_SUBJECT, ...(tiers === undefined ? {} : { tiers }) };
  return { limiter: { name: 'checkout', rate: 100, capacity: 200, perSubject, ...more } };
}
const faults = (input: unknown) =>
  (parsePolicy(input, 'x.ts').faults ?? []).map(({ field, message }) => `${field} ${message}`);

const STEPS = 'limiter.perSubject.tiers.steps';
const WINDOW = { algorithm: 'sliding-log', window: '1m' };

describe('refused, with what to write', () => {
  test.each([
    [
      { ...TIERS, on: 'two words' },
      {},
      /^limiter\.perSubject\.tiers\.on is "two words", not a name/,
    ],
    [{ on: 'paid', steps: [] }, {}, /tiers\.steps/],
    [{ on: 'paid' }, {}, /tiers\.steps/],
    [
      { ...TIERS, steps: [{ times: 0, capacity: 9 }] },
      {},
      /steps\.0\.times is 0, not a whole number/,
    ],
    [{ ...TIERS, resetOn: ['failed', 'paid'] }, {}, /resetOn names "paid", which is what counts/],
    [{ ...TIERS, on: 'failed' }, {}, /resetOn names "failed"/],
    [{ ...TIERS, keptFor: '10' }, {}, /tiers\.keptFor is "10", not a duration/],
    [
      { ...TIERS, steps: [{ times: 3 }] },
      {},
      `${STEPS}.0 changes nothing. Give capacity, rate or both.`,
    ],
    [
      { ...TIERS, steps: [{ times: 3, capacity: 4 }] },
      {},
      `${STEPS}.0.capacity is 4, below the 5 before it: a tier only raises. Give at least 5.`,
    ],
    [
      { ...TIERS, steps: [{ times: 3, rate: 0.5 }] },
      {},
      `${STEPS}.0.rate is 0.5, below the 1 before it: a tier only raises. Give at least 1.`,
    ],
    [
      {
        ...TIERS,
        steps: [
          { times: 3, capacity: 9 },
          { times: 3, capacity: 12 },
        ],
      },
      {},
      `${STEPS}.1.times is 3, but the step before it has 3. Order them.`,
    ],
    [
      {
        ...TIERS,
        steps: [
          { times: 3, capacity: 9 },
          { times: 4, capacity: 8 },
        ],
      },
      {},
      /steps\.1\.capacity is 8, below the 9 before it/,
    ],
    [
      TIERS,
      WINDOW,
      /steps\.0 is for algorithm 'sliding-log', whose limit is rate × window: give rate/,
    ],
    [TIERS, { algorithm: 'leaky-bucket' }, /tiers have no meaning for a leaky bucket/],
    [{ ...TIERS, capcity: 3 }, {}, /tiers\.capcity is not a field/],
    [undefined, { subjects: { max: 0 } }, /limiter\.subjects\.max is 0, not a whole number/],
    [undefined, { subjects: { max: 9, overflow: 'deny' } }, /limiter\.subjects\.overflow/],
  ])('%j %j', (tiers, more, message) => {
    const found = faults(limiter(tiers, more));
    expect(found).toHaveLength(1);
    if (typeof message === 'string') expect(found[0]).toBe(message);
    else expect(found[0]).toMatch(message);
  });

  test('the most subjects without a bucket for each', () => {
    const plain = { name: 'checkout', rate: 100, capacity: 200, subjects: { max: 9 } };
    expect(faults({ limiter: plain })).toEqual([
      'limiter.subjects bounds subjects that have no bucket of their own. Give limiter.perSubject, or leave it out.',
    ]);
  });
});

describe('what reaches Redis', () => {
  const terms = (tiers: unknown, more = {}) => {
    const { subjectRules, subjectTerms } = paramsFromPolicy(
      policySchema.parse(limiter(tiers, more)),
    );
    return [subjectRules, subjectTerms];
  };
  test('nothing, for a policy that says nothing of single subjects', () => {
    expect(terms(undefined)).toEqual([0, '']);
  });
  test('the most, the tiers, their defaults filled in', () => {
    expect(terms(undefined, { subjects: { max: 100_000, overflow: 'shared' } })).toEqual([
      ...[1, 'max=100000'],
    ]);
    expect(terms(TIERS)).toEqual([1, 'on=paid reset=failed keep=2592000000 step=3:10:-']);
    const steps = [
      { times: 3, capacity: 10 },
      { times: 9, capacity: 20, rate: 2.5 },
    ];
    const all = { on: 'paid', resetOn: ['failed', 'refunded'], keptFor: '7d', steps };
    expect(terms(all, { subjects: { max: 9 } })).toEqual([
      ...[1, 'max=9 on=paid reset=failed,refunded keep=604800000 step=3:10:- step=9:20:2.5'],
    ]);
    expect(terms({ ...TIERS, steps: [{ times: 1, rate: 2 }] }, WINDOW)).toEqual([
      ...[1, 'on=paid reset=failed keep=2592000000 step=1:-:2'],
    ]);
  });
  test('the policy of before has the hash of before', () => {
    expect(policySchema.parse(limiter(undefined)).limiter).not.toHaveProperty('subjects');
    expect(policySchema.parse(limiter(undefined)).limiter.perSubject).not.toHaveProperty('tiers');
  });
});

test('blocks beside what makes each take ask Redis are refused, and alone they are not', () => {
  const told = /^limiter\.draw is 'block', but with (.+) each take asks Redis\. Say 'each'/;
  const against = (input: unknown) => faults(input).map((fault) => told.exec(fault)?.[1]);
  expect(against(limiter(undefined, { draw: 'block' }))).toEqual([]);
  expect(against(limiter(TIERS, { draw: 'each' }))).toEqual([]);
  expect(
    against(limiter(TIERS, { draw: 'block', subjects: { max: 9, overflow: 'shared' } })),
  ).toEqual(['limiter.perSubject.tiers and limiter.subjects']);
  expect(against(limiter(undefined, { draw: 'block', ...WINDOW }))).toEqual([
    "algorithm 'sliding-log'",
  ]);
});

test('fair shares: named in the terms, refused where nobody could owe, and not said where not wished', () => {
  const of = (more: Record<string, unknown>) =>
    paramsFromPolicy(policySchema.parse(limiter(undefined, more)));
  expect(of({ fair: true })).toMatchObject({ subjectRules: 1, subjectTerms: 'fair=1' });
  expect(of({ fair: true, subjects: { max: 9 } }).subjectTerms).toBe('fair=1 max=9');
  expect(of({ fair: false })).toMatchObject({ subjectRules: 0, subjectTerms: '' });
  expect(policySchema.parse(limiter(undefined)).limiter).not.toHaveProperty('fair');
  expect(faults(limiter(undefined, { fair: true }))).toEqual([]);
  expect(faults(limiter(undefined, { fair: true, ...WINDOW }))).toEqual([
    expect.stringMatching(/^limiter\.fair .*algorithm is 'sliding-log'\. Say 'token-bucket'/),
  ]);
  expect(faults(limiter(undefined, { fair: true, draw: 'block' }))).toEqual([
    expect.stringMatching(/^limiter\.draw is 'block', but with limiter\.fair each take/),
  ]);
  expect(faults({ limiter: { name: 'x', rate: 1, capacity: 1, fair: true } })).toEqual([
    expect.stringMatching(/^limiter\.fair .*no field says who they are\. Give limiter\.perSubject/),
  ]);
  expect(faults(limiter(undefined, { fair: 'yes' }))).toHaveLength(1);
});
