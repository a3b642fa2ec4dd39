/** Times as people write them: a day that is not is an error, not the day after it. */
import { describe, expect, test } from 'vitest';
import { moment } from '../../src/api/routes/fields.js';
import { parseSince } from '../../src/cli/options.js';
import { isoMs } from '../../src/moment.js';

const NO_TIMES = [
  '2026-02-30',
  '2026-11-31T00:00Z',
  '2025-02-29T10:00:00Z',
  '2026-13-01',
  '2026-00-10',
  '2026-05-04T25:00Z',
  '2026-05-04T13:61',
  '2026-05-04T13',
  '2026-05-04 (noon)',
  '2026-05-04 noon',
  '2026-05-04T13:00+99:00',
  '26-05-04',
  '+275760-09-13',
  'NaN',
  '',
];

describe('an ISO time', () => {
  test.each([
    ['2026-05-04T13:00:00Z', Date.UTC(2026, 4, 4, 13)],
    ['2026-05-04t13:00z', Date.UTC(2026, 4, 4, 13)],
    ['2026-05-04T13:00:00.250+02:00', Date.UTC(2026, 4, 4, 11, 0, 0, 250)],
    ['2026-05-04T13:00:00+0200', Date.UTC(2026, 4, 4, 11)],
    [' 2024-02-29 ', Date.UTC(2024, 1, 29)],
    ['2026-05-04 13:00', new Date(2026, 4, 4, 13).getTime()],
  ])('%j is one', (text, ms) => expect(isoMs(text)).toBe(ms));

  test.each(NO_TIMES)('%j is none', (text) => {
    expect(isoMs(text)).toBeNaN();
    expect(() => parseSince(text)).toThrow('is no time');
    expect(moment.safeParse(text).success).toBe(false);
  });
});
