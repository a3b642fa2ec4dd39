/** Every algorithm alike: what its keys weigh, how long they live, that denials and bad costs leave no trace in them. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AlgorithmTerms } from '../../src/redis/algorithms.js';
import type { LimiterKeys } from '../../src/redis/keys.js';
import { refund } from '../../src/redis/refund.js';
import { inFlight, slots, take } from '../../src/redis/scripts.js';
import { takeCall } from '../../src/redis/take-call.js';
import { changeParams, seedParams } from '../support/seed-params.js';
import { FALLBACK, reasons, S, T0, useRedis } from './fixture.js';

const fixture = useRedis();
const MINUTE = 60 * S;
const M0 = T0 - (T0 % MINUTE) + MINUTE;
const ALL: [AlgorithmTerms][] = [
  [{ algorithm: 'token-bucket', windowMs: 0, cells: 0 }],
  [{ algorithm: 'sliding-log', windowMs: 60_000, cells: 0 }],
  [{ algorithm: 'sliding-counter', windowMs: 60_000, cells: 6 }],
  [{ algorithm: 'fixed-window', windowMs: 60_000, cells: 0 }],
  [{ algorithm: 'leaky-bucket', windowMs: 0, cells: 0 }],
];

function keyOf(keys: LimiterKeys, { algorithm }: AlgorithmTerms, subject: string | null): string {
  if (algorithm === 'token-bucket')
    return subject === null ? keys.bucket : keys.subjectBucket(subject);
  const kinds = { 'sliding-log': 'wl', 'sliding-counter': 'wc', 'fixed-window': 'wf' } as const;
  return keys.taken(kinds[algorithm as 'sliding-log'] ?? 'wp', subject, false);
}
const many = (count: number, each = {}) => Array.from({ length: count }, () => each);

describe.each(ALL)('$algorithm', (terms) => {
  /** Ten tokens, of which none comes back while a test runs. */
  async function ten() {
    const { keys, call } = fixture.limiter();
    const rate = 10 / 60;
    const slow = { rate, capacity: 10, minRate: rate, maxCapacity: 10, probeRate: rate };
    await seedParams(fixture.redis, keys, slow, { nowUs: M0 });
    return { keys, call: (cost: number, nowUs = M0) => call([{ cost }], nowUs, { terms }) };
  }

  test('C16: of ten 8 pass, 5 do not, 1 does; the denial leaves bytes and life as they were', async () => {
    const { keys, call } = await ten();
    const key = keyOf(keys, terms, null);
    expect(reasons(await call(8))).toEqual(['ok']);
    const before = [await fixture.redis.dump(key), await fixture.redis.pexpiretime(key)];
    expect(reasons(await call(5))).toEqual(['rate']);
    expect(reasons(await call(1e6))).toEqual(['cost_exceeds_capacity']);
    expect([await fixture.redis.dump(key), await fixture.redis.pexpiretime(key)]).toEqual(before);
    expect(reasons(await call(1))).toEqual(['ok']);
  });

  test('C17: what costs more than it ever holds has no retry time, also after a cut', async () => {
    const { keys, call } = await ten();
    expect((await call(11)).answers[0]).toMatchObject({
      reason: 'cost_exceeds_capacity',
      retryAfterMs: null,
    });
    await changeParams(
      fixture.redis,
      keys,
      { rate: 5 / 60, minRate: 5 / 60, capacity: 5, minCapacity: 5 },
      { nowUs: M0 },
    );
    expect((await call(6)).answers[0]).toMatchObject({
      reason: 'cost_exceeds_capacity',
      retryAfterMs: null,
    });
  });

  test('C18: raw text that is no plain decimal is an error code and writes nothing; what is decides', async () => {
    const { keys, call } = await ten();
    const {
      script,
      keys: names,
      args,
    } = takeCall({
      keys,
      takes: [{ subject: null, cost: 1, priority: 'default' }],
      chargeByUs: 'any',
      fallback: FALLBACK,
      shadow: false,
      terms,
      nowUs: M0,
    });
    const raw = async (cost: string) => {
      const sent = [...names, ...args.slice(0, -1), cost];
      return (await fixture.redis.eval(script.lua, names.length, ...sent)) as unknown[];
    };
    const bad = [
      'nan',
      'inf',
      '-5',
      '-0',
      '" 5 "',
      ' 5 ',
      '0x10',
      '1e309',
      '1e3',
      '',
      'null',
      '5.',
      '05',
    ];
    for (const cost of bad) expect([cost, (await raw(cost))[3]]).toEqual([cost, 8]);
    expect(await fixture.redis.exists(keyOf(keys, terms, null))).toBe(0);
    expect([(await raw('5'))[3], (await raw('1.5'))[3]]).toEqual([0, 0]);
    expect((await call(0)).answers[0]!.remaining).toBe(3);
    expect(await fixture.redis.dump(keyOf(keys, terms, null))).not.toMatch(/nan|inf/i);
  });

  test('C07: rate 0 denies as the rate does, without a retry time; keys keep a life', async () => {
    const { keys, call } = await ten();
    await call(1);
    await changeParams(fixture.redis, keys, { rate: 0, pinnedUntil: -1 }, { nowUs: M0 });
    expect((await call(1)).answers[0]).toMatchObject({ reason: 'rate', retryAfterMs: null });
    expect(await fixture.redis.pttl(keyOf(keys, terms, null))).toBeGreaterThan(0);
  });

  test('the weight and life of a subject’s key that the contract states', async () => {
    const { keys, call } = fixture.limiter();
    const rates = { rate: 100, capacity: 1000, minRate: 100, maxCapacity: 1000, probeRate: 100 };
    await seedParams(fixture.redis, keys, { ...rates, subjectRate: 10, subjectCapacity: 100 });
    for (let i = 0; i < 100; i += 1) {
      await call([{ subject: 'user:042' }], M0 + i * 1000, { terms });
    }
    const key = keyOf(keys, terms, 'user:042');
    const weight = (await fixture.redis.memory('USAGE', key))!;
    const life = await fixture.redis.pttl(key);
    const stated: Record<string, [weight: number, from: number, to: number]> = {
      'token-bucket': [120, 11_000, 44_000],
      'leaky-bucket': [120, 11_000, 44_000],
      'fixed-window': [120, 1_000, 61_000],
      'sliding-counter': [200, 71_000, 71_000],
      'sliding-log': [80 + 100 * 26, 61_000, 61_000],
    };
    const [heaviest, shortest, longest] = stated[terms.algorithm]!;
    expect(weight).toBeLessThanOrEqual(heaviest);
    expect(life).toBeGreaterThan(shortest - 2_000);
    expect(life).toBeLessThanOrEqual(longest);
  });
});

