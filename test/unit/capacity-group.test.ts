/** Capacity groups: the division, what a policy may say of its downstream, and a share in the decision. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  divide,
  type GroupMember,
  needLevel,
  needOf,
  toldNeed,
} from '../../src/decide/capacity-group.js';
import { downstream, downstreamWarnings } from '../../src/policy/downstream.js';
import { createDecideState, parsePolicy, policySchema, turn } from '../../src/testing.js';
import { policyOf, sampleOf } from '../sim/fixtures.js';

const member = (name: string, more: Partial<GroupMember> = {}): GroupMember => ({
  name,
  weight: 1,
  min: 0,
  max: 1000,
  need: 1000,
  ...more,
});
const shares = (capacity: number, ...members: GroupMember[]) =>
  [...divide(capacity, members).values()].map((share) => Math.round(share * 1e6) / 1e6);

describe('the division', () => {
  test('small needs are met, the rest is parted by weight', () => {
    expect(shares(100, member('a', { need: 10 }), member('b'), member('c', { weight: 2 }))).toEqual(
      [10, 30, 60],
    );
  });
  test('what nobody needs goes to all by weight, up to their bounds', () => {
    const idle = { need: 10 };
    expect(shares(100, member('a', idle), member('b', { ...idle, weight: 3 }))).toEqual([25, 75]);
    expect(shares(100, member('a', { ...idle, max: 15 }), member('b', idle))).toEqual([15, 85]);
  });
  test('a need that is not known counts as all it may have: weights alone', () => {
    expect(shares(90, member('a', { need: null }), member('b', { need: null, weight: 2 }))).toEqual(
      [30, 60],
    );
  });
  test('what cannot be moved is taken first; nobody gets less than its minimum', () => {
    expect(shares(100, member('a', { fixed: 70 }), member('b'), member('c'))).toEqual([70, 15, 15]);
    expect(shares(100, member('a', { min: 80 }), member('b'))).toEqual([80, 20]);
    expect(shares(100, member('a', { min: 80 }), member('b', { min: 60 }))).toEqual([80, 60]);
  });

  const any = fc.record({
    weight: fc.double({ min: 0.1, max: 100, noNaN: true }),
    min: fc.double({ min: 0, max: 50, noNaN: true }),
    max: fc.double({ min: 50, max: 1000, noNaN: true }),
    need: fc.option(fc.double({ min: 0, max: 2000, noNaN: true })),
    fixed: fc.option(fc.double({ min: 0, max: 300, noNaN: true }), { nil: undefined, freq: 4 }),
  });
  test('within the sum, within bounds, work-conserving, max-min by weight', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 5000, noNaN: true }),
        fc.array(any, { minLength: 1, maxLength: 8 }),
        (capacity, parts) => {
          const members = parts.map(
            ({ fixed, ...each }, i): GroupMember => ({
              name: `m${i}`,
              ...each,
              ...(fixed !== undefined && { fixed }),
            }),
          );
          const got = divide(capacity, members);
          const free = members.filter(({ fixed }) => fixed === undefined);
          const of = ({ name }: GroupMember) => got.get(name)!;
          const near = 1e-6 * (1 + capacity);
          const fixed = members.reduce((sum, each) => sum + (each.fixed ?? 0), 0);
          const left = Math.max(0, capacity - fixed);
          const total = free.reduce((sum, each) => sum + of(each), 0);
          const minima = free.reduce((sum, { min }) => sum + min, 0);
          expect(total).toBeLessThanOrEqual(Math.max(left, minima) + near);
          for (const each of free) {
            expect(of(each)).toBeGreaterThanOrEqual(each.min - near);
            expect(of(each)).toBeLessThanOrEqual(each.max + near);
          }
          // Nothing is left over while one may have more.
          if (free.some((each) => of(each) < each.max - near))
            expect(total).toBeGreaterThanOrEqual(Math.max(left, minima) - near);
          // Nobody has more for its weight than one that needs more, but for a minimum.
          for (const poor of free) {
            const needs = Math.min(
              poor.max,
              Math.max(poor.min, poor.need ?? Number.POSITIVE_INFINITY),
            );
            if (of(poor) >= needs - near) continue;
            for (const rich of free) {
              if (of(rich) <= rich.min + near) continue;
              expect(of(rich) / rich.weight).toBeLessThanOrEqual(
                of(poor) / poor.weight + near * 10,
              );
            }
          }
        },
      ),
    );
  });
});

test('the need: what asks, in tokens where a rate binds; it rises at once and falls slowly, in steps', () => {
  expect(needOf({ offeredRate: 80, admittedRate: 80, deniedByRate: 0 }, 100)).toBe(80);
  // A take costs two tokens here.
  expect(needOf({ offeredRate: 100, admittedRate: 50, deniedByRate: 50 }, 100)).toBe(200);
  expect(toldNeed(0)).toBe(0);
  let level = needLevel(null, 80, 1000);
  expect(level).toBe(100);
  expect(toldNeed(level)).toBeGreaterThanOrEqual(100);
  expect(toldNeed(level)).toBeLessThan(110.001);
  expect(needLevel(level, 160, 1000)).toBe(200);
  const told = new Set<number>();
  for (let second = 0; second < 120; second++) {
    level = needLevel(level, 20, 1000);
    told.add(toldNeed(level));
  }
  expect(level).toBe(25);
  expect(told.size).toBeLessThan(18);
});

describe('in a decision', () => {
  const policy = policyOf({ guards: { cooldown: 0 } });
  const decide = (share: number, more = {}, law = policy) => {
    const group = { downstream: 'orders-db', share, usable: 160, members: 2 };
    return turn(law, createDecideState(law), { ...sampleOf(more), group }).decision;
  };

  test('a rate above its share comes down to it at once, and says so', () => {
    const cut = decide(63);
    expect(cut).toMatchObject({ change: true, rate: 63, reason: 'downstream_share' });
    expect(cut.sentence).toBe(
      'its share of orders-db is 63/s of 160/s among 2; rate ceiling 100 → 63/s.',
    );
    const fixed = decide(63, {}, policyOf({ control: { law: 'fixed' } }));
    expect(fixed).toMatchObject({ rate: 63, reason: 'downstream_share' });
  });
  test('it is not raised beyond its share, nor brought below its minimum', () => {
    const binds = { traffic: { deniedByRate: 50, deniedByCap: 50, offeredRate: 200 } };
    expect(decide(1000, binds).rate).toBeLessThanOrEqual(400);
    expect(decide(104, binds).rate).toBeLessThanOrEqual(104);
    expect(decide(3).rate).toBe(20);
  });
  test('I7: what a person holds is left alone', () => {
    expect(decide(63, { inForce: { held: 'pinned' } })).toMatchObject({ change: false });
  });
  test('without a group nothing is different', () => {
    const plain = turn(policy, createDecideState(policy), sampleOf()).decision;
    expect(decide(1e6)).toEqual(plain);
  });
});

describe('in a policy', () => {
  const withDb = (
    name: string,
    options: Parameters<typeof downstream>[1],
    rate = 1000,
    mode = 'auto',
  ) =>
    policySchema.parse({
      ...policyOf(),
      limiter: { name, rate, capacity: 100, downstream: downstream('orders-db', options) },
      bounds: { rate: { min: 10, max: rate } },
      mode,
    });

  test('plain data; the hash of a policy without one is untouched', () => {
    expect(withDb('a', { capacity: 2000, headroom: '20%', weight: 2 }).limiter.downstream).toEqual({
      name: 'orders-db',
      capacity: 2000,
      headroom: 0.2,
      weight: 2,
    });
    expect(Object.keys(policyOf().limiter)).not.toContain('downstream');
  });
  test('sums that do not fit, limiters that disagree, modes that do not move: each a sentence', () => {
    const fits = [withDb('a', { capacity: 2000 }, 800), withDb('b', { capacity: 2000 }, 800)];
    expect(downstreamWarnings(fits)).toEqual([]);
    const over = downstreamWarnings([
      withDb('a', { capacity: 2000 }),
      withDb('b', { capacity: 1500 }, 900, 'recommend'),
    ]);
    expect(over).toEqual([
      'downstream orders-db: its policies do not agree on what it leaves (a 1600, b 1200 tokens a second); the least counts. Give all of them one capacity and headroom.',
      'downstream orders-db: the rates of its limiters (a 1000, b 900) add up to 1900, above the 1200 tokens a second that it leaves. Lower limiter.rate of some by 700 together, or raise the capacity if it can take more.',
      'downstream orders-db: the bounds.rate.max of its limiters (a 1000, b 900) add up to 1900, above the 1200 tokens a second that it leaves. In mode auto the law divides it by weight and need; in the others lower them by 700 together.',
      "downstream orders-db: b is not in mode auto, so what they have is not moved. Set mode: 'auto' there, or count their rates as taken.",
    ]);
  });
  test.each([
    [
      { capacity: 2000, headroom: 1 },
      'limiter.downstream.headroom',
      'nothing of orders-db would be left',
    ],
    [{ capacity: 20, headroom: 0 }, 'bounds.rate.min', 'is 30, above the 20 tokens a second'],
    [{ capacity: -1 }, 'limiter.downstream.capacity', 'is -1'],
    [{ capacity: 20, wieght: 1 }, 'limiter.downstream.wieght', 'weight'],
  ])('%o is refused, by field and allowed values', (options, field, message) => {
    const { faults = [] } = parsePolicy(
      {
        limiter: {
          name: 'a',
          rate: 40,
          capacity: 10,
          downstream: { name: 'orders-db', ...options },
        },
        bounds: { rate: { min: 30, max: 50 } },
      },
      'a.ts',
    );
    expect(faults.map((fault) => `${fault.field} ${fault.message}`).join('\n')).toContain(field);
    expect(JSON.stringify(faults)).toContain(message);
  });
});
