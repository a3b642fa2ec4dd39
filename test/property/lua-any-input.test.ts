/** No reachable input makes a script fail or write a number that is none. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LimiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import {
  actuateScript,
  counterScript,
  effectiveScript,
  heartbeatScript,
  inflightScript,
  leaseScript,
  logScript,
  paceScript,
  refundScript,
  slotsScript,
  takeScript,
  windowScript,
} from '../../src/redis/scripts.gen.js';
import { T0, useRedis } from '../lua/fixture.js';
import { changeParams, seedParams } from '../support/seed-params.js';

const fixture = useRedis();

const anyNumber = fc.oneof(
  fc.double(),
  fc.integer({ min: -2, max: 2000 }),
  fc.constantFrom(0, -0, -1, 1e-300, 1e300, 2 ** 53, 2 ** 53 + 2, 1e15, 1e-9, Number.NaN, Infinity),
);
const numeric = [
  'rate',
  'capacity',
  'inFlightMax',
  'subjectRate',
  'subjectCapacity',
  'subjectFollow',
  'policyRate',
  'minRate',
  'maxRate',
  'minCapacity',
  'maxCapacity',
  'openUntil',
  'openForMs',
  'probeRate',
  'lostAfterMs',
  'lostOverMs',
  'safeRate',
  'safeInFlight',
  'reserveDefault',
  'reserveSheddable',
  'frozenUntil',
  'pinnedUntil',
  'generation',
] as const satisfies (keyof ParamChange)[];
const change: fc.Arbitrary<ParamChange> = fc
  .tuple(
    fc.dictionary(fc.constantFrom(...numeric), anyNumber, { maxKeys: 5 }),
    fc.option(
      fc.constantFrom(
        'open' as const,
        'closed' as const,
        'half-open' as const,
        'recovering' as const,
      ),
    ),
  )
  .map(([fields, state]) => ({ ...fields, ...(state === null ? {} : { state }) }));
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    '',
    '0',
    '1',
    '5',
    '-0',
    'nan',
    'inf',
    '-inf',
    '1e309',
    '0x10',
    '1 critical',
    '99999999999999999999',
  ),
  anyNumber.map(String),
);

/** What a kind of refund finds there; a bucket for what is no kind. */
const bucketOf = (keys: LimiterKeys, kind: string) =>
  kind === 'wl' || kind === 'wc' || kind === 'wf' ? keys.taken(kind, null, false) : keys.bucket;
const fiveOf = (texts: string[]) => Array.from({ length: 5 }, (_, i) => texts[i] || '1').join(' ');

/** A call of each script that takes, without params: its text, keys and arguments. */
function takeCalls(keys: LimiterKeys, nowUs: string, chargeByUs: string) {
  const { params, bucket } = keys;
  const head = [nowUs, chargeByUs, '0', '5 5 0 -1 0'];
  return [
    [takeScript.lua, [params, bucket, bucket], [...head, '1']],
    [paceScript.lua, [params, bucket, bucket], [...head, '1']],
    [windowScript.lua, [params, bucket, 'p', bucket], [...head, '1000', '1']],
    [logScript.lua, [params, bucket, 'p', bucket], [...head, '1000', '1']],
    [counterScript.lua, [params, bucket, 'p', bucket], [...head, '1000 10', '1']],
  ] satisfies [string, string[], string[]][];
}

const NOT_A_NUMBER = /nan|inf/i;

test('any accepted params, any time, any cost: an answer of finite numbers, never an error', async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 5 }),
      fc.array(
        fc.tuple(
          fc.oneof(
            fc.integer({ min: -(10 ** 14), max: 10 ** 15 }),
            fc.integer({ min: 0, max: 10 ** 8 }),
          ),
          anyText,
        ),
        { minLength: 1, maxLength: 5 },
      ),
      async (changes, takes) => {
        const { keys } = fixture.limiter();
        await seedParams(
          fixture.redis,
          keys,
          { subjectRate: 1, subjectCapacity: 5 },
          { nowUs: T0 },
        );
        let now = T0;
        for (const [i, each] of changes.entries()) {
          const reply = await changeParams(fixture.redis, keys, each, { nowUs: now });
          if (reply.status === 'ok') accepted += 1;
          else expect(['invalid', 'bounds']).toContain(reply.reason);
          now += (i * 7_777_777) % 60_000_000;
        }
        for (const [afterUs, cost] of takes) {
          now = T0 + afterUs;
          const names = [keys.params, keys.bucket, keys.subjectBucket('s')];
          const reply = (await fixture.redis.eval(
            takeScript.lua,
            3,
            ...names,
            now,
            '',
            '0',
            '',
            cost,
          )) as (number | string)[];
          expect(reply).toHaveLength(6);
          for (const value of [reply[0], reply[1], ...reply.slice(3)]) {
            expect(Number.isSafeInteger(value) && (value as number) >= -1).toBe(true);
          }
          expect(reply[2]).not.toMatch(NOT_A_NUMBER);
          const view = (await fixture.redis.eval(
            effectiveScript.lua,
            1,
            keys.params,
            now,
          )) as string[];
          expect(view.join(' ')).not.toMatch(NOT_A_NUMBER);
        }
        const stored = await fixture.redis.hgetall(keys.params);
        delete stored.hot;
        delete stored.heldBy;
        expect(Object.values(stored).join(' ')).not.toMatch(NOT_A_NUMBER);
        for (const mark of await fixture.redis.mget(keys.bucket, keys.subjectBucket('s'))) {
          if (mark !== null) expect(Number.isFinite(Number(mark))).toBe(true);
        }
        for (const key of [keys.bucket, keys.subjectBucket('s')]) {
          expect(await fixture.redis.pttl(key)).not.toBe(-1);
        }
      },
    ),
    { numRuns: 200 },
  );
  expect(accepted).toBeGreaterThan(20);
});

