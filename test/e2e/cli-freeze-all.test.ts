/** `freeze --all` and `thaw --all`: shown and asked once, then one entry a limiter; one that cannot keeps no other from it. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { readEntries } from '../../src/actuate/audit.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { mustRead, seedLimiter } from '../support/cli-run.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const ALL = ['checkout', 'refund', 'search'].map((name) => ({ name }));
let redis: Redis;
let run: RedisBench['run'];

redisBench(async (bench) => {
  ({ redis, run } = bench);
  for (const address of ALL) await seedLimiter(redis, address);
});

test('each is frozen for the time given, with the reason; thaw ends them all', async () => {
  const done = await run('freeze --all --for 2h --reason stocktaking --yes --json');
  expect(done.code).toBe(0);
  const { limiters } = JSON.parse(done.stdout);
  expect(
    limiters.map(({ limiter, status }: { limiter: string; status: string }) => [limiter, status]),
  ).toEqual(ALL.map(({ name }) => [name, 'done']));
  for (const address of ALL) {
    const params = await mustRead(redis, address);
    expect(params.frozenUntil - Date.now()).toBeGreaterThan(7_000_000);
    const { entries } = await readEntries(redis, address, { reason: 'freeze' });
    expect(entries.map((entry) => entry.body.detail!.why)).toEqual(['stocktaking']);
  }
  expect((await run('thaw checkout --yes')).code).toBe(0);
  const thawed = await run('thaw --all --yes');
  expect(thawed.code).toBe(0);
  expect(thawed.stdout).toMatch(
    /checkout {2}nothing\nrefund {2}revision \d+\nsearch {2}revision \d+/,
  );
  for (const address of ALL) expect((await mustRead(redis, address)).frozenUntil).toBe(0);
});

test('asked once; a no and a dry run write nothing', async () => {
  const no = await run('freeze --all', 'n\n');
  expect(no.code).toBe(1);
  expect(no.stderr).toContain('Do it to 3 limiters?');
  const dry = await run('freeze --all --dry-run');
  expect(dry.code).toBe(0);
  expect(dry.stderr.match(/^would be: .* froze (checkout|refund|search) /gm)).toHaveLength(3);
  for (const address of ALL) expect((await mustRead(redis, address)).frozenUntil).toBe(0);
  const yes = await run('freeze --all', 'y\n');
  expect(yes.code).toBe(0);
});

test('one without params is told, and the others are frozen', async () => {
  await redis.del(limiterKeys({ name: 'refund' }).params);
  const done = await run('freeze --all --yes');
  expect(done.code).toBe(1);
  expect(done.stdout).toMatch(/refund {2}failed .*has no params/);
  expect((await mustRead(redis, ALL[2]!)).frozenUntil).toBeGreaterThan(0);
});

test('a limiter or --all: one of them; and there must be one', async () => {
  for (const [args, said] of [
    ['freeze --yes', 'name a limiter, or give --all'],
    ['thaw checkout --all --yes', 'exclude each other'],
    ['freeze --all', 'no terminal to ask at'],
  ] as const) {
    const refused = await run(args);
    expect([args, refused.code]).toEqual([args, 64]);
    expect(refused.stderr).toContain(said);
  }
  await redis.del(fleetKeys().limiters);
  expect((await run('freeze --all --yes')).stderr).toContain('no limiter is known');
});