test('C13: 16 workers in every script at once, one of them cut off: no key of a service is left without a life', async () => {
  const limiters = await Promise.all(
    ['auto', 'shadow', null].map(async (mode) => {
      const { keys } = fixture.limiter();
      const numbers = {
        rate: 50,
        capacity: 50,
        subjectRate: 5,
        subjectCapacity: 5,
        inFlightMax: 4,
      };
      if (mode !== null) {
        await seedParams(fixture.redis, keys, { ...numbers, mode: mode as 'auto' });
      }
      return { keys, shadow: mode === 'shadow' };
    }),
  );
  const workers = Array.from({ length: 16 }, () =>
    fixture.server.client({ retryStrategy: () => null }),
  );
  await Promise.all(
    workers.map(async (redis, w) => {
      for (let i = 0; i < 60; i += 1) {
        const { keys, shadow } = limiters[(w + i) % limiters.length]!;
        const [terms] = ALL[(w * 7 + i) % ALL.length]!;
        const takes = many(30).map((_, n) => ({
          subject: n % 5 === 0 ? null : `s${(w * 31 + i * 7 + n) % 40}`,
          cost: 1,
          priority: 'default' as const,
        }));
        const chargeByUs = 'any';
        const common = { keys, fallback: FALLBACK };
        const work = Promise.all([
          take(redis, { ...common, takes, chargeByUs, shadow, terms }),
          inFlight(redis, { ...common, processId: `p${w}`, need: 2, reports: true }),
          slots(redis, { ...common, op: i % 3 ? 'hold' : 'release', ids: [`p${w}:${i}`] }),
          refund(redis, {
            ...common,
            dueUs: null,
            shadow,
            refunds: takes.slice(0, 5).map(({ subject, cost }, n) => ({
              subject,
              cost,
              atUs: Date.now() * 1000,
              epoch: 1_000_000,
              generation: 0,
              terms: terms.algorithm === 'leaky-bucket' ? undefined : terms,
              mark: `m${w}-${i}-${n}`,
            })),
          }),
        ]);
        if (w === 3 && i === 30) redis.disconnect();
        const cut = await work.then(
          () => false,
          () => true,
        );
        if (cut) return;
      }
    }),
  );
  const kept = /:(params|audit|policy(:.*)?)$/;
  const found: string[] = [];
  for await (const names of fixture.redis.scanStream({ count: 500 })) found.push(...names);
  const own = found.filter((key) => !kept.test(key));
  expect(own.length).toBeGreaterThan(300);
  const lives = await Promise.all(own.map(async (key) => [key, await fixture.redis.pttl(key)]));
  expect(lives.filter(([, life]) => life === -1)).toEqual([]);
});

