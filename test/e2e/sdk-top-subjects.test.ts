/** `flyball top`: what several processes counted, over the last minutes, with the error stated. */
import { beforeEach, expect, test } from 'vitest';
import type { LimiterOptions } from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { addTop } from '../../src/redis/scripts.js';
import { cli, seedLimiter } from '../support/cli-run.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams } from '../support/sdk-params.js';

const bench = sdkBench('top');
beforeEach(() => bench.admin.flushall());

const limiter = (name: string, options: Partial<LimiterOptions> = {}) =>
  bench.limiter({ name, ...options });

interface Top {
  total: number;
  error: number;
  seen: number;
  read: number;
  sinceMs: number;
  atMs: number;
  subjects: { subject: string; hashed: boolean; tokens: number | null; denied: number | null }[];
}

const env = () => ({ FLYBALL_REDIS_URL: bench.server.url });

async function top(name: string, ...flags: string[]): Promise<Top> {
  const { code, stdout, stderr } = await cli(['top', name, '--json', ...flags], { env: env() });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return JSON.parse(stdout) as Top;
}

test('two processes: tokens by cost, denials by count, subjects as they were written', async () => {
  const name = 'top-two';
  await setParams(bench.admin, { name }, { rate: 0.001, capacity: 30 });
  const [one, two] = [limiter(name, { denyCache: false }), limiter(name)];
  const long = `tenant:${'x'.repeat(100)}`;
  for (let i = 0; i < 5; i++) await one.take('Ünïcode {b}', { cost: 2.5 });
  for (let i = 0; i < 6; i++) await two.take('user:2');
  for (let i = 0; i < 4; i++) await one.take('user:2');
  await two.take(long);
  await two.take(null, { cost: 3 });
  for (let i = 0; i < 7; i++) await one.take('greedy', { cost: 29 });
  for (let i = 0; i < 3; i++) await two.take('user:2', { cost: 29 });
  await one.peek('user:9');
  await Promise.all([one.close(), two.close()]);

  const taken = await top(name, '--over', '1m');
  expect(taken).toMatchObject({ total: 23.5, error: 0, seen: 26, read: 26 });
  expect(taken.subjects).toEqual([
    { subject: 'Ünïcode {b}', hashed: false, tokens: 12.5, denied: null },
    { subject: 'user:2', hashed: false, tokens: 10, denied: 3 },
    { subject: expect.stringMatching(/^#[\w-]{43}$/), hashed: true, tokens: 1, denied: null },
  ]);
  const denied = await top(name, '--denied');
  expect(denied.total).toBe(10);
  expect(denied.subjects).toEqual([
    { subject: 'greedy', hashed: false, tokens: null, denied: 7 },
    { subject: 'user:2', hashed: false, tokens: 10, denied: 3 },
  ]);
  expect((await top(name, '--limit', '1')).subjects).toHaveLength(1);
  const minute = Math.floor(denied.atMs / 60_000);
  expect(denied.sinceMs).toBe((minute - 5) * 60_000);
  // The minute may have turned since it was written.
  const keys = [minute - 1, minute].map((of) => limiterKeys({ name }).top(of));
  const lives = await Promise.all(keys.map((key) => bench.admin.pttl(key)));
  expect(Math.max(...lives)).toBeGreaterThan(3_500_000);
});

test('in shadow mode those are denied who would have been; switched off nothing is written', async () => {
  const [name, off] = ['top-shadow', 'top-off'];
  await setParams(bench.admin, { name }, { mode: 'shadow', rate: 0.001, capacity: 1 });
  await setParams(bench.admin, { name: off }, { rate: 10, capacity: 10 });
  const [one, two] = [limiter(name), limiter(off, { topSubjects: false })];
  for (let i = 0; i < 3; i++) await one.take('user:1');
  for (let i = 0; i < 3; i++) await two.take('user:1');
  await Promise.all([one.close(), two.close()]);
  expect((await top(name, '--denied')).subjects).toMatchObject([{ subject: 'user:1', denied: 2 }]);
  expect(await top(off)).toMatchObject({ total: 0, seen: 0, subjects: [] });
  expect(await bench.admin.keys('*{top-off}:top:*')).toEqual([]);
});

test('a service without the right goes on deciding, and the operator is told', async () => {
  const name = 'top-refused';
  await setParams(bench.admin, { name }, { rate: 10, capacity: 10 });
  await bench.admin.call('ACL', 'SETUSER', 'old', 'on', '>pass', '~*', '+@all', '-hincrbyfloat');
  const told: string[] = [];
  const redis = bench.server.client({ username: 'old', password: 'pass' });
  const api = limiter(name, {
    redis,
    onWarning: ({ code, message }) => told.push(`${code} ${message}`),
  });
  expect(await api.take('user:1')).toMatchObject({ allowed: true, source: 'redis' });
  await api.close();
  expect(told.filter((each) => each.startsWith('FLYBALL_W_TOP_REFUSED'))).toEqual([
    expect.stringMatching(
      /can't run this command.*deploy\/redis\/users\.acl, or set topSubjects: false/,
    ),
  ]);
  expect((await top(name)).seen).toBe(0);
});

test('under load an even sample stands for all, and that is told', async () => {
  const name = 'top-load';
  await setParams(bench.admin, { name }, { rate: 1e6, capacity: 1e6 });
  const api = limiter(name);
  await api.take('first');
  await Promise.all(Array.from({ length: 6_000 }, (_, i) => api.take(i % 5 < 3 ? 'hot' : `u${i}`)));
  await api.close();
  const { seen, read, subjects, total } = await top(name);
  expect(seen).toBe(6_001);
  expect(read).toBeLessThan(6_001);
  // 3,600 of 6,000; one in about six is read: standard deviation below 95, the bound is six of them.
  expect(subjects[0]!.subject).toBe('hot');
  expect(Math.abs(subjects[0]!.tokens! - 3_600)).toBeLessThan(570);
  expect(total).toBeCloseTo(6_001, 0);
  const { stdout, stderr } = await cli(['top', name], { env: env() });
  expect(stdout).toMatch(
    /^top-load since .*: 6001 tokens\nsubject +tokens +per s +share +denied\nhot /,
  );
  expect(stderr).toMatch(/Each may have up to .* tokens \(.* %\) more\./);
  expect(stderr).toMatch(/reads an even sample, here \d+(\.\d+)? % of the takes/);
});

test('the window is what was asked for: minutes before it do not count', async () => {
  const name = 'top-window';
  await seedLimiter(bench.admin, { name });
  const keys = limiterKeys({ name });
  const [seconds] = await bench.admin.time();
  const now = Math.floor(Number(seconds) / 60);
  for (const ago of [0, 3, 4, 30, 59, 62, 64]) {
    const fields = [
      ['t', 1] as const,
      ['n', 1] as const,
      ['r', 1] as const,
      [`t:ago${ago}`, 1] as const,
    ];
    await addTop(bench.admin, { keys, minute: now - ago, fields });
  }
  const subjects = async (over: string) =>
    (await top(name, '--over', over)).subjects.map(({ subject }) => subject);
  expect(await subjects('1m')).toEqual(['ago0']);
  // A minute may end between the writing and the reading.
  expect(await subjects('5m')).toEqual(['ago0', 'ago3', 'ago4']);
  expect(await subjects('60m')).toEqual(['ago0', 'ago3', 'ago30', 'ago4', 'ago59']);
  expect(await subjects('1h')).toHaveLength(5);
});

test('a window that is none, a limiter that is unknown, and nothing to show are said', async () => {
  const wrong = await cli(['top', 'top-two', '--over', '7m'], { env: env() });
  expect(wrong.code).toBe(64);
  expect(wrong.stderr).toContain('"7m" is no window. Write 1m, 5m or 60m.');
  expect((await cli(['top', 'nobody'], { env: env() })).stderr).toContain('no limiter "nobody"');
  await seedLimiter(bench.admin, { name: 'top-none' });
  const none = await cli(['top', 'top-none', '--denied'], { env: env() });
  expect(none.stdout).toMatch(/^top-none since .*: no denials by takes with a subject\.\n$/);
});

test('what else stands in a minute counts for nothing', async () => {
  const name = 'top-garbage';
  await seedLimiter(bench.admin, { name });
  const keys = limiterKeys({ name });
  const [seconds] = await bench.admin.time();
  const minute = Math.floor(Number(seconds) / 60);
  await bench.admin.hset(keys.top(minute), {
    t: '5',
    'x:1': '9',
    't:good': '5',
    't:bad': 'nan',
    't:neg': '-4',
    't:%E0%A4%A': '1e999',
    'd:\u001b[31mred': '2',
    te: 'zzz',
  });
  expect((await top(name)).subjects).toEqual([
    { subject: 'good', hashed: false, tokens: 5, denied: null },
  ]);
  const { stdout } = await cli(['top', name, '--denied'], { env: env() });
  expect(stdout).toContain('\\x1b[31mred');
});
