/** Writes the golden files of the contract: what any language must reproduce. */
// Run `npx jiti test/contract/make-golden.ts` after a deliberate change of the contract, and read the difference: each
// line that changes breaks other clients.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { effectiveAtUs } from '../../src/redis/effective.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { PARAM_FIELDS, type Params } from '../../src/redis/params.js';
import { BARE } from '../support/bare-params.js';

const T0 = 1_700_000_000_000_000;
const MS = T0 / 1000;

const BASE: Params = {
  ...BARE,
  v: 1,
  epoch: 1_700_000_000_000,
  revision: 7,
  generation: 2,
  rate: 100,
  capacity: 200,
  inFlightMax: 24,
  subjectRate: 5,
  subjectCapacity: 10,
  policyRate: 80,
  minRate: 20,
  maxRate: 400,
  minCapacity: 200,
  maxCapacity: 200,
  minInFlight: 2,
  maxInFlight: 64,
  accrued: 12_345.678,
  changedAt: T0,
  subjectAccrued: 617.25,
  floor: 12_145.678,
  subjectFloor: 607.25,
  validUntil: MS + 5000,
  safeRate: 80,
  safeInFlight: 16,
  reserveSheddable: 0.2,
  fence: 1_700_000_000_000,
  policyHash: 'a'.repeat(64),
};

const OPEN: Partial<Params> = { state: 'open', openUntil: MS + 5000 };
const FOLLOW: Partial<Params> = { subjectFollow: 1 };
const SECONDS = [
  0, 0.000001, 1, 4.999, 5, 5.000001, 30, 64.999, 65, 70, 80, 94.999, 95, 100, 3600, 31_536_000,
];
const BACK = [-0.000001, -1, -5, -82_800];

const CASES: Record<string, [Partial<Params>, readonly number[]]> = {
  closed: [{}, SECONDS],
  'clock set back': [{}, BACK],
  recovering: [{ state: 'recovering', rate: 12.5 }, SECONDS],
  open: [OPEN, [...SECONDS, ...BACK]],
  'open until a person ends it': [{ state: 'open', openUntil: -1 }, [...SECONDS, ...BACK]],
  'half-open': [{ state: 'half-open' }, [...SECONDS, ...BACK]],
  'half-open with a fast probe rate': [{ ...OPEN, probeRate: 7.5 }, SECONDS],
  'half-open with a capacity below one': [{ state: 'half-open', capacity: 0.5 }, SECONDS],
  'pinned for an hour': [
    { rate: 7, pinnedUntil: MS + 3_600_000 },
    [5, 100, 3600, 3660, 3675, 3690, 4000],
  ],
  'frozen until a person ends it': [{ frozenUntil: -1 }, [5, 100, 31_536_000]],
  'pinned to zero': [{ rate: 0, pinnedUntil: -1 }, [0, 1, 100]],
  'lost at once, in one step': [{ lostAfterMs: 0, lostOverMs: 0 }, [4.999, 5, 6]],
  'glide upwards': [{ rate: 10, safeRate: 80, inFlightMax: 3 }, [65, 66.5, 79.999, 95]],
  'no cap': [{ inFlightMax: 0, safeInFlight: 0 }, [1, 80, 100]],
  'no subjects': [{ subjectRate: -1, subjectCapacity: 0 }, [1, 80, 100, -1]],
  'subjects follow': [FOLLOW, [...SECONDS, ...BACK]],
  'subjects follow the target, not the breaker': [{ ...FOLLOW, ...OPEN }, SECONDS],
  'rates with long fractions': [
    { rate: 0.1, safeRate: 1 / 3, subjectRate: 1 / 7, ...FOLLOW },
    SECONDS,
  ],
  'a year at 1,000/s': [
    { rate: 1000, validUntil: MS + 40_000_000_000 },
    [31_536_000, 31_536_000.000001],
  ],
};

const vectors = Object.entries(CASES).flatMap(([name, [overrides, seconds]]) =>
  seconds.map((after) => {
    const params = { ...BASE, ...overrides };
    const nowUs = T0 + Math.round(after * 1e6);
    return {
      name: `${name}, ${after} s`,
      params: overrides,
      nowUs,
      expect: effectiveAtUs(params, nowUs),
    };
  }),
);

const SUBJECTS = [
  'user:42',
  'a:b',
  'a',
  '',
  ' ',
  '{',
  '}',
  '{}',
  '{{a}}',
  'a}b{c',
  'É',
  'E\u0301',
  '日本',
  '🙂',
  '\n',
  '\0',
  '%',
  '%41',
  'A',
  '#',
  '__proto__',
  'a/b',
  'a+b',
  'x@example.com',
  'x'.repeat(64),
  'x'.repeat(65),
  '{'.repeat(21),
  '{'.repeat(22),
  'y'.repeat(10_240),
];
const keys = {
  limiters: [
    { name: 'checkout' },
    { name: 'checkout', group: 'payments' },
    { name: 'a.b_c-1', prefix: 'acme' },
  ].map((address) => {
    const { name: _name, changes, ...rest } = limiterKeys(address);
    const plain = Object.fromEntries(
      Object.entries(rest).filter(([, value]) => typeof value === 'string'),
    );
    const telemetry = rest.telemetry(1_700_000_000);
    const top = rest.top(28_333_333);
    return {
      address,
      keys: { ...plain, telemetry, top, changes, policyVersion: rest.policyVersion('abc') },
    };
  }),
  subjects: SUBJECTS.map((subject) => ({
    subject,
    bucket: limiterKeys({ name: 'checkout' }).subjectBucket(subject),
  })),
};

const here = import.meta.dirname;
const base = Object.fromEntries(PARAM_FIELDS.map((field) => [field, BASE[field]]));
writeFileSync(join(here, 'effective.json'), `${JSON.stringify({ base, vectors }, null, 1)}\n`);
writeFileSync(join(here, 'keys.json'), `${JSON.stringify(keys, null, 1)}\n`);
