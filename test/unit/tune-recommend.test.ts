/** What a history recommends: formulas, what is left out, the anti-ratchet, bands, bounds, refusals. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { policySchema } from '../../src/policy/schema.js';
import { seeded } from '../../src/sim/random.js';
import { addSums, fitQuality, kneeOf, kneeSums } from '../../src/tune/knee.js';
import { type Recommendation, recommend, type TuneInput } from '../../src/tune/recommend.js';
import { goodRate, percentile } from '../../src/tune/usable.js';
import { type MadeUp, madeUp, pointAt } from '../support/history.js';

const policy = policySchema.parse({
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: {
    rate: { min: 10, max: 1000 },
    inFlight: { min: 2, max: 100 },
    capacity: { min: 10, max: 5000 },
  },
});

const inputOf = (options: MadeUp, more: Partial<TuneInput> = {}): TuneInput => ({
  policy,
  history: madeUp(options),
  inForce: { rate: 100, capacity: 200, inFlightMax: 20 },
  facts: { slotsPerInstance: 1, instances: 8 },
  random: seeded(1),
  ...more,
});

function ready(options: MadeUp, more: Partial<TuneInput> = {}): Recommendation {
  const found = recommend(inputOf(options, more));
  if (found.status !== 'ready') throw new Error(found.sentence);
  return found;
}

test('rate is the 95th percentile of good throughput; capacity by slots, at least a second of the rate', () => {
  const input = inputOf({ days: 7 });
  const found = ready({ days: 7 });
  const p95 = percentile(input.history.map(goodRate), 0.95)!;
  expect(found.rate.value / p95).toBeCloseTo(1, 2);
  expect(found.rate).toMatchObject({ binds: 'history', inForce: 100 });
  // 70 by the slots, but the rate leads.
  expect(found.capacity).toMatchObject({ value: Math.ceil(p95), binds: 'rate' });
  expect(ready({ days: 7, mean: 40 }).capacity).toMatchObject({ value: 70, binds: 'slots' });
});

test('minutes of an open breaker, overload, drift, failures and those nobody watched are left out and counted', () => {
  const spoilt = (i: number) =>
    [{ notClosedS: 20 }, { overloadS: 30 }, { driftS: 60 }, { failed: 90_000 }, { watchedS: 10 }][
      i % 10
    ] ?? {};
  // Each spoilt minute claims a throughput that would move the percentile.
  const found = ready({
    days: 7,
    change: (_row, i) => (i % 10 < 5 ? { ok: 60_000, ...spoilt(i) } : {}),
  });
  expect(found.minutes).toMatchObject({
    used: 5040,
    leftOut: { breaker: 1008, overload: 1008, drift: 1008, failing: 1008, unwatched: 1008 },
  });
  expect(found.rate.value).toBeLessThan(160);
});

test('the rate is not lowered below what passed in healthy minutes in which it denied', () => {
  const denied = (i: number) => i % 100 === 0;
  const change: MadeUp['change'] = (row, i) =>
    denied(i)
      ? { ok: 180 * 60, offered: 220 * 60, denied: { rate: 40 * 60 } }
      : { denied: { ...row.denied } };
  expect(ready({ days: 7, change }).rate).toMatchObject({ value: 180, binds: 'denied demand' });
  // Denied by something else than the rate: no reason.
  const cap: MadeUp['change'] = (row, i) =>
    denied(i)
      ? { ok: 180 * 60, offered: 220 * 60, denied: { in_flight: 40 * 60 } }
      : { denied: { ...row.denied } };
  expect(ready({ days: 7, change: cap }).rate.binds).toBe('history');
});

test('the cap is the knee of the curve that made the history, with bounds around it', () => {
  // Peak at √(40 ÷ 0.02) = 44.7 in flight.
  const found = ready({ days: 7, mean: 480, swing: 0.9 });
  const peak = Math.sqrt(40 / 0.02);
  const most = 1000 / (0.4 + 2 * 0.02 + 2 * Math.sqrt(40 * 0.02));
  expect(found.knee!.mostPerSecond / most).toBeCloseTo(1, 1);
  expect(found.knee!.perSecond / found.knee!.mostPerSecond).toBeCloseTo(0.95, 3);
  expect(found.inFlightMax!.value).toBeGreaterThan(0.5 * peak);
  expect(found.inFlightMax!.value).toBeLessThan(peak);
  const { bounds, knee } = found;
  expect(bounds!.inFlight.min).toBeLessThan(knee!.inFlight);
  expect(bounds!.inFlight.max).toBeGreaterThan(knee!.inFlight);
  expect(bounds!.rate.max).toBeGreaterThan(knee!.mostPerSecond);
  expect(bounds!.rate.max).toBeGreaterThan(found.rate.wanted);
  expect(bounds!.rate.min).toBeLessThan(found.rate.wanted);
});

test('far from its knee a service shows none, and that is said; noise that load does not explain is no knee', () => {
  const far = ready({ days: 7, mean: 40 });
  expect(far).toMatchObject({ knee: null, inFlightMax: null, bounds: null });
  expect(far.missing.join()).toContain('never near it');
  const random = seeded(3);
  const noisy = ready({
    days: 7,
    mean: 480,
    change: (row) => ({ points: row.points.map(([x, n, w]) => [x, n, w * (0.2 + 5 * random())]) }),
  });
  expect(noisy.inFlightMax).toBeNull();
});

test('what lies outside the policy is brought within its bounds, and that binds', () => {
  const narrow = policySchema.parse({
    ...policy,
    bounds: { rate: { min: 10, max: 120 }, inFlight: { min: 2, max: 10 } },
  });
  const found = ready({ days: 7, mean: 480, swing: 0.9 }, { policy: narrow });
  expect(found.rate).toMatchObject({ value: 120, binds: 'bounds.rate.max' });
  expect(found.inFlightMax).toMatchObject({ value: 10, binds: 'bounds.inFlight.max' });
});

test('connections bind the rate as well', () => {
  const found = ready(
    { days: 7 },
    { facts: { slotsPerInstance: 4, instances: 8, connections: 4, holdMs: 50 } },
  );
  expect(found.rate).toMatchObject({ value: 80, binds: 'connections' });
  expect(found.capacity).toMatchObject({ value: 80, binds: 'connections' });
});

test('whatever the service: capacity ≥ rate, and neither above connections ÷ hold time', () => {
  const facts = fc.record({
    mean: fc.constantFrom(40, 480, 2000),
    slotsPerInstance: fc.integer({ min: 1, max: 20 }),
    instances: fc.integer({ min: 1, max: 12 }),
    connections: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
    holdMs: fc.double({ min: 5, max: 100, noNaN: true }),
    most: fc.option(fc.integer({ min: 20, max: 300 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(facts, ({ mean, most, ...service }) => {
      const range = policy.bounds!;
      const capacity = most === undefined ? range.capacity! : { min: 1, max: most };
      const bounded = { ...policy, bounds: { ...range, rate: { min: 1, max: 5000 }, capacity } };
      const found = ready({ days: 1.1, mean }, { policy: bounded, facts: service });
      const said = JSON.stringify([found.rate, found.capacity]);
      const allowed =
        service.connections === undefined
          ? Number.POSITIVE_INFINITY
          : // What should be whole may lie a hair below it.
            (1 + 1e-9) * (service.connections / (service.holdMs / 1000));
      expect(found.rate.value, said).toBeLessThanOrEqual(Math.max(1, allowed));
      const { value, binds } = found.capacity!;
      expect(value, said).toBeLessThanOrEqual(Math.max(capacity.min, allowed));
      if (binds !== 'bounds.capacity.max') {
        expect(value, said).toBeGreaterThanOrEqual(found.rate.value);
      } else expect(value, said).toBe(capacity.max);
    }),
    { numRuns: 25 },
  );
});

test('the band holds the value, is wide when the history is short, and the same for the same seed', () => {
  const width = ({ rate }: Recommendation) => Math.log(rate.band!.high / rate.band!.low);
  const week = ready({ days: 7 });
  const day = ready({ days: 1.1 });
  for (const { rate } of [week, day]) {
    expect(rate.band!.low).toBeLessThanOrEqual(rate.wanted * 1.01);
    expect(rate.band!.high).toBeGreaterThanOrEqual(rate.wanted * 0.99);
  }
  expect(width(day)).toBeGreaterThan(3 * width(week));
  expect(ready({ days: 7 }).rate.band).toEqual(week.rate.band);
  // Days that differ: the band shows it.
  const uneven = ready({
    days: 7,
    change: (row, i) => ({ ok: i < 2 * 1440 ? row.ok / 3 : row.ok }),
  });
  expect(width(uneven)).toBeGreaterThan(2 * width(week));
});

test('below a day, or with too few usable minutes, nothing is said but why', () => {
  const short = recommend(inputOf({ days: 0.5 }));
  expect(short).toMatchObject({ status: 'refused' });
  expect(short).toMatchObject({ sentence: expect.stringContaining('12 h') });
  const open = recommend(inputOf({ days: 7, change: () => ({ notClosedS: 60 }) }));
  expect(open).toMatchObject({ sentence: expect.stringContaining('10080 breaker') });
  expect(recommend(inputOf({ days: 0 }))).toMatchObject({ status: 'refused' });
  const unreported = recommend(inputOf({ days: 2, change: () => ({ ok: 0 }) }));
  expect(unreported).toMatchObject({ sentence: expect.stringContaining('release()') });
});

test('the fit finds the curve that made the points, with noise, and its sums add up by parts', () => {
  const random = seeded(5);
  for (const curve of [
    [40, 0.4, 0.02],
    [10, 0, 0.001],
    [25, 1.5, 0],
  ] as [number, number, number][]) {
    const most = curve[2] > 0 ? kneeAt(curve) : 600;
    const points = Array.from({ length: 2000 }, () => {
      const [x, n, w] = pointAt(curve, random() * most);
      const noise = 0.95 + 0.1 * random();
      return [x / noise, n, w * noise] as [number, number, number];
    });
    const whole = kneeSums(points);
    const parts = addSums([kneeSums(points.slice(0, 700)), kneeSums(points.slice(700))]);
    const knee = kneeOf(whole)!;
    expect(kneeOf(parts)!.inFlight / knee.inFlight).toBeCloseTo(1, 6);
    expect(knee.curve[0] / curve[0]).toBeCloseTo(1, 1);
    expect(fitQuality(whole, knee.curve)).toBeGreaterThan(0.8);
    if (curve[2] > 0) expect(knee.mostPerSecond / most).toBeCloseTo(1, 1);
    else expect(knee.mostPerSecond / (1000 / curve[1])).toBeCloseTo(1, 1);
  }
});

function kneeAt([a, b, c]: [number, number, number]): number {
  return 1000 / (b + 2 * c + 2 * Math.sqrt(a * c));
}

test('points that are no numbers, or all alike, fit nothing and break nothing', () => {
  expect(kneeOf(kneeSums([]))).toBeNull();
  expect(
    kneeOf(
      kneeSums([
        [1, Number.NaN, 3],
        [1, -1, 3],
        [1, 2, 0],
      ]),
    ),
  ).toBeNull();
  expect(kneeOf(kneeSums(Array(50).fill([10, 0.4, 40])))).toBeNull();
});
