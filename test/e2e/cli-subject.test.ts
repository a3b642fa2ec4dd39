/** `flyball subject` on a real Redis with every daemon dead: result, JSON, list, dry run, question, refusals, exit codes. */
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { shellWord } from '../../src/cli/undo.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { parseOverride } from '../../src/redis/subject-override.js';
import { lawWrite, mustRead, seedLimiter } from '../support/cli-run.js';
import { type RedisBench, redisBench } from '../support/redis-bench.js';

const checkout = { name: 'checkout' };
const keys = limiterKeys(checkout);
const HOUR = 3_600_000;
let redis: Redis;
let run: RedisBench['run'];

redisBench(async (bench) => {
  ({ redis, run } = bench);
  await seedLimiter(redis, checkout, { subjectRate: 2, subjectCapacity: 5 });
});

const stored = async (field: string) => {
  const text = await redis.hget(keys.overrides, field);
  return text === null ? null : parseOverride(field, text);
};

test('numbers of its own: shown, asked, written once with subject, before, after, reason and end', async () => {
  const said = await run(
    'subject checkout user:42 --capacity 500 --rate 20 --for 2h --reason batch',
    'y\n',
  );
  expect(said.code).toBe(0);
  expect(said.stderr).toContain('checkout, user:42 at revision 1');
  expect(said.stderr).toMatch(/said of it +nothing +→ +capacity 500, rate 20\/s/);
  expect(said.stderr).toContain('Its bucket keeps what it holds now, and fills at 20/s.');
  expect(said.stderr).toMatch(/flyball subject checkout user:42 --clear ends it \(else in 2 h\)/);
  expect(said.stdout).toMatch(/^done {2}revision 2 .*capacity 500, rate 20\/s, until .*Z\.$/m);

  const { entries } = await readEntries(redis, checkout, { kind: 'change' });
  expect(entries).toHaveLength(2);
  expect(entries[0]!.body.sentence).toMatch(/capacity 500, rate 20\/s, until .*Z\. Reason: batch$/);
  expect(entries[0]!.body).toMatchObject({
    ...{ reason: 'subject_limit', revision: 2, actor: { kind: 'person' } },
    detail: {
      subject: 'user:42',
      was: null,
      is: { kind: 'limit', rate: 20, capacity: 500 },
      why: 'batch',
    },
  });
  const { until } = entries[0]!.body.detail as { until: number };
  expect(Math.abs(until - (Date.now() + 2 * HOUR))).toBeLessThan(60_000);
  expect(await stored('user:42')).toMatchObject({
    ...{ kind: 'limit', untilMs: until, rate: 20, capacity: 500 },
    ...{ subject: 'user:42', why: 'batch', revision: 2 },
  });
  expect(await mustRead(redis, checkout)).toMatchObject({
    revision: 2,
    subjectRules: 1,
    rate: 100,
  });
  expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
});

test('the list: who is what until when, by whom and why; in JSON too', async () => {
  expect((await run('subject checkout')).stderr).toContain('Nothing is said of single subjects');
  await run([
    'subject',
    'checkout',
    'user:1',
    '--block',
    '--hold',
    '--reason',
    'scraping',
    '--yes',
  ]);
  await run('subject checkout vip --exempt --for 15m --yes');
  const list = await run('subject checkout');
  expect(list.code).toBe(0);
  const lines = list.stdout.trim().split('\n');
  expect(lines[0]).toMatch(/^SUBJECT +RULE +ENDS +BY +REVISION +REASON$/);
  expect(lines[1]).toMatch(
    /^user:1 +blocked +until a person ends it +\S+@\S+ \(unverified\) +r2 +scraping$/,
  );
  expect(lines[2]).toMatch(/^vip +exempt +until \d\d:\d\d:\d\d \(1[45] min/);
  const json = JSON.parse((await run('subject checkout --json')).stdout);
  expect(json).toMatchObject({
    ...{ schema: 1, limiter: 'checkout', revision: 3, most: 1000 },
    overrides: [
      { subject: 'user:1', kind: 'block', untilMs: null, reason: 'scraping', rate: null },
      { subject: 'vip', kind: 'exempt', reason: null },
    ],
  });
});

test('what is over is not listed', async () => {
  await run('subject checkout user:1 --block --yes');
  await redis.hset(keys.overrides, 'old', `block ${Date.now() - 1000} - - 2`);
  const json = JSON.parse((await run('subject checkout --json')).stdout);
  expect(json.overrides.map((each: { subject: string }) => each.subject)).toEqual(['user:1']);
  expect(await run('subject checkout old --clear --yes')).toMatchObject({ code: 0 });
  expect((await mustRead(redis, checkout)).revision).toBe(2);
});

test('the way back is told of a clear and of what takes the place of something, as one word of a shell', async () => {
  await run('subject checkout user:1 --capacity 500 --rate 20 --for 2h --yes');
  const blocked = await run('subject checkout user:1 --block --hold --yes');
  const back = 'flyball subject checkout user:1 --capacity 500 --rate 20 --for 120m brings back';
  expect(blocked.stderr).toContain(`--clear ends it. ${back} what was said before.`);
  const cleared = await run('subject checkout user:1 --clear --yes');
  expect(cleared.stderr).toContain('flyball subject checkout user:1 --block --hold brings back');
  expect(shellWord("it's $(me)")).toBe("'it'\\''s $(me)'");
  expect([shellWord('user:42'), shellWord('-x'), shellWord('a\x1bb')]).toEqual([
    'user:42',
    "'-x'",
    null,
  ]);
});

test('clear takes it back; said twice, the entry says what was before', async () => {
  await run('subject checkout user:1 --capacity 9 --yes');
  const json = JSON.parse((await run('subject checkout user:1 --block --yes --json')).stdout);
  expect(json).toMatchObject({
    ...{ schema: 1, verb: 'subject_block', status: 'done', revision: 3, subject: 'user:1' },
    ...{ was: { kind: 'limit', capacity: 9, rate: null }, is: { kind: 'block' } },
    hold: { untilMs: expect.any(Number) },
  });
  const cleared = JSON.parse((await run('subject checkout user:1 --clear --yes --json')).stdout);
  expect(cleared).toMatchObject({ was: { kind: 'block' }, is: null, hold: null, revision: 4 });
  expect(await redis.exists(keys.overrides)).toBe(0);
  expect(await mustRead(redis, checkout)).toMatchObject({ subjectRules: 0 });
  const nothing = await run('subject checkout user:1 --clear --yes');
  expect(nothing).toMatchObject({ code: 0, stdout: 'Nothing is said of user:1 at checkout.\n' });
});

test('--dry-run and no write nothing; without a terminal it needs --yes', async () => {
  const dry = await run('subject checkout user:1 --block --dry-run');
  expect(dry.code).toBe(0);
  expect(dry.stdout).toMatch(/said of it +nothing +→ +blocked/);
  const json = JSON.parse((await run('subject checkout user:1 --block --dry-run --json')).stdout);
  expect(json).toMatchObject({ status: 'dry_run', revision: 1, is: { kind: 'block' } });
  expect((await run('subject checkout user:1 --block', 'n\n')).code).toBe(1);
  const mute = await run('subject checkout user:1 --block');
  expect(mute).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('FLYBALL_E_CLI_CONFIRM'),
  });
  expect((await mustRead(redis, checkout)).revision).toBe(1);
});

