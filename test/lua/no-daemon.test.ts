/** Every daemon dead, for hours of injected time: what the limits do by themselves inside Redis, and what they admit. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyVerb } from '../../src/actuate/verbs/apply.js';
import { pin } from '../../src/actuate/verbs/pin.js';
import type { ParamChange } from '../../src/redis/params.js';
import { inFlight } from '../../src/redis/scripts.js';
import { seedParams } from '../support/seed-params.js';
import { FALLBACK, type Limiter, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const HOUR = 3600 * S;
/** Hold 60 s, then in 30 s to 40/s and a cap of 8. */
const LOST: ParamChange = {
  ...{ rate: 200, capacity: 100, inFlightMax: 32, minRate: 20, maxRate: 400 },
  ...{ lostAfterMs: 60_000, lostOverMs: 30_000, safeRate: 40, safeInFlight: 8 },
};

async function lost(change: ParamChange = {}): Promise<Limiter> {
  const limiter = fixture.limiter();
  await seedParams(fixture.redis, limiter.keys, { ...LOST, ...change }, { nowUs: T0 });
  return limiter;
}

const now = async (limiter: Limiter, atUs: number) =>
  (await limiter.call([{ cost: 0 }], T0 + atUs)).inForce;

/** Admitted of `perSecond` takes a second over these seconds, asked in batches. */
async function admitted(limiter: Limiter, fromUs: number, seconds: number, perSecond: number) {
  let sum = 0;
  for (let second = 0; second < seconds; second++) {
    const takes = Array.from({ length: perSecond }, () => ({ cost: 1 }));
    const { answers } = await limiter.call(takes, T0 + fromUs + second * S);
    sum += answers.filter((answer) => answer.allowed).length;
  }
  return sum;
}

test('I11: held, then in a line to the safe values, and there for days; time passing writes nothing', async () => {
  const limiter = await lost();
  const before = await fixture.redis.hgetall(limiter.keys.params);
  const seen: [seconds: number, rate: number, cap: number, gliding: boolean][] = [
    [0, 200, 32, false],
    [59, 200, 32, false],
    [75, 120, 20, true],
    [90, 40, 8, true],
    [3600, 40, 8, true],
    [72 * 3600, 40, 8, true],
  ];
  for (const [seconds, rate, inFlightMax, gliding] of seen) {
    expect([seconds, await now(limiter, seconds * S)]).toMatchObject([
      seconds,
      { rate, inFlightMax, gliding, state: 'closed', managed: true },
    ]);
  }
  expect(await fixture.redis.hgetall(limiter.keys.params)).toEqual(before);
  expect(await fixture.redis.xlen(limiter.keys.audit)).toBe(1);
});

test('I5: over six hours of steady overload no more is admitted than capacity and what the rate has paid', async () => {
  const limiter = await lost({ capacity: 400 });
  let sum = 0;
  // A minute of each hour in full, and the edges of the glide second by second.
  sum += await admitted(limiter, 0, 100, 250);
  expect(sum).toBeLessThanOrEqual(400 + 200 * 60 + 120 * 30 + 40 * 10 + 1);
  expect(sum).toBeGreaterThan(200 * 60 + 120 * 30);
  for (let hour = 1; hour <= 6; hour++) {
    const minute = await admitted(limiter, hour * HOUR, 30, 100);
    expect(minute).toBeLessThanOrEqual(400 + 40 * 29 + 1);
    expect(minute).toBeGreaterThanOrEqual(40 * 29);
  }
});

test('the in-flight cap glides with it, for those who ask for their share', async () => {
  const limiter = await lost();
  const share = (atUs: number) =>
    inFlight(fixture.redis, {
      ...{ keys: limiter.keys, processId: 'p', need: 100, reports: true, fallback: FALLBACK },
      nowUs: T0 + atUs,
    });
  expect((await share(30 * S)).share).toBe(32);
  expect((await share(HOUR)).share).toBe(8);
  expect((await share(24 * HOUR)).share).toBe(8);
});

