/** Subjects of any length are told apart, and none of them is kept whole when it is long. */
import { expect, test } from 'vitest';
import { createDenyCache } from '../../src/enforce/deny-cache.js';
import { keptSubject } from '../../src/enforce/kept-subject.js';
import { createLocalBucket } from '../../src/enforce/local-bucket.js';
import type { InForce } from '../../src/redis/calls.js';

const long = (end: string) => `${'s'.repeat(60_000)}${end}`;

test('what is kept of a long subject is short, and another for another subject', () => {
  expect(keptSubject('user:42')).toBe('user:42');
  expect(keptSubject(long('a')).length).toBeLessThan(65);
  expect(keptSubject(long('a'))).not.toBe(keptSubject(long('b')));
});

test('long subjects have buckets of their own while Redis is away, and get back what they gave', () => {
  const numbers = {
    rate: 1e6,
    capacity: 1e6,
    inFlightMax: 0,
    subjectRate: 0.001,
    subjectCapacity: 1,
  };
  const local = createLocalBucket({
    mode: 'recommend',
    unknown: false,
    processes: 1,
    openAt: () => false,
    fallback: () => numbers,
  } as never);
  expect(local.take(long('a'), 1, 0).allowed).toBe(true);
  expect(local.take(long('a'), 1, 0).allowed).toBe(false);
  expect(local.take(long('b'), 1, 0).allowed).toBe(true);
  local.giveBack(long('a'), 1);
  expect(local.take(long('a'), 1, 0).allowed).toBe(true);
});

test('a denial of a long subject is not remembered: ten thousand of them would be hundreds of megabytes', () => {
  const denials = createDenyCache();
  const inForce = { managed: true, gliding: false, mode: 'auto' } as InForce;
  const answer = { allowed: false, reason: 'subject', remaining: 0, retryAfterMs: 500 } as const;
  for (const [subject, known] of [
    [long('a'), false],
    ['user:42', true],
  ] as const) {
    const wish = { subject, cost: 1, priority: 'default' } as never;
    denials.learn(wish, answer, inForce, 0);
    expect(denials.find(wish, 1) !== null).toBe(known);
  }
});
