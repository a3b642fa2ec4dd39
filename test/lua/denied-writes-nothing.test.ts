/** A denied take writes nothing, by bytes, lives and Redis's own count of writes: for all that may be known of a subject. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TakeCall } from '../../src/redis/calls.js';
import { draw } from '../../src/redis/draw.js';
import type { ParamChange } from '../../src/redis/params.js';
import { countOutcome } from '../../src/redis/subject-outcome.js';
import type { SubjectRule } from '../../src/redis/subject-override.js';
import { sayOfSubject } from '../support/say-of-subject.js';
import { seedParams, storedParams } from '../support/seed-params.js';
import { type Limiter, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();

/** What each key holds and how long it lives, and how many writes the server has seen. */
const SNAPSHOT = `local all = redis.call('KEYS', ARGV[1])
table.sort(all)
for i, key in ipairs(all) do
  local life = string.format('%.0f', redis.call('PEXPIRETIME', key))
  all[i] = key .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) .. ' ' .. life
end
all[#all + 1] = string.match(redis.call('INFO', 'persistence'), 'rdb_changes_since_last_save:%d+')
return all`;
const snapshot = (made: Limiter) =>
  fixture.redis.eval(SNAPSHOT, 0, `*{${made.keys.name}}*`) as Promise<string[]>;

const NONE = { subjectRate: -1, subjectCapacity: 0 };
const OWN = { subjectRate: 0.02, subjectCapacity: 5 };
const tiers = (numbers: string) => `on=paid reset=failed keep=2592000000 step=1:${numbers}`;

interface Case {
  change: ParamChange;
  rule?: Partial<SubjectRule>;
  outcomes?: number;
}
const CASES: Record<string, Case> = {
  'no rule, no subject rate': { change: NONE },
  'a subject rate': { change: OWN },
  'override of capacity and rate': { change: OWN, rule: { capacity: 8, rate: 0.05 } },
  'override of capacity': { change: OWN, rule: { capacity: 8 } },
  'override of rate': { change: OWN, rule: { rate: 0.05 } },
  'override alone': { change: NONE, rule: { capacity: 8, rate: 0.05 } },
  'override alone, with an end': {
    change: NONE,
    rule: { capacity: 8, rate: 0.05, untilMs: T0 / 1000 + 30_000 },
  },
  block: { change: OWN, rule: { kind: 'block' } },
  tier: { change: { ...OWN, subjectRules: 1, subjectTerms: tiers('8:-') }, outcomes: 1 },
  'tier alone': {
    change: { ...NONE, subjectRules: 1, subjectTerms: tiers('8:0.05') },
    outcomes: 1,
  },
  crowd: { change: { ...OWN, subjectRules: 1, subjectTerms: 'max=1' } },
};
const TERMS: Record<string, TakeCall['terms']> = {
  'token-bucket': undefined,
  'sliding-log': { algorithm: 'sliding-log', windowMs: 400_000, cells: 0 },
  'sliding-counter': { algorithm: 'sliding-counter', windowMs: 400_000, cells: 6 },
  'fixed-window': { algorithm: 'fixed-window', windowMs: 400_000, cells: 0 },
  'leaky-bucket': { algorithm: 'leaky-bucket', windowMs: 0, cells: 0 },
};

/** So slow that no key ends by the server's own clock while a test runs. From 60 s on the limits glide. */
async function begin({ change, rule, outcomes = 0 }: Case, terms: TakeCall['terms']) {
  const made = fixture.limiter();
  const { keys } = made;
  const numbers = { rate: 0.05, capacity: 20, safeRate: 0.04, minRate: 0.01, maxCapacity: 20 };
  await seedParams(fixture.redis, keys, { ...numbers, ...change, ...terms }, { nowUs: T0 });
  if (rule) await sayOfSubject(fixture.redis, keys, 'a', rule, T0);
  for (let i = 0; i < outcomes; i++) {
    await countOutcome(fixture.redis, { keys, subject: 'a', name: 'paid', id: `${i}`, nowUs: T0 });
  }
  const { subjectRules } = (await storedParams(fixture.redis, keys))!;
  return { made, more: { rules: subjectRules === 1, ...(terms ? { terms } : {}) } };
}

const steps = fc.array(
  fc.record({
    us: fc.oneof(fc.constantFrom(0, 1, S), fc.integer({ min: 0, max: 20 * S })),
    subject: fc.constantFrom('a', 'a', 'a', 'b', null),
    cost: fc.constantFrom(0, 1, 2, 5, 7, 21),
  }),
  { minLength: 4, maxLength: 16 },
);

/** Whatever the seed, something is denied: there is room for 20. */
const MORE_THAN_THERE_IS = Array(4).fill({ us: 0, subject: 'a', cost: 7 });

describe.each(Object.entries(TERMS))('%s', (_algorithm, terms) => {
  test.each(Object.entries(CASES))('C16: %s', async (_name, each) => {
    let denied = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const { made, more } = await begin(each, terms);
        let nowUs = T0;
        for (const { us, subject, cost } of list) {
          nowUs += us;
          const before = await snapshot(made);
          const { status, answers } = await made.call([{ subject, cost }], nowUs, more);
          expect(status).toBe('ok');
          if (answers[0]!.allowed) continue;
          denied += 1;
          expect(await snapshot(made)).toEqual(before);
        }
      }),
      { numRuns: 6, examples: [[MORE_THAN_THERE_IS]] },
    );
    expect(denied).toBeGreaterThan(0);
  });
});

test.each<[string, ParamChange]>([
  ['without a subject rate', NONE],
  ['with one', OWN],
])('C16: a block draw that is given nothing, %s', async (_name, change) => {
  const { made } = await begin({ change }, undefined);
  const { keys } = made;
  const ask = { ...{ keys, epoch: 1_000_000 }, total: { want: 20, back: 0 } };
  const drawn = (nowUs: number) =>
    draw(fixture.redis, { ...ask, subjects: [{ subject: 'a', want: 5, back: 0 }], nowUs });
  expect((await made.call([{ cost: 15, subject: null }], T0)).answers[0]).toMatchObject({
    allowed: true,
  });
  for (let i = 0; i < 8; i++) await drawn(T0);
  for (const us of [0, 1, S]) {
    const before = await snapshot(made);
    const given = (await drawn(T0 + us)).drawn!.map((each) => each.given);
    expect(given).toEqual([0, 0]);
    expect(await snapshot(made)).toEqual(before);
  }
});
