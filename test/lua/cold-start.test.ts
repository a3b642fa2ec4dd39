/** `coldStart`: what buckets hold when the params are made, and after a failover lost writes. */
import { expect, test } from 'vitest';
import { parsePolicy } from '../../src/policy/parse.js';
import { actuate } from '../../src/redis/scripts.js';
import { changeParams, seedParams, testEntry } from '../support/seed-params.js';
import { S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const NUMBERS = { rate: 10, capacity: 200, subjectRate: 1, subjectCapacity: 20 };
const peek = [{ cost: 0 }, { cost: 0, subject: 'a' }];

test.each([
  ['full', 200, 20],
  ['empty', 0, 0],
  [0.25, 50, 5],
  [0, 0, 0],
  [1, 200, 20],
] as const)(
  'a fresh limiter with coldStart %j holds %d tokens, a subject %d',
  async (refloor, total, own) => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, NUMBERS, { nowUs: T0, refloor });
    const { answers } = await call(peek, T0);
    expect(answers.map((answer) => answer.remaining)).toEqual([total, Math.min(total, own)]);
    const later = await call(peek, T0 + 600 * S);
    expect(later.answers.map((answer) => answer.remaining)).toEqual([200, 20]);
  },
);

test('I5: a share never adds tokens to a bucket that holds fewer', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(fixture.redis, keys, NUMBERS, { nowUs: T0 });
  await call([{ cost: 190 }], T0);
  await changeParams(fixture.redis, keys, {}, { nowUs: T0, refloor: 0.5 });
  expect((await call([{ cost: 0 }], T0)).answers[0]!.remaining).toBe(10);
  const other = fixture.limiter();
  await seedParams(fixture.redis, other.keys, NUMBERS, { nowUs: T0 });
  await other.call([{ cost: 10 }], T0);
  await changeParams(fixture.redis, other.keys, {}, { nowUs: T0, refloor: 0.5 });
  expect((await other.call([{ cost: 0 }], T0)).answers[0]!.remaining).toBe(100);
});

test('a tripped limiter starts empty, whatever the share', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { ...NUMBERS, state: 'half-open' },
    { nowUs: T0, refloor: 1 },
  );
  expect((await call([{}], T0)).answers[0]!.reason).toBe('probe_budget');
});

test.each([1.5, -0.1, Number.NaN])(
  'a share of %d is refused, by the script and in a policy',
  async (share) => {
    const { keys } = fixture.limiter();
    await seedParams(fixture.redis, keys, NUMBERS, { nowUs: T0 });
    const reply = await actuate(fixture.redis, {
      keys,
      authority: { kind: 'person' },
      expected: { epoch: 1_000_000, revision: 1 },
      create: false,
      change: {},
      cause: 'person',
      refloor: share,
      entry: await testEntry(fixture.redis, keys, 1_000_000, 2, 'refused'),
      leaseMs: 0,
      nowUs: T0,
    });
    expect(reply).toMatchObject({ status: 'refused', reason: 'invalid' });
    const policy = { limiter: { name: 'a', rate: 1, capacity: 1, coldStart: share } };
    expect(parsePolicy(policy, 'a.ts')).toMatchObject({
      faults: [
        { field: 'limiter.coldStart', message: expect.stringContaining('a share from 0 to 1') },
      ],
    });
  },
);