test('any raw arguments: an answer of numbers, or a named refusal, never a script error', async () => {
  const rawCall = fc.array(anyText, { maxLength: 9 });
  await fc.assert(
    fc.asyncProperty(rawCall, fc.boolean(), async (args, managed) => {
      const { keys } = fixture.limiter();
      if (managed) await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
      const call = async (lua: string, names: string[], argv: string[]) => {
        const reply = await fixture.redis
          .eval(lua, names.length, ...names, ...argv)
          .catch((error: Error) => {
            expect(error.message).toMatch(/^FLYBALL_E_CALL_INVALID/);
          });
        // A refusal may quote what it was given.
        const told = (reply ?? []) as unknown[];
        if (told[0] !== 'refused') expect(told.join(' ')).not.toMatch(NOT_A_NUMBER);
      };
      const padded = (count: number) => Array.from({ length: count }, (_, i) => args[i] ?? '');
      const names = [keys.params, keys.bucket, ...args.slice(4).map(() => keys.bucket)];
      await call(takeScript.lua, names, args);
      // Names are texts, which may well read `nan`.
      const [now = '', need = '', ...others] = padded(9);
      const { params, inFlight, slots, lease, state } = keys;
      const shares = [params, inFlight, slots];
      await call(inflightScript.lua, shares, [now, 'p', need, '1', others.join(' '), '0']);
      await call(inflightScript.lua, shares, [now, 'p', '1', '1', fiveOf(others), '1']);
      await call(inflightScript.lua, shares, [now, 'p', '1', need, '1 1 1 -1 0', others[1]!]);
      await call(slotsScript.lua, [params, slots, inFlight], [now, fiveOf(others), 'hold', 'a']);
      await call(slotsScript.lua, [params, slots, inFlight], [now, others[0]!, need, 'a']);
      for (const kind of ['b', 'wl', 'wc', 'wf', need]) {
        const asked = `${kind} ${others[0] || '1'} ${others[1] || '0'} 0 ${others[2] || '1'} 1000 6 1`;
        const of = [params, keys.refund('m'), bucketOf(keys, kind), bucketOf(keys, kind)];
        await call(refundScript.lua, of, ['', now, '0', '5 5 0 -1 0', asked]);
        await call(refundScript.lua, of, [now, '', '1', fiveOf(others), others.join(' ')]);
      }
      await call(effectiveScript.lua, [params], [now]);
      await call(leaseScript.lua, [lease, params], [now, 'acquire', 'o', '', need]);
      await fixture.redis.set(lease, `o:${need}`);
      await call(heartbeatScript.lua, [params, lease, state], [now, 'o', need, others[0]!, '']);
      const written = [params, keys.audit, lease, state, keys.policy, keys.policy];
      const head = [now, 'lease', 'o', need, ...others.slice(0, 2), '0', ...others.slice(2, 3)];
      const rest = ['law', '', others[3] ?? '', '0'.repeat(64), 'h', '{}', '', '', '', 'c', 'l'];
      await call(actuateScript.lua, written, [...head, ...rest, 'rate', others[4] ?? '']);
      const create = [now, 'person', '', '', others[0]!, others[1]!, '1', others[2]!];
      await call(actuateScript.lua, written, [...create, ...rest, 'rate', others[4] ?? '']);
      for (const mark of await fixture.redis.mget(keys.bucket))
        expect(mark ?? '').not.toMatch(NOT_A_NUMBER);
      const stored = await fixture.redis.hgetall(params);
      delete stored.hot;
      expect(Object.values(stored).join(' ')).not.toMatch(NOT_A_NUMBER);
    }),
    { numRuns: 300 },
  );
});

