/** The part of a policy that a canary gets, which changes may have one, and what authors are told. Stage: tests. */
import { describe, expect, test } from 'vitest';
import { canaryPolicy, concernsTakes, noCanaryWhy } from '../../src/policy/canary-policy.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { canaryText, isTried, parseCanary } from '../../src/redis/canary.js';
import { loadedPolicy } from '../support/policies.js';

const policy = (more: Partial<PolicyInput> = {}) => loadedPolicy(more).policy;
const limiter = { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 24 };

describe('its part', () => {
  test('totals, bounds, safe values and steps are × percent; subjects keep their own', () => {
    const part = canaryPolicy(
      policy({
        limiter: { ...limiter, perSubject: { subject: '{id}', rate: 3, capacity: 9 } },
        control: { law: 'aimd', add: 10 },
        whenLost: { rate: 50 },
        canary: { percent: 5, for: '10m' },
      }),
      5,
    );
    expect(part).toMatchObject({
      limiter: { name: 'checkout.canary', rate: 5, capacity: 10, inFlightMax: 1 },
      bounds: { rate: { min: 1, max: 20 }, inFlight: { min: 1, max: 3 } },
      control: { add: 0.5 },
      whenLost: { rate: 2.5, inFlight: 1 },
    });
    expect(part.limiter.perSubject).toMatchObject({ rate: 3, capacity: 9 });
    expect(part.canary).toBeUndefined();
    // It is stored and read again as any policy.
    expect(policySchema.parse(JSON.parse(JSON.stringify(part)))).toEqual(part);
  });

  test("what it opens is no upstream's, and what others leave of a downstream no number of its own", () => {
    const part = canaryPolicy(
      policy({
        limiter: { ...limiter, downstream: { name: 'orders-db', capacity: 400 } },
        mode: 'auto',
        breaker: { on: 'errors', above: '50%', upstream: 'pay', probeRate: 2 },
        signals: { errors: { source: 'telemetry', stat: 'errorRatio' } },
      } as Partial<PolicyInput>),
      10,
    );
    expect(part.breaker).toMatchObject({ on: 'errors', probeRate: 0.2 });
    expect(part.breaker).not.toHaveProperty('upstream');
    expect(part.limiter).not.toHaveProperty('downstream');
  });

  test('the largest take fits, whatever is kept in reserve', () => {
    const part = canaryPolicy(
      policy({ limiter: { ...limiter, maxCost: 20, reserve: { sheddable: 0.5 } } }),
      1,
    );
    expect(part.limiter.capacity).toBe(40);
  });
});

describe('which changes', () => {
  const why = (from: Partial<PolicyInput>, to: Partial<PolicyInput>) =>
    noCanaryWhy(policy(from), policy(to), 5);

  test('numbers, law and bounds may; what cannot hold for some alone may not', () => {
    const bounds = { rate: { min: 10, max: 800 }, inFlight: { min: 2, max: 64 } };
    expect(why({}, { limiter: { ...limiter, rate: 150 } })).toBeNull();
    expect(why({}, { bounds, control: { law: 'step' } })).toBeNull();
    expect(why({}, { mode: 'auto' })).toBe('mode changes, which cannot hold for some alone');
    expect(why({ mode: 'shadow' }, { mode: 'shadow', bounds })).toBe('mode shadow admits all');
    expect(why({}, { limiter: { ...limiter, algorithm: 'leaky-bucket' } })).toMatch(/algorithm/);
    const scheduled = {
      profiles: { night: { times: 2 } },
      schedule: [{ profile: 'night', from: '20:00', to: '23:00' }],
    };
    expect(why(scheduled, { ...scheduled, bounds })).toMatch(/its schedule sets the numbers/);
  });

  test('what only tells needs none', () => {
    expect(concernsTakes(policy(), policy({ owner: 'payments' }))).toBe(false);
    expect(concernsTakes(policy(), policy({ canary: { percent: 5, for: '1m' } }))).toBe(false);
    expect(concernsTakes(policy(), policy({ control: { law: 'step' } }))).toBe(true);
  });
});

test.each([
  [{ canary: { percent: 0, for: '10m' } }, 'canary.percent', /is 0, not a number \(percent\)/],
  [{ canary: { percent: 60, for: '10m' } }, 'canary.percent', /at most 50/],
  [{ canary: { percent: 0.123, for: '10m' } }, 'canary.percent', /two decimals/],
  [{ canary: { percent: 5 } }, 'canary.for', /is missing/],
  [{ canary: { percent: 5, for: '2d' } }, 'canary.for', /from 1000 ms to 86400000 ms/],
  [{ limiter: { ...limiter, name: 'x.canary' } }, 'limiter.name', /canaries of limiters are named/],
  [
    { limiter: { ...limiter, name: 'x'.repeat(60) }, canary: { percent: 5, for: '1m' } },
    'canary',
    /67 characters; 64 are allowed/,
  ],
  [
    { limiter: { ...limiter, rollout: { percent: 5 } }, canary: { percent: 5, for: '1m' } },
    'canary',
    /finish the rollout first/,
  ],
])('%j is told at %s', (more, field, message) => {
  const { faults = [] } = parsePolicy({ limiter, ...more }, 'x.ts') as { faults?: unknown[] };
  expect(faults).toEqual([
    expect.objectContaining({ field, message: expect.stringMatching(message) }),
  ]);
});

test('garbled text says that there is none; what has ended decides for nobody', () => {
  for (const text of ['', 'x', '1', 'null', '{}', '{"policy":"a","limiter":"b","percent":0}']) {
    expect(parseCanary(text)).toBeNull();
  }
  const canary = {
    policy: 'a',
    limiter: 'b',
    percent: 5,
    since: 1,
    forMs: 10,
    until: 31,
    epoch: 7,
  };
  expect(parseCanary(canaryText(canary))).toEqual(canary);
  expect(parseCanary(JSON.stringify({ ...canary, epoch: undefined }))).toBeNull();
  const long = canaryText({
    ...{ policy: 'a'.repeat(64), limiter: 'b'.repeat(64), percent: 12.34, ended: 'unproven' },
    ...{ since: 2e12, forMs: 86_400_000, until: 2e12, epoch: 2 ** 53, by: '名'.repeat(300) },
  });
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(512);
  expect(isTried(canary, 30)).toBe(true);
  expect(isTried(canary, 31)).toBe(false);
  expect(isTried({ ...canary, ended: 'failed' }, 5)).toBe(false);
});