test('it wins against a law that writes all the time, and its entry has the newest numbers', async () => {
  const lease = await redis.set(keys.lease, 'd1:5', 'PX', 60_000);
  expect(lease).toBe('OK');
  const authority = { kind: 'lease' as const, owner: 'd1', token: 5 };
  let stop = false;
  const law = (async () => {
    for (let i = 0; !stop; i++)
      await lawWrite(redis, checkout, authority, { rate: 100 + (i % 50) });
  })();
  const done = await run('subject checkout user:1 --block --yes');
  stop = true;
  await law;
  expect(done.code).toBe(0);
  expect((await verifyAudit(redis, checkout)).verdict).toBe('consistent');
  expect(await stored('user:1')).toMatchObject({ kind: 'block' });
});

test('a rollback says that it leaves single subjects alone', async () => {
  await run('subject checkout user:1 --block --yes');
  const back = await run('rollback checkout 1 --yes');
  expect(back.stderr).toContain(
    'What is said of single subjects stays: `flyball subject checkout`',
  );
  expect(await stored('user:1')).toMatchObject({ kind: 'block' });
});

describe('refused, with the mend', () => {
  test.each([
    ['subject checkout user:1 --yes', 64, 'say what shall hold for user:1'],
    ['subject checkout --block --yes', 64, '--block is for one subject, and none is named'],
    ['subject checkout user:1 --block --exempt --yes', 64, "cannot be used with option '--exempt'"],
    ['subject checkout user:1 --block --rate 5 --yes', 64, "cannot be used with option '--rate"],
    ['subject checkout user:1 --clear --for 2h --yes', 64, "cannot be used with option '--for"],
    ['subject checkout user:1 --rate 0 --yes', 64, 'To let nothing pass: --block.'],
    ['subject checkout user:1 --capacity 0.5 --yes', 64, '1 … 1000000000 is allowed'],
    ['subject checkout user:1 --capacity lots --yes', 64, '--capacity: "lots" is not a number'],
    ['subject chekout user:1 --block --yes', 64, 'Did you mean checkout?'],
  ])('%s', async (args, code, text) => {
    const answer = await run(args);
    expect(answer.code).toBe(code);
    expect(answer.stderr).toContain(text);
    expect((await mustRead(redis, checkout)).revision).toBe(1);
  });

  test('numbers that mean nothing for the algorithm, or for a policy without subjects', async () => {
    const refused = async (name: string, args: string, text: string) => {
      const answer = await run(`subject ${name} user:1 ${args} --yes`);
      expect(answer.code).toBe(64);
      expect(answer.stderr).toContain(text);
    };
    await seedLimiter(redis, { name: 'plain' });
    await refused('plain', '--rate 5', 'needs both --capacity and --rate');
    expect((await run('subject plain user:1 --rate 5 --capacity 9 --yes')).code).toBe(0);
    const window = { algorithm: 'sliding-log', windowMs: 60_000 } as const;
    await seedLimiter(redis, { name: 'log' }, { ...window, subjectRate: 1, subjectCapacity: 1 });
    await refused('log', '--capacity 9', 'so give --rate alone');
    expect((await run('subject log user:1 --rate 5 --yes')).code).toBe(0);
    await seedLimiter(redis, { name: 'pace' }, { algorithm: 'leaky-bucket' });
    await refused('pace', '--rate 9 --capacity 9', 'Use --block or --exempt');
  });

  test('a thousand are the most', async () => {
    await redis.hset(keys.params, 'subjectRules', '1');
    const fields = Array.from({ length: 1_000 }, (_each, i) => [`s${i}`, 'block -1 - - 1']);
    await redis.hset(keys.overrides, ...fields.flat());
    const full = await run('subject checkout user:1 --block --yes');
    expect(full.code).toBe(1);
    expect(full.stderr).toContain('checkout has 1000 overrides of subjects; 1000 is the most');
  });
});
