/** Which window of a schedule holds: days, zones, the hours that clocks skip or repeat; and what a profile makes of a policy. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePolicy, resolvePolicy } from '../../src/policy/parse.js';
import { profiled, windowsAt } from '../../src/policy/profile.js';
import type { PolicyInput } from '../../src/policy/schema.js';
import { parseDays, parseMoment, type TimeWindow, windowAt } from '../../src/policy/windows.js';

const at = (iso: string) => Date.parse(iso);
const iso = (ms: number) => new Date(ms).toISOString().replace(':00.000Z', 'Z');
const span = (window: TimeWindow, now: string) => {
  const found = windowAt(window, at(now));
  return found && `${iso(found.fromMs)} … ${iso(found.untilMs)}`;
};

test('from 19:50 on 11-11 to 02:00 the next day in Shanghai, each year', () => {
  const window = { on: '11-11', from: '19:50', to: '02:00', timezone: 'Asia/Shanghai' };
  const held = '2026-11-11T11:50Z … 2026-11-11T18:00Z';
  expect(span(window, '2026-11-11T11:49:59Z')).toBeNull();
  expect(span(window, '2026-11-11T11:50:00Z')).toBe(held);
  expect(span(window, '2026-11-11T17:59:59Z')).toBe(held);
  expect(span(window, '2026-11-11T18:00:00Z')).toBeNull();
  expect(span(window, '2026-11-12T12:00:00Z')).toBeNull();
  expect(span(window, '2027-11-11T12:00:00Z')).toBe('2027-11-11T11:50Z … 2027-11-11T18:00Z');
});

test('weekly and dated windows; every day where no day is named', () => {
  const weekend = { on: 'fri-sun', from: '18:00', to: '06:00', timezone: 'Europe/Berlin' };
  // 2026-11-27 is a Friday.
  expect(span(weekend, '2026-11-26T18:00:00Z')).toBeNull();
  expect(span(weekend, '2026-11-27T17:00:00Z')).toBe('2026-11-27T17:00Z … 2026-11-28T05:00Z');
  expect(span(weekend, '2026-11-30T04:59:00Z')).toBe('2026-11-29T17:00Z … 2026-11-30T05:00Z');
  expect(span(weekend, '2026-11-30T05:00:00Z')).toBeNull();
  const daily = { from: '22:00', to: '22:30' };
  expect(span(daily, '2026-03-01T22:29:00Z')).toBe('2026-03-01T22:00Z … 2026-03-01T22:30Z');
  const dated = { from: '2026-11-10 20:00', to: '2026-11-12 02:00', timezone: 'Asia/Tokyo' };
  expect(span(dated, '2026-11-11T00:00:00Z')).toBe('2026-11-10T11:00Z … 2026-11-11T17:00Z');
  expect(span(dated, '2027-11-11T00:00:00Z')).toBeNull();
  // The whole day: to is that time of the next.
  expect(span({ from: '06:00', to: '06:00' }, '2026-03-02T05:59:00Z')).toBe(
    '2026-03-01T06:00Z … 2026-03-02T06:00Z',
  );
});

describe('C88: what holds is asked of the clock, so that no edge is lost where clocks are changed', () => {
  test('a beginning in the hour that is skipped is the end of the gap', () => {
    const window = { on: 'sun', from: '02:30', to: '04:00', timezone: 'America/New_York' };
    expect(span(window, '2026-03-08T06:59:00Z')).toBeNull();
    expect(span(window, '2026-03-08T07:00:00Z')).toBe('2026-03-08T07:00Z … 2026-03-08T08:00Z');
  });

  test('an hour that comes twice begins and ends the first time, once', () => {
    const window = { on: 'sun', from: '00:30', to: '01:30', timezone: 'America/New_York' };
    expect(span(window, '2026-11-01T05:29:00Z')).toBe('2026-11-01T04:30Z … 2026-11-01T05:30Z');
    expect(span(window, '2026-11-01T05:30:00Z')).toBeNull();
    expect(span(window, '2026-11-01T06:15:00Z')).toBeNull();
  });

  test('a window over the change of the clock is an hour longer, or shorter', () => {
    const window = { on: 'sat', from: '20:00', to: '08:00', timezone: 'Europe/London' };
    const hours = (now: string) => {
      const found = windowAt(window, at(now))!;
      return (found.untilMs - found.fromMs) / 3_600_000;
    };
    expect(hours('2026-10-25T00:30:00Z')).toBe(13);
    expect(hours('2026-03-29T00:30:00Z')).toBe(11);
    expect(hours('2026-06-06T23:30:00Z')).toBe(12);
  });

  test('asked each minute over a year of any zone, each day has its window once, whole', () => {
    const zones = ['America/New_York', 'Europe/London', 'Australia/Lord_Howe', 'Asia/Kathmandu'];
    const window = fc.record({
      zone: fc.constantFrom(...zones),
      hour: fc.nat(23),
      length: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(window, fc.nat(364), ({ zone, hour, length }, day) => {
        const two = (n: number) => String(n % 24).padStart(2, '0');
        const each = { from: `${two(hour)}:00`, to: `${two(hour + length)}:00`, timezone: zone };
        const seen = new Set<number>();
        const from = at('2026-01-01T00:00:00Z') + day * 86_400_000;
        for (let ms = from; ms < from + 3 * 86_400_000; ms += 15 * 60_000) {
          const found = windowAt(each, ms);
          if (found === null) continue;
          expect(found.fromMs <= ms && ms < found.untilMs).toBe(true);
          const hours = (found.untilMs - found.fromMs) / 3_600_000;
          expect(Math.abs(hours - length)).toBeLessThanOrEqual(1);
          seen.add(found.fromMs);
        }
        // Three days see three or four of them, a day apart.
        expect(seen.size).toBeGreaterThanOrEqual(3);
        expect(seen.size).toBeLessThanOrEqual(4);
      }),
      { numRuns: 12 },
    );
  });
});

test('what is no time and no day is told from what is', () => {
  expect(['24:00', '7:30', '19:60', '2026-02-30 10:00', ''].map(parseMoment)).toEqual(
    Array.from({ length: 5 }, () => null),
  );
  expect(parseMoment('19:50')).toEqual({ ms: 71_400_000, dated: false });
  for (const wrong of ['', 'monday', 'mon-', '13-01', '02-30', '2026-02-29', 'mon;tue']) {
    expect([wrong, parseDays(wrong)]).toEqual([wrong, null]);
  }
  const days = parseDays('Mon-Tue, 12-24,2026-11-11')!;
  const on = (date: string) => days(at(`${date}T00:00:00Z`));
  expect(['2026-11-30', '2026-12-01', '2026-12-24', '2026-11-11'].every(on)).toBe(true);
  expect(['2026-12-02', '2027-11-11'].some(on)).toBe(false);
});

const input: PolicyInput = {
  limiter: { name: 'checkout', rate: 100, capacity: 200, inFlightMax: 20 },
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  mode: 'auto',
  profiles: { sale: { times: 3 }, night: { rate: 50, bounds: { rate: { min: 10, max: 60 } } } },
  schedule: [
    { profile: 'sale', on: '11-11', from: '19:50', to: '02:00', timezone: 'Asia/Shanghai' },
    { profile: 'night', from: '00:00', to: '06:00' },
    { freeze: 'stocktaking', on: 'sun', from: '01:00', to: '03:00' },
  ],
};

test('a profile multiplies numbers and bounds, or names them; the safe values stay the policy’s own', () => {
  const policy = resolvePolicy(input);
  expect(profiled(policy, undefined)).toBe(policy);
  expect(profiled(policy, 'gone')).toBe(policy);
  const sale = profiled(policy, 'sale');
  expect(sale.limiter).toMatchObject({ rate: 300, capacity: 600, inFlightMax: 60 });
  expect(sale.bounds).toEqual({ rate: { min: 60, max: 1200 }, inFlight: { min: 6, max: 192 } });
  expect(sale.whenLost).toMatchObject({ rate: 100, inFlight: 20 });
  const night = profiled(policy, 'night');
  expect(night.limiter).toMatchObject({ rate: 50, capacity: 200, inFlightMax: 20 });
  expect(night.bounds).toEqual({ rate: { min: 10, max: 60 }, inFlight: { min: 2, max: 64 } });
});

test('of two windows of one kind the first in the list leads; a profile and a freeze hold side by side', () => {
  const policy = resolvePolicy(input);
  expect(windowsAt(policy, at('2026-11-11T12:00:00Z')).profile?.name).toBe('sale');
  const both = { ...input, schedule: [...input.schedule!].reverse() };
  expect(windowsAt(resolvePolicy(both), at('2026-11-11T12:00:00Z')).profile?.name).toBe('sale');
  const sunday = windowsAt(policy, at('2026-11-29T02:00:00Z'));
  expect(sunday.profile?.name).toBe('night');
  expect(sunday.freeze?.why).toBe('stocktaking');
  expect(windowsAt(policy, at('2026-11-29T12:00:00Z'))).toEqual({});
});

test('faults name the window, the value and the mend', () => {
  const faults = (change: Partial<PolicyInput>) => {
    const result = parsePolicy({ ...input, ...change }, 'x.ts');
    return 'faults' in result
      ? result.faults!.map((f) => `${f.field} ${f.message}`).join('\n')
      : '';
  };
  const one = (window: Record<string, unknown>) => faults({ schedule: [window as never] });
  const times = { from: '10:00', to: '11:00' };
  expect(one({ ...times, profile: 'sales' })).toContain(
    'schedule.0.profile is "sales", but profiles are sale, night',
  );
  expect(one(times)).toContain('schedule.0 says neither which profile holds nor that it freezes');
  expect(one({ ...times, profile: 'sale', freeze: 'x' })).toContain('names a profile and a freeze');
  expect(one({ ...times, profile: 'sale', timezone: 'Mars' })).toContain(
    "schedule.0.timezone is \"Mars\", not a time zone that this machine knows ('UTC', 'Europe/Berlin')",
  );
  expect(one({ from: '25:00', to: '26:00', profile: 'sale' })).toContain(
    'schedule.0.from is "25:00", not a time of day',
  );
  expect(one({ ...times, profile: 'sale', on: 'monday' })).toContain(
    'schedule.0.on is "monday", not days',
  );
  expect(one({ from: '2026-11-11 10:00', to: '11:00', profile: 'sale' })).toContain(
    'a date at one end alone',
  );
  expect(one({ from: '2026-11-11 10:00', to: '2026-11-11 09:00', profile: 'sale' })).toContain(
    'schedule.0.to is 2026-11-11 09:00, not after from',
  );
  expect(
    one({ from: '2026-11-11 10:00', to: '2026-11-11 12:00', on: 'mon', profile: 'sale' }),
  ).toContain('schedule.0.on has no meaning');
  expect(faults({ profiles: undefined })).toContain('there are no profiles');
  expect(
    faults({ profiles: { sale: { bounds: { rate: { min: 500, max: 600 } } }, night: {} } }),
  ).toContain('profiles.sale makes bounds.rate.min a fault: it is 500 but limiter.rate is 100');
  expect(faults({})).toBe('');
});

test('a policy that came out is valid input again, and comes out the same', () => {
  const policy = resolvePolicy(input);
  expect(resolvePolicy(policy)).toEqual(policy);
});
