/** The `tune` part of a policy: schedules and zones are checked when it loads; without it a policy's hash is as it was. */
import { expect, test } from 'vitest';
import { policyHash } from '../../src/policy/hash.js';
import { parsePolicy } from '../../src/policy/parse.js';
import { policySchema } from '../../src/policy/schema.js';

const limiter = { name: 'checkout', rate: 100, capacity: 200 };
const faultsOf = (tune: unknown) =>
  (parsePolicy({ limiter, tune }, 'x.ts').faults ?? []).map(
    (fault) => `${fault.field} ${fault.message}`,
  );

test('what is said is kept, with units read; nothing is filled in', () => {
  const tune = {
    schedule: 'weekly',
    timezone: 'Europe/Berlin',
    since: '3d',
    hold: '15ms',
  } as const;
  expect(policySchema.parse({ limiter, tune }).tune).toEqual({
    ...{ schedule: 'weekly', timezone: 'Europe/Berlin', since: 259_200_000, hold: 15 },
  });
  expect(policySchema.parse({ limiter, tune: {} }).tune).toEqual({});
  const without = policySchema.parse({ limiter });
  expect('tune' in without).toBe(false);
  expect(policyHash(without)).not.toBe(policyHash(policySchema.parse({ limiter, tune: {} })));
});

test('C88: a zone that does not exist is a fault when the policy loads', () => {
  expect(faultsOf({ schedule: 'daily', timezone: 'Europe/Atlantis' })).toEqual([
    "tune.timezone is \"Europe/Atlantis\", not a time zone that this machine knows ('UTC', 'Europe/Berlin').",
  ]);
});

test.each([
  [
    { schedule: 'often' },
    /^tune\.schedule is "often", not 'weekly', 'daily', 'never' or five fields of cron/,
  ],
  [{ schedule: '0 0 31 2 *' }, /^tune\.schedule is "0 0 31 2 \*"/],
  [{ schedule: 7 }, /^tune\.schedule is 7/],
  [{ since: '30d' }, /^tune\.since is "30d"/],
  [{ since: '1h' }, /^tune\.since is "1h"/],
  [{ connections: 2.5 }, /^tune\.connections is 2\.5, not a whole number/],
  [{ slotsPerInstance: 0 }, /^tune\.slotsPerInstance is 0/],
  [{ slots: 4 }, /^tune\.slots is not a field/],
])('%j is said', (tune, message) => {
  expect(faultsOf(tune)).toEqual([expect.stringMatching(message)]);
});
