/** Which daemon leads which limiter: even, the same for all who ask, and hardly moved by one that comes or goes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualClock } from '../../src/clock.js';
import { createDuty } from '../../src/daemon/duty.js';
import { phaseOf, ranked } from '../../src/daemon/rendezvous.js';

const LIMITERS = Array.from({ length: 1000 }, (_, i) => `limiter-${i}`);
const owner = (name: string, pid = 1) => `${name}:${pid}:0a1b2c3d`;
const first = (limiter: string, owners: string[]) => ranked(limiter, owners)[0]!;

test('a thousand limiters spread evenly over three daemons, whatever they are called', () => {
  for (const owners of [
    ['a', 'b', 'c'].map((name) => owner(name)),
    ['pod-7d9f-x1', 'pod-7d9f-x2', 'pod-7d9f-x3'].map((name) => owner(name)),
    [1, 2, 3].map((pid) => owner('same-host', pid)),
  ]) {
    for (const each of owners) {
      const part = LIMITERS.filter((limiter) => first(limiter, owners) === each).length;
      expect(part, each).toBeGreaterThan(270);
      expect(part, each).toBeLessThan(400);
    }
  }
});

test('one that goes moves only its own part, one that comes takes only its own; the order asked in is no matter', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,12}$/), {
    minLength: 2,
    maxLength: 6,
  });
  fc.assert(
    fc.property(names, fc.constantFrom(...LIMITERS), (all, limiter) => {
      const owners = all.map((name) => owner(name));
      const order = ranked(limiter, owners);
      expect([...order].sort()).toEqual([...owners].sort());
      expect(ranked(limiter, [...owners].reverse())).toEqual(order);
      for (const gone of owners) {
        const left = owners.filter((each) => each !== gone);
        expect(ranked(limiter, left)).toEqual(order.filter((each) => each !== gone));
      }
    }),
  );
});

test('a daemon that starts again under its own name leads what it led before', () => {
  const before = [owner('a', 10), owner('b', 11)];
  const after = [owner('a', 99), owner('b', 11)];
  const nameOf = (each: string) => each.split(':')[0];
  for (const limiter of LIMITERS.slice(0, 200)) {
    expect(nameOf(first(limiter, after))).toBe(nameOf(first(limiter, before)));
  }
});

test('phases are even over a tick', () => {
  const slices = Array.from({ length: 20 }, () => 0);
  for (const limiter of LIMITERS) slices[Math.floor(phaseOf(limiter) * 20)]! += 1;
  expect(Math.max(...slices)).toBeLessThan(85);
  expect(Math.min(...slices)).toBeGreaterThan(20);
});

function dutyOf(rank: number) {
  const clock = manualClock();
  const place = { rank, settled: true };
  const members = { rank: () => place.rank, settled: () => place.settled };
  return { clock, place, duty: createDuty({ limiter: 'checkout', leaseMs: 1000, clock, members }) };
}

test('who is first asks at once; the others one lease after the other, once nobody leads', () => {
  expect(dutyOf(0).duty.mayTake()).toBe(true);
  for (const rank of [1, 2]) {
    const { clock, duty } = dutyOf(rank);
    clock.advance(60_000);
    expect(duty.mayTake()).toBe(false);
    duty.saw(false);
    clock.advance(rank * 1000 - 1);
    expect(duty.mayTake()).toBe(false);
    clock.advance(1);
    expect(duty.mayTake()).toBe(true);
    duty.saw(true);
    expect(duty.mayTake()).toBe(false);
  }
});

test('it hands over once the fleet has settled; what it took as an orphan it keeps for a while', () => {
  const { clock, place, duty } = dutyOf(0);
  duty.took();
  expect(duty.handsOver()).toBe(false);
  place.rank = 1;
  place.settled = false;
  expect(duty.handsOver()).toBe(false);
  place.settled = true;
  expect(duty.handsOver()).toBe(true);

  const orphan = dutyOf(1);
  orphan.duty.took();
  expect(orphan.duty.handsOver()).toBe(false);
  orphan.clock.advance(1999);
  expect(orphan.duty.handsOver()).toBe(false);
  orphan.clock.advance(1);
  expect(orphan.duty.handsOver()).toBe(true);
  // It came back: whose it is cannot lead it. Then it is kept for twice as long.
  orphan.duty.gave();
  orphan.clock.advance(1500);
  orphan.duty.saw(true);
  orphan.duty.took();
  orphan.clock.advance(3999);
  expect(orphan.duty.handsOver()).toBe(false);
  orphan.clock.advance(1);
  expect(orphan.duty.handsOver()).toBe(true);
  // Another keeps it: all is forgotten.
  orphan.duty.gave();
  orphan.clock.advance(2001);
  orphan.duty.saw(true);
  orphan.duty.took();
  orphan.clock.advance(2000);
  expect(orphan.duty.handsOver()).toBe(true);
  expect(clock.monotonicMs()).toBe(0);
});

test('only the first two keep their estimates warm, by a look each half of a lease; the others look once', () => {
  expect([0, 1, 2, 3].map((rank) => dutyOf(rank).duty.watches())).toEqual([
    false,
    false,
    true,
    true,
  ]);
  const { clock, duty } = dutyOf(2);
  expect([duty.lookDue(), duty.lookDue()]).toEqual([true, false]);
  clock.advance(1000);
  expect(duty.lookDue()).toBe(true);
  const next = dutyOf(1);
  expect([next.duty.lookDue(), next.duty.lookDue()]).toEqual([true, false]);
  next.clock.advance(500);
  expect(next.duty.lookDue()).toBe(true);
});