test('I6: an open limiter half-opens by itself, trickles for as long as nobody decides, then goes to the safe values without a burst', async () => {
  const open = { state: 'open' as const, openUntil: (T0 + 10 * S) / 1000, openForMs: 10_000 };
  const limiter = await lost({ ...open, probeRate: 2 });
  expect(await now(limiter, 5 * S)).toMatchObject({ state: 'open', rate: 0 });
  expect(await admitted(limiter, 5 * S, 4, 50)).toBe(0);
  expect(await now(limiter, 11 * S)).toMatchObject({ state: 'half-open', rate: 2 });
  expect(await admitted(limiter, 11 * S, 50, 20)).toBeLessThanOrEqual(2 * 51 + 2);
  // The open time and whenLost.after are over: from the probe rate up, never above the safe rate.
  expect(await now(limiter, 85 * S)).toMatchObject({ state: 'recovering', rate: 21 });
  const recovering = await admitted(limiter, 85 * S, 15, 100);
  expect(recovering).toBeLessThanOrEqual(40 * 15 + 100);
  expect(await now(limiter, 6 * HOUR)).toMatchObject({ state: 'recovering', rate: 40 });
  expect(await admitted(limiter, 6 * HOUR, 10, 100)).toBeLessThanOrEqual(100 + 40 * 9 + 1);
});

test('a hold beats it for hours, and the wait begins when the hold ends; one without an end lasts', async () => {
  const until = (T0 + 5 * HOUR) / 1000;
  const pinned = await lost({ pinnedUntil: until, heldBy: 'kim' });
  expect(await now(pinned, 5 * HOUR + 59 * S)).toMatchObject({ rate: 200, gliding: false });
  expect(await now(pinned, 5 * HOUR + 90 * S)).toMatchObject({ rate: 40, gliding: true });
  const frozen = await lost({ frozenUntil: -1, heldBy: 'kim' });
  expect(await now(frozen, 30 * 24 * HOUR)).toMatchObject({ rate: 200, gliding: false });
  const tripped = await lost({ state: 'open', openUntil: -1, openForMs: 5000 });
  expect(await now(tripped, 30 * 24 * HOUR)).toMatchObject({ state: 'open', rate: 0 });
});

test('I7: people act all the same: a pin after hours begins from where the glide has come, and holds', async () => {
  const limiter = await lost();
  const nowUs = T0 + 3 * HOUR;
  const outcome = await applyVerb(
    fixture.redis,
    { name: limiter.keys.name },
    pin({ rate: 90 }, 3_600_000),
    {
      ...{ actor: 'kim', dryRun: false, nowMs: () => nowUs / 1000, nowUs },
      approve: async ({ before }) => {
        expect(before).toMatchObject({ rate: 40, inFlightMax: 8 });
        return true;
      },
    },
  );
  expect(outcome.status).toBe('done');
  expect(await now(limiter, 3.9 * HOUR)).toMatchObject({
    rate: 90,
    inFlightMax: 8,
    gliding: false,
  });
  expect(await now(limiter, 5 * HOUR)).toMatchObject({ rate: 40, gliding: true });
});

test('I1, I11: whatever whenLost says, the way is a line between where it began and the safe value, and ends there', async () => {
  const lostTerms = fc.record({
    rate: fc.integer({ min: 20, max: 400 }),
    safeRate: fc.integer({ min: 1, max: 400 }),
    after: fc.integer({ min: 0, max: 7_200_000 }),
    over: fc.integer({ min: 0, max: 7_200_000 }),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  await fc.assert(
    fc.asyncProperty(lostTerms, async ({ rate, safeRate, after, over, at }) => {
      const limiter = await lost({ rate, safeRate, lostAfterMs: after, lostOverMs: over });
      const start = after * 1000;
      const rateAt = async (us: number) => (await now(limiter, us)).rate;
      if (after > 0) expect(await rateAt(start - 1)).toBe(rate);
      const part = Math.floor(over * 1000 * at);
      const line = over === 0 ? safeRate : rate + ((safeRate - rate) * part) / (over * 1000);
      expect(await rateAt(start + part)).toBeCloseTo(line, 6);
      expect(await rateAt(start + over * 1000 + 1)).toBe(safeRate);
      expect(await rateAt(start + over * 1000 + 100 * HOUR)).toBe(safeRate);
    }),
    { numRuns: 40 },
  );
});
