/** What a call may hold: more takes than stated, keys too few, names out of form are refused before anything is written. */
import { expect, test } from 'vitest';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { refund } from '../../src/redis/refund.js';
import {
  counterScript,
  drawScript,
  inflightScript,
  logScript,
  outcomeScript,
  overrideScript,
  paceScript,
  refundScript,
  subjectsScript,
  takeScript,
  togetherScript,
  topScript,
  windowScript,
} from '../../src/redis/scripts.gen.js';
import { seedParams, storedParams } from '../support/seed-params.js';
import { FALLBACK, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const FIVE = '5 5 0 -1 0';
type Call = [lua: string, keys: string[], args: string[]];

async function refused(keys: LimiterKeys, calls: readonly Call[]): Promise<void> {
  const before = await fixture.redis.keys(`*{${keys.name}}*`);
  for (const [lua, names, args] of calls) {
    await expect(fixture.redis.eval(lua, names.length, ...names, ...args)).rejects.toThrow(
      /^FLYBALL_E_CALL_INVALID/,
    );
  }
  expect((await fixture.redis.keys(`*{${keys.name}}*`)).sort()).toEqual(before.sort());
}

test('more takes, sets, draws or refunds than the contract states are refused whole', async () => {
  const { keys } = fixture.limiter();
  await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
  const { params, bucket } = keys;
  const of = <T>(n: number, each: T) => Array.from({ length: n }, () => each);
  const head = [`${T0}`, '', '0', FIVE];
  const rich = [`${T0}`, '', '4', FIVE];
  const crowd = keys.crowd('b', false);
  await refused(keys, [
    [takeScript.lua, [params, bucket, ...of(513, bucket)], [...head, '1']],
    [takeScript.lua, [params, bucket, ...of(2_700, bucket)], [`${T0}`, '', '2', FIVE, '1']],
    [paceScript.lua, [params, bucket, ...of(513, bucket)], [...head, ...of(513, '1')]],
    [
      windowScript.lua,
      [params, bucket, bucket, ...of(513, bucket)],
      [...head, '1000', ...of(513, '1')],
    ],
    [
      logScript.lua,
      [params, bucket, bucket, ...of(513, bucket)],
      [...head, '1000', ...of(513, '1')],
    ],
    [
      counterScript.lua,
      [params, bucket, bucket, ...of(513, bucket)],
      [...head, '1000 6', ...of(513, '1')],
    ],
    [
      subjectsScript.lua,
      [params, bucket, keys.overrides, crowd.index, crowd.shared, ...of(1026, bucket)],
      [...rich, ...of(513, '1')],
    ],
    [
      togetherScript.lua,
      [params, bucket, ...of(513, bucket)],
      [`${T0}`, '', '1', '0', FIVE, ...of(513, '1')],
    ],
    [drawScript.lua, [params, ...of(513, bucket)], [`${T0}`, '0', ...of(513, '1 0')]],
    [refundScript.lua, [params, ...of(3 * 129, bucket)], [...head, ...of(129, 'b 1 0 0 1 0 0 0')]],
  ]);
});

test('512 takes in one call are decided and answered, packed and plain', async () => {
  const { keys, call } = fixture.limiter();
  await seedParams(fixture.redis, keys, { rate: 1000, capacity: 1000 }, { nowUs: T0 });
  const takes = Array.from({ length: 512 }, (_each, i) => ({ subject: `s${i % 7}` }));
  expect((await call(takes, T0)).answers.every(({ allowed }) => allowed)).toBe(true);
});

test('keys and arguments that are missing, or names out of form, are refused by name', async () => {
  const { keys } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { subjectTerms: 'on=paid reset=no keep=1000 step=1:9:-', subjectRules: 1 },
    { nowUs: T0 },
  );
  const { params, inFlight, slots } = keys;
  const six = [
    params,
    keys.standing('a'),
    keys.outcome('i'),
    keys.overrides,
    keys.subjectBucket('a'),
    keys.shadowSubjectBucket('a'),
  ];
  const shares = [params, inFlight, slots];
  const share = (name: string): Call => [
    inflightScript.lua,
    shares,
    ['', name, '1', '1', FIVE, '0'],
  ];
  await refused(keys, [
    [outcomeScript.lua, six, ['', 'paid']],
    [outcomeScript.lua, six.slice(0, 5), ['', 'paid', 'a']],
    [outcomeScript.lua, six, []],
    [inflightScript.lua, shares, []],
    share(':sum'),
    share(':places'),
    share('p'.repeat(257)),
    [topScript.lua, [], ['1000', '1', '1']],
    [topScript.lua, [keys.top(1)], ['1e300', '1', '1']],
    [topScript.lua, [keys.top(1)], ['1000', '1.5', '1', 't:a', '1']],
    [topScript.lua, [keys.top(1)], ['1000', '1', 'nan', 't:a', '1']],
  ]);
  const said = [params, keys.audit, keys.overrides, ...six.slice(4), keys.standing('a')];
  const reply = await fixture.redis.eval(overrideScript.lua, 6, ...said, `${T0}`, '1', '1');
  expect((reply as unknown[]).slice(0, 2)).toEqual(['refused', 'invalid']);
  expect((await storedParams(fixture.redis, keys))!.revision).toBe(1);
});

