/** In-flight shares of a fleet, in virtual time: whatever is lost or late, what is under way never passes the cap. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inFlight } from '../../src/redis/scripts.js';
import { FALLBACK, S, T0, useRedis } from '../lua/fixture.js';
import { seedParams } from '../support/seed-params.js';

const fixture = useRedis();

/** A process as the SDK has it: what it may have, what it has under way, and since when it knows. */
interface Member {
  share: number;
  inUse: number;
  heardUs: number;
}

async function fleet(cap: number) {
  const { keys } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { inFlightMax: cap, minInFlight: 0, maxInFlight: 1000 },
    { nowUs: T0 },
  );
  return (processId: string, need: number, bound: number, nowUs: number) =>
    inFlight(fixture.redis, {
      keys,
      processId,
      need,
      reports: true,
      exact: false,
      bound,
      fallback: FALLBACK,
      nowUs,
    });
}

test('I5: answers lost or not, shares that shrink over what is under way: never more than the cap', async () => {
  const step = fc.record({
    who: fc.integer({ min: 0, max: 3 }),
    afterUs: fc.constantFrom(0, S / 10, S / 2),
    what: fc.oneof(
      fc.record({ need: fc.integer({ min: 0, max: 12 }), lost: fc.boolean() }),
      fc.record({ begin: fc.integer({ min: 1, max: 12 }) }),
      fc.record({ end: fc.integer({ min: 1, max: 12 }) }),
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.array(step, { minLength: 5, maxLength: 40 }),
      async (cap, steps) => {
        const ask = await fleet(cap);
        const members = Array.from(
          { length: 4 },
          (): Member => ({ share: 0, inUse: 0, heardUs: 0 }),
        );
        let nowUs = T0;
        for (const { who, afterUs, what } of steps) {
          nowUs += afterUs;
          // All ask once a second; who does not for 3 s has lost its part, and nothing is claimed of it.
          for (const [i, each] of members.entries()) {
            if (nowUs - each.heardUs < S || (each.share === 0 && each.inUse === 0)) continue;
            const bound = Math.max(each.inUse, each.share);
            each.share = (await ask(`p${i}`, each.inUse, bound, nowUs)).share;
            each.heardUs = nowUs;
          }
          const member = members[who]!;
          if ('begin' in what) {
            member.inUse = Math.max(
              member.inUse,
              Math.min(member.share, member.inUse + what.begin),
            );
          } else if ('end' in what) member.inUse = Math.max(0, member.inUse - what.end);
          else {
            const bound = Math.max(member.inUse, member.share);
            const { share } = await ask(`p${who}`, Math.max(what.need, member.inUse), bound, nowUs);
            if (!what.lost) member.share = share;
            member.heardUs = nowUs;
          }
          const all = members.reduce((sum, { inUse }) => sum + inUse, 0);
          expect(all).toBeLessThanOrEqual(cap);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test('twenty processes: within 2 s of a change each has its max-min part of the cap', async () => {
  const ask = await fleet(60);
  const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
  const members = new Map(names.map((name) => [name, { share: 0, againUs: 0 }]));
  let nowUs = T0;
  const shares = () => names.map((name) => members.get(name)!.share);

  /** As the SDK asks: each second, while its share denies each 100 ms, and again soon while it holds what is others'. */
  async function run(forUs: number, need: (index: number) => number) {
    for (const endUs = nowUs + forUs; nowUs < endUs; nowUs += S / 40) {
      for (const [i, name] of names.entries()) {
        const each = members.get(name)!;
        if (nowUs < each.againUs) continue;
        // Work is short beside a second: what is under way is at once within the share.
        const reply = await ask(name, need(i), each.share, nowUs);
        const again = reply.share < each.share ? S / 20 : need(i) > reply.share ? S / 10 : S;
        each.share = reply.share;
        each.againUs = nowUs + again;
        // Not all at one moment.
        if (nowUs === T0) each.againUs -= (i * S) / 40;
      }
    }
  }
  await run(2 * S, (i) => (i < 4 ? 30 : 1));
  expect(shares()).toEqual(names.map((_, i) => (i < 4 ? 11 : 1)));
  await run(2 * S, (i) => (i >= 15 ? 30 : 1));
  expect(shares()).toEqual(names.map((_, i) => (i >= 15 ? 9 : 1)));
  await run(2 * S, () => 30);
  expect(shares()).toEqual(names.map(() => 3));
});
