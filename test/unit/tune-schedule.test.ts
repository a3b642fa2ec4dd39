/** When a schedule was last due: cron texts, zones, and the hours that clocks skip or repeat. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isTimeZone } from '../../src/policy/local-time.js';
import { lastDue, parseSchedule } from '../../src/tune/schedule.js';

const at = (iso: string) => Date.parse(iso);
const due = (text: string, zone: string, now: string) => {
  const found = lastDue(text, zone, at(now));
  return found === null ? null : new Date(found).toISOString().replace(':00.000Z', 'Z');
};
/** Every due time that is seen by asking once a minute, as a daemon does. */
function runs(text: string, zone: string, from: string, to: string): string[] {
  const seen = new Set<string>();
  for (let ms = at(from); ms <= at(to); ms += 60_000) {
    const one = lastDue(text, zone, ms)!;
    if (one >= at(from)) seen.add(new Date(one).toISOString().replace(':00.000Z', 'Z'));
  }
  return [...seen];
}

test('weekly is Monday 04:00, daily 04:00; fields of cron by value, list, range, step and name', () => {
  // 2026-11-30 is a Monday.
  expect(due('weekly', 'UTC', '2026-11-30T03:59:00Z')).toBe('2026-11-23T04:00Z');
  expect(due('weekly', 'UTC', '2026-11-30T04:00:00Z')).toBe('2026-11-30T04:00Z');
  expect(due('daily', 'UTC', '2026-11-30T03:00:00Z')).toBe('2026-11-29T04:00Z');
  expect(due('*/20 8-10,22 * * mon-fri', 'UTC', '2026-11-29T12:00:00Z')).toBe('2026-11-27T22:40Z');
  expect(due('0 0 29 2 *', 'UTC', '2026-11-30T00:00:00Z')).toBe('2024-02-29T00:00Z');
  // Day of month and weekday both given: either.
  expect(due('0 0 13 * 5', 'UTC', '2026-11-30T00:00:00Z')).toBe('2026-11-27T00:00Z');
  expect(due('0 9 * * 1', 'Asia/Tokyo', '2026-11-30T00:00:00Z')).toBe('2026-11-30T00:00Z');
  expect(due('15 4 * jan sun', 'UTC', '2026-11-30T00:00:00Z')).toBe('2026-01-25T04:15Z');
});

test('what is no schedule is none', () => {
  for (const text of [
    ...[
      '',
      'often',
      '* * * *',
      '* * * * * *',
      '60 * * * *',
      '0 24 * * *',
      '0 0 0 * *',
      '0 0 30 2 *',
    ],
    ...[
      '0 0 * 13 *',
      '*/0 * * * *',
      '5-1 * * * *',
      '*-5 * * * *',
      '1,,2 * * * *',
      '0 0 * * foo',
      '-1 * * * *',
    ],
  ]) {
    expect([text, parseSchedule(text)]).toEqual([text, null]);
    expect(lastDue(text, 'UTC', 0)).toBeNull();
  }
});

test('zones are known or not', () => {
  expect(['UTC', 'Europe/Berlin', 'America/New_York'].map(isTimeZone)).toEqual([true, true, true]);
  expect(['Europe/Atlantis', 'Mars', '', 'europe berlin'].map(isTimeZone)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test('C88: a time that the clock skips is due once, when the gap ends', () => {
  // New York, 2026-03-08: 01:59 EST → 03:00 EDT at 07:00Z.
  const zone = 'America/New_York';
  expect(runs('30 2 * * 0', zone, '2026-03-08T04:00:00Z', '2026-03-08T12:00:00Z')).toEqual([
    '2026-03-08T07:00Z',
  ]);
  expect(due('30 2 * * 0', zone, '2026-03-08T06:59:00Z')).toBe('2026-03-01T07:30Z');
});

test('C88: a time that the clock repeats is due once', () => {
  // New York, 2026-11-01: 01:59 EDT → 01:00 EST at 06:00Z.
  const zone = 'America/New_York';
  expect(runs('30 1 * * 0', zone, '2026-11-01T03:00:00Z', '2026-11-01T12:00:00Z')).toEqual([
    '2026-11-01T05:30Z',
  ]);
});

test('C88: after a daemon was away over the edge, the run is still due', () => {
  const zone = 'America/New_York';
  const lastRun = at('2026-03-01T07:30:00Z');
  expect(lastDue('30 2 * * 0', zone, at('2026-03-09T15:00:00Z'))!).toBeGreaterThan(lastRun);
});

test('C88: every day has its run, over a year of any zone', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(
        'America/New_York',
        'Europe/London',
        'Australia/Lord_Howe',
        'Asia/Kolkata',
        'Pacific/Apia',
      ),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      fc.integer({ min: 0, max: 364 }),
      (zone, hour, minute, day) => {
        const nowMs = at('2026-01-01T00:00:00Z') + day * 86_400_000;
        const found = lastDue(`${minute} ${hour} * * *`, zone, nowMs)!;
        expect(found).toBeLessThanOrEqual(nowMs);
        // A day is at most 25 hours long.
        expect(nowMs - found).toBeLessThanOrEqual(25 * 3_600_000);
      },
    ),
    { numRuns: 60 },
  );
});