test('refunds to many long logs hold Redis no longer than 20,000 entries', async () => {
  const { keys } = fixture.limiter();
  await seedParams(fixture.redis, keys, { subjectRate: 100, subjectCapacity: 1 }, { nowUs: T0 });
  const names = Array.from({ length: 24 }, (_each, i) => `s${i}`);
  const bytes = Buffer.alloc(16 * 1_501);
  for (let i = 0; i <= 1_500; i++) {
    bytes.writeDoubleLE(T0 - 1_500 + i, 16 * i);
    bytes.writeDoubleLE(i * 1e6, 16 * i + 8);
  }
  const entries = Array.from({ length: 1_501 }, (_each, i) => bytes.subarray(16 * i, 16 * i + 16));
  for (const name of names) await fixture.redis.rpush(keys.taken('wl', name, false), ...entries);
  const terms = { algorithm: 'sliding-log', windowMs: 60_000, cells: 0 } as const;
  const given = { cost: 1, atUs: T0 - 1_499, epoch: 1_000_000, generation: 0, terms, mark: null };
  const all = { keys, dueUs: null, shadow: false, fallback: FALLBACK, nowUs: T0 + S };
  const refunds = names.map((subject) => ({ ...given, subject }));
  const answers = (await refund(fixture.redis, { ...all, refunds }))!;
  expect(answers.filter((each) => each === 'refunded')).toHaveLength(13);
  // The rest is not lost for being asked at the wrong moment: another call has room for it.
  expect((await refund(fixture.redis, { ...all, refunds: refunds.slice(13, 14) }))![0]).toBe(
    'refunded',
  );
});

test.each([
  ['sliding-log', 0],
  ['sliding-counter', 6],
  ['fixed-window', 0],
] as const)(
  '%s: a cost beyond what a window can count fits into none, however large the limit',
  async (algorithm, cells) => {
    const { keys, call } = fixture.limiter();
    const most = { rate: 1e12, maxRate: 1e12, capacity: 1e12, maxCapacity: 1e12 };
    await seedParams(fixture.redis, keys, most, { nowUs: T0 });
    const terms = { terms: { algorithm, windowMs: 86_400_000, cells } };
    for (const cost of [999_999_999_999_999, 2_251_799_814]) {
      const { answers } = await call([{ cost }], T0, terms);
      expect(answers[0]!.reason).toBe('cost_exceeds_capacity');
    }
    expect((await call([{ cost: 1_000_000_000 }], T0, terms)).answers[0]!.allowed).toBe(true);
  },
);
