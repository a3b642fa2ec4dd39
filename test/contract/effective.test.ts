/** `effective` in Lua and in TypeScript reproduce one golden file, bit for bit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Effective, effective, effectiveAtUs } from '../../src/redis/effective.js';
import type { Params } from '../../src/redis/params.js';
import { readInForce } from '../../src/redis/replies.js';
import { effectiveScript } from '../../src/redis/scripts.gen.js';
import { useRedis } from '../lua/fixture.js';

const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'effective.json'), 'utf8')) as {
  base: Params;
  vectors: { name: string; params: Partial<Params>; nowUs: number; expect: Effective }[];
};
const fixture = useRedis();
const vectors = golden.vectors.map((each) => ({
  ...each,
  full: { ...golden.base, ...each.params },
}));

test('TypeScript reproduces the golden file', () => {
  for (const each of vectors)
    expect(effectiveAtUs(each.full, each.nowUs), each.name).toEqual(each.expect);
});

test('Lua reproduces the golden file', async () => {
  for (const each of vectors) {
    await fixture.redis.del('{x}');
    await fixture.redis.hset('{x}', { ...each.full, keptMs: 1000, subjectKeptMs: 1000 });
    const reply = (await fixture.redis.eval(effectiveScript.lua, 1, '{x}', each.nowUs)) as string[];
    const { tokens, subjectTokens, ...numbers } = each.expect;
    expect(readInForce(reply[1]!), each.name).toMatchObject(numbers);
    expect([Number(reply[2]), Number(reply[3])], each.name).toEqual([tokens, subjectTokens]);
  }
});

/** Worked by hand, so that the golden file is not only what the code says. */
test.each<[string, Partial<Params>, number, Partial<Effective>]>([
  [
    'an hour at 100/s is 360,000 tokens',
    { pinnedUntil: -1 },
    3600,
    { rate: 100, tokens: 12_345.678 + 360_000 },
  ],
  [
    'open: nothing is paid, nothing flows',
    { state: 'open', openUntil: -1 },
    4,
    { state: 'open', rate: 0, tokens: 12_345.678 },
  ],
  [
    'open until 5 s: at 8 s the probe rate has paid 3',
    { state: 'open', openUntil: 1_700_000_005_000, accrued: 0 },
    8,
    { state: 'half-open', rate: 1, capacity: 1, tokens: 3 },
  ],
  [
    'halfway through the glide 100 → 80',
    { accrued: 0 },
    80,
    { rate: 90, inFlightMax: 20, gliding: true, tokens: 6500 + 15 * 95 },
  ],
  [
    'after the glide: 65 s at 100, 30 s at 90 on average, 5 s at 80',
    { accrued: 0 },
    100,
    { rate: 80, tokens: 6500 + 2700 + 400 },
  ],
  [
    'a clock 10 s back takes 10 s of the rate back',
    { accrued: 0 },
    -10,
    { rate: 100, tokens: -1000 },
  ],
  [
    'a subject follows 100/80 of its rate',
    { subjectFollow: 1, subjectAccrued: 0 },
    10,
    { subjectRate: 6.25, subjectTokens: 62.5 },
  ],
])('%s', (_name, overrides, seconds, expected) => {
  const params = { ...golden.base, ...overrides };
  expect(effective(params, golden.base.changedAt / 1000 + seconds * 1000)).toMatchObject(expected);
});