test('C20: a million numbers read back from Lua’s text to the same bits, in Lua, in Node and in Python', async () => {
  // Times in µs, and tokens up to 2^44 with all their digits: the text that Lua writes, and the bits it wrote.
  const written = `local x, texts, bits = tonumber(ARGV[1]), {}, {}
for i = 1, 50000 do
  x = (x * 16807) % 2147483647
  local time, tokens = 1.7e15 + x * 31 + i, x * 8192 + i / 7
  local a, b = string.format('%.17g', time), string.format('%.17g', tokens)
  if tonumber(a) ~= time or tonumber(b) ~= tokens then return redis.error_reply(a .. ' ' .. b) end
  texts[2 * i - 1], texts[2 * i], bits[i] = a, b, struct.pack('>dd', time, tokens)
end
return { table.concat(texts, '\\n'), table.concat(bits) }`;
  const million: string[] = [];
  for (let seed = 1; seed <= 10; seed += 1) {
    const call = ['EVAL', written, 0, seed * 7919] as const;
    const [text, bits] = (await fixture.redis.callBuffer(...call)) as [Buffer, Buffer];
    const texts = text.toString().split('\n');
    expect(bitsOf(texts).equals(bits)).toBe(true);
    million.push(...texts);
  }
  expect(million.length).toBe(1_000_000);
  // And marks as takes write them.
  const { keys, call } = fixture.limiter();
  await seedParams(
    fixture.redis,
    keys,
    { rate: 333.3, capacity: 1000, maxRate: 1000 },
    { nowUs: T0 },
  );
  const marks: string[] = [];
  for (let i = 1; i <= 300; i += 1) {
    await call([{ cost: 1 + (i % 9) / 7_000_000 > 1 ? 1.000001 : 1 }], T0 + i * i * 977_777);
    marks.push((await fixture.redis.get(keys.bucket))!);
  }
  expect(marks.join(' ')).not.toMatch(/nan|inf/i);
  expect(new Set(marks).size).toBe(300);
  const all = [...million, ...marks];
  const python = spawnSync(
    process.env.SUITE_PYTHON ?? '/usr/bin/python3',
    [
      '-c',
      "import sys,struct,hashlib\nn=[float(t) for t in sys.stdin.read().split()]\nprint(hashlib.sha256(struct.pack('>%dd'%len(n),*n)).hexdigest())",
    ],
    { input: all.join('\n'), encoding: 'utf8' },
  );
  expect(python.stdout.trim()).toBe(createHash('sha256').update(bitsOf(all)).digest('hex'));
});

/** The numbers that Node reads, as big-endian doubles. */
function bitsOf(texts: readonly string[]): Buffer {
  const bytes = Buffer.alloc(texts.length * 8);
  for (const [i, text] of texts.entries()) bytes.writeDoubleBE(Number(text), i * 8);
  return bytes;
}

test('C23: 60 a minute, 60 at 0:59.9 and 60 at 1:00.1: the sliding ones let the 60th pass and no more', async () => {
  for (const [terms] of ALL.slice(1, 4)) {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 1, capacity: 60 }, { nowUs: M0 });
    const ok = (reply: Awaited<ReturnType<typeof call>>) =>
      reasons(reply).filter((each) => each === 'ok').length;
    expect(ok(await call(many(59), M0 + 59.9 * S, { terms }))).toBe(59);
    expect(ok(await call(many(2), M0 + 59.9 * S, { terms }))).toBe(1);
    const after = ok(await call(many(60), M0 + 60.1 * S, { terms }));
    expect([terms.algorithm, after]).toEqual([
      terms.algorithm,
      terms.algorithm === 'fixed-window' ? 60 : 0,
    ]);
  }
});

test.each([1, 6, 60])(
  'C23: a counter of %i cells: never above the limit, a place back at most a cell late',
  async (cells) => {
    const { keys, call } = fixture.limiter();
    await seedParams(fixture.redis, keys, { rate: 2, capacity: 120 }, { nowUs: M0 });
    const terms: AlgorithmTerms = { algorithm: 'sliding-counter', windowMs: 60_000, cells };
    const times: number[] = [];
    const demand = Math.ceil(120 / cells) + 5;
    for (let second = 0; second < 600; second += 1) {
      const reply = await call(many(demand), M0 + second * S, { terms });
      for (const each of reply.answers) if (each.allowed) times.push(second);
    }
    // No 60 s hold more than the limit; the n-th place is free again within a window and a cell.
    for (let i = 120; i < times.length; i += 1) {
      expect(times[i]! - times[i - 120]!).toBeGreaterThanOrEqual(60);
      expect(times[i]! - times[i - 120]!).toBeLessThanOrEqual(60 + 60 / cells + 1);
    }
    expect(times.length).toBeGreaterThanOrEqual((2 * 600 * cells) / (cells + 1) - 120);
  },
);

test('the weight of a refund’s mark and of a slot', async () => {
  const { keys } = fixture.limiter();
  await fixture.redis.set(keys.refund('m'.repeat(16)), '1', 'PX', 1000);
  const mark = await fixture.redis.memory('USAGE', keys.refund('m'.repeat(16)));
  expect(mark).toBeLessThanOrEqual(120);
  const fallback = { ...FALLBACK, inFlightMax: 1_000 };
  const ids = Array.from({ length: 400 }, (_, i) => `1a2b3-0123456789:${i.toString(36)}`);
  await slots(fixture.redis, { keys, op: 'hold', ids, fallback });
  expect((await fixture.redis.memory('USAGE', keys.slots, 'SAMPLES', 0))! / 400).toBeLessThan(130);
  expect(await fixture.redis.pttl(keys.slots)).toBeLessThanOrEqual(10_000);
});