test.each(['nan', '-nan', 'inf', '-inf', '1e309', '0x10', ' 1', '1e300'])(
  'a time that is %s is refused by every script, before anything is written',
  async (time) => {
    const { keys } = fixture.limiter();
    await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
    const stored = await fixture.redis.hgetall(keys.params);
    const { params, bucket, inFlight, lease, state } = keys;
    const calls: [string, string[], string[]][] = [
      ...takeCalls(keys, time, ''),
      [
        inflightScript.lua,
        [params, inFlight, keys.slots],
        [time, 'p', '1', '1', '1 1 1 -1 0', '0'],
      ],
      [slotsScript.lua, [params, keys.slots, inFlight], [time, '1 1 1 -1 0', 'hold', 'a']],
      [
        refundScript.lua,
        [params, keys.refund('m'), bucket, bucket],
        [time, '', '0', '1 1 1 -1 0', 'b 1 0 0 1 0 0 1'],
      ],
      [effectiveScript.lua, [params], [time]],
      [leaseScript.lua, [lease, params], [time, 'acquire', 'o', '', '1000']],
      [heartbeatScript.lua, [params, lease, state], [time, 'o', '1', '1000', '']],
    ];
    for (const [lua, names, args] of calls) {
      await expect(fixture.redis.eval(lua, names.length, ...names, ...args)).rejects.toThrow(
        /^FLYBALL_E_CALL_INVALID/,
      );
    }
    expect(await fixture.redis.hgetall(params)).toEqual(stored);
    expect(await fixture.redis.exists(bucket, inFlight, lease, state)).toBe(0);
  },
);

test.each(['nan', 'inf', '-inf', '1e309'])(
  'a charge limit of %s is refused: it would never be late',
  async (chargeBy) => {
    const { keys } = fixture.limiter();
    for (const [lua, names, args] of takeCalls(keys, '', chargeBy)) {
      await expect(fixture.redis.eval(lua, names.length, ...names, ...args)).rejects.toThrow(
        /^FLYBALL_E_CALL_INVALID/,
      );
    }
    expect(await fixture.redis.exists(keys.bucket)).toBe(0);
  },
);

test('whatever a bucket holds, a take decides, and leaves a number', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, fc.boolean(), async (content, managed) => {
      const { keys, one } = fixture.limiter();
      if (managed) await seedParams(fixture.redis, keys, {}, { nowUs: T0 });
      await fixture.redis.set(keys.bucket, content);
      await one(T0);
      await one(T0 + 60_000_000);
      const mark = (await fixture.redis.get(keys.bucket))!;
      expect(mark).toMatch(managed ? /^-?[\d.]+(e[+-]?\d+)?$/ : /^u:[\d.e-]+:\d+$/);
    }),
    { numRuns: 200 },
  );
});

test('whatever a window or a share holds, a refund and a place are answered, and leave numbers', async () => {
  await fc.assert(
    fc.asyncProperty(anyText, fc.uint8Array({ maxLength: 80 }), async (content, bytes) => {
      const { keys } = fixture.limiter();
      await seedParams(fixture.redis, keys, { inFlightMax: 2, safeInFlight: 2 }, { nowUs: T0 });
      const { params } = keys;
      for (const held of [content, Buffer.from(bytes)]) {
        await fixture.redis.set(keys.bucket, held);
        await fixture.redis.set(keys.taken('wc', null, false), held);
        await fixture.redis.set(keys.taken('wf', null, false), held);
        for (const kind of ['b', 'wc', 'wf']) {
          const of = [params, keys.refund('m'), bucketOf(keys, kind), bucketOf(keys, kind)];
          const asked = `${kind} ${T0} 1000000 0 1 60000 6 0`;
          const reply = (await fixture.redis.eval(
            refundScript.lua,
            of.length,
            ...of,
            T0,
            '',
            '0',
            '5 5 0 -1 0',
            asked,
          )) as number[];
          expect([0, 3]).toContain(reply[2]);
        }
        await fixture.redis.hset(keys.inFlight, ':sum', held, ':places', held, 'p', held);
        const place = [params, keys.slots, keys.inFlight];
        await fixture.redis.eval(slotsScript.lua, 3, ...place, T0, '1 1 1 -1 0', 'hold', 'a');
        const share = [params, keys.inFlight, keys.slots];
        const asked = [T0, 'q', '1', '1', '1 1 1 -1 0', '0'];
        const reply = (await fixture.redis.eval(
          inflightScript.lua,
          3,
          ...share,
          ...asked,
        )) as string[];
        expect(reply.join(' ')).not.toMatch(NOT_A_NUMBER);
        expect(Number(reply[2])).toBeGreaterThanOrEqual(0);
      }
    }),
    { numRuns: 100 },
  );
});
