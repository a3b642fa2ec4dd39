/** `flyball tail`: a sample of the decisions for as long as somebody asks, bounded, and nothing before or after. */
import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { manualClock } from '../../src/clock.js';
import type { Decision } from '../../src/enforce/decision.js';
import { createLink, type Link } from '../../src/enforce/link.js';
import { createSamples } from '../../src/enforce/samples.js';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { type LimiterKeys, limiterKeys } from '../../src/redis/keys.js';
import { type DecisionSample, readAsk, readSample } from '../../src/redis/tail-fields.js';
import { cli, MAIN } from '../support/cli-run.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('tail');

const env = () => ({ FLYBALL_REDIS_URL: bench.server.url });

async function limiter(params = {}, options: Partial<LimiterOptions> = {}): Promise<Limiter> {
  const made = bench.limiter(options);
  await setParams(bench.admin, made, { rate: 1000, capacity: 1000, ...params });
  return made;
}

const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as DecisionSample & { ended?: string });

test('input, answer and why of each decision, then it ends by itself and leaves nothing asked for', async () => {
  const api = await limiter({ rate: 0.001, capacity: 5 }, { denyCache: false });
  await api.take();
  const { inForce } = api.stats();
  const keys = limiterKeys({ name: api.name });
  let running = true;
  const traffic = (async () => {
    await until('the tail is asked for', async () => (await bench.admin.exists(keys.tail)) === 1);
    while (running) {
      await api.take('user:\u001b[31m1', { cost: 2, priority: 'critical' });
      await new Promise((ok) => setTimeout(ok, 20));
    }
  })();
  const [text, json] = await Promise.all([
    cli(['tail', api.name, '--ratio', '1', '--for', '2s'], { env: env() }),
    cli(['tail', api.name, '--ratio', '1', '--for', '2s', '--json'], { env: env() }),
  ]);
  running = false;
  await traffic;
  const lines = linesOf(json.stdout);
  const { ended, ...summary } = lines.pop() as never as Record<string, unknown>;
  expect(ended).toBe('time');
  expect(summary).toEqual({ schema: 1, shown: lines.length, dropped: 0, processes: 1 });
  const denied = lines.find((line) => !line.allowed)!;
  expect(denied).toMatchObject({
    schema: 1,
    subject: 'user:\u001b[31m1',
    hashed: false,
    cost: 2,
    priority: 'critical',
    wouldAllow: false,
    reason: 'rate',
    limit: 'rate',
    delayMs: 0,
    source: 'redis',
    epoch: inForce!.epoch,
    revision: inForce!.revision,
    state: 'closed',
    mode: 'auto',
  });
  expect(denied.retryAfterMs).toBeGreaterThan(1_000);
  expect(Object.keys(denied)).not.toContain('u');
  expect(json.code).toBe(0);
  expect(json.stdout).not.toContain('\u001b');
  expect(text.code).toBe(0);
  const shown = text.stdout.trim().split('\n');
  expect(shown.at(-1)).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} {2}deny {3}user:\\x1b\[31m1 {2}cost 2 critical {2}rate, again in .* {2}\d left {2}revision \d+ {2}redis {2}\S+$/,
  );
  expect(text.stderr).toContain(`100 % of the decisions of ${api.name} for 2 s`);
  expect(text.stderr).toMatch(/\d+ shown, of 1 process\./);
  expect(await bench.admin.exists(keys.tail)).toBe(0);
  const ttlMs = await bench.admin.pttl(keys.samples);
  expect(ttlMs).toBeGreaterThan(0);
  expect(ttlMs).toBeLessThanOrEqual(60_000);
});

test('Ctrl-C withdraws the wish at once; a tail that was killed is forgotten within 5 s', async () => {
  const api = await limiter();
  const keys = limiterKeys({ name: api.name });
  const start = (...flags: string[]) => {
    const child = spawn(process.execPath, [MAIN, 'tail', api.name, '--for', '1h', ...flags], {
      env: { PATH: process.env.PATH, ...env() },
      stdio: 'ignore',
    });
    const ended = new Promise<number | null>((ok) => child.once('exit', ok));
    return { child, ended };
  };
  const [polite, killed] = [start(), start()];
  await until('both ask', async () => (await bench.admin.hlen(keys.tail)) === 2);
  polite.child.kill('SIGINT');
  expect(await polite.ended).toBe(130);
  expect(await bench.admin.hlen(keys.tail)).toBe(1);
  killed.child.kill('SIGKILL');
  await killed.ended;
  const [ask] = Object.values(await bench.admin.hgetall(keys.tail));
  const [seconds] = await bench.admin.time();
  expect(readAsk(ask!, (Number(seconds) + 6) * 1000)).toBeNull();
  expect(await bench.admin.pttl(keys.tail)).toBeLessThanOrEqual(5_000);
});

test('a wrong ratio or length is said with what is allowed', async () => {
  for (const [flag, value, says] of [
    ['--ratio', '0', 'is no share'],
    ['--ratio', '1.5', 'is no share'],
    ['--ratio', 'all', 'is no share'],
    ['--for', '2d', 'longer than 1d'],
    ['--for', '10', 'has no unit'],
  ]) {
    const { code, stderr } = await cli(['tail', 'x', flag!, value!], { env: env() });
    expect([code, stderr]).toEqual([64, expect.stringContaining(says!)]);
  }
});

const DIRECT = { up: true, within: (_at: number, call: () => unknown) => call() } as Link;

/** One process's samples, at a virtual time, on the real server. */
function sampler(random: () => number = Math.random, redis = bench.admin, link: Link = DIRECT) {
  const keys = limiterKeys({ name: bench.name() });
  const clock = manualClock();
  const warned: string[] = [];
  const samples = createSamples({
    redis,
    link: () => link,
    finder: { keys, find: async () => keys },
    time: { nowMs: () => clock.nowMs(), learn() {}, forget() {}, latestAt: () => null },
    clock,
    view: { mode: 'auto' },
    processId: 'p1',
    warn: (code, message) => warned.push(`${code} ${message}`),
    random,
  });
  const decide = (times: number, subject: string | null = 'ada') => {
    for (let i = 0; i < times; i++) {
      const decision = { allowed: true, wouldAllow: true, reason: 'ok', subject } as Decision;
      if (samples.asked) samples.decided(decision, { cost: 1, priority: 'default' }, 0.123456);
    }
  };
  const ask = (asker: string, ratio: number, forMs: number, salt = '') =>
    bench.admin.hset(
      keys.tail,
      asker,
      JSON.stringify({ ratio, untilMs: clock.nowMs() + forMs, salt }),
    );
  return { keys, clock, samples, decide, ask, warned };
}

async function stored(keys: LimiterKeys): Promise<DecisionSample[]> {
  const entries = await bench.admin.xrange(keys.samples, '-', '+');
  return entries.map(([, fields]) => readSample(fields[1]!)!);
}

test('nobody asks: nothing is chosen or sent; asked, the share that was asked for, evenly', async () => {
  let draw = 0;
  const { keys, samples, decide, ask } = sampler(() => (draw++ % 100) / 100);
  await samples.beat();
  decide(100);
  await samples.beat();
  expect(draw).toBe(0);
  expect(await bench.admin.exists(keys.samples)).toBe(0);
  await ask('a', 0.1, 60_000);
  await samples.beat();
  decide(100);
  await samples.beat();
  const got = await stored(keys);
  expect(got).toHaveLength(10);
  expect(got[0]).toMatchObject({ n: 1, u: 0, process: 'p1', subject: 'ada', tookMs: 0.12 });
});

test('at most 50 a second, an even choice of all; the gaps in n tell how many were dropped', async () => {
  const { keys, samples, decide, ask } = sampler();
  await ask('a', 1, 60_000);
  await samples.beat();
  for (let second = 0; second < 8; second++) {
    decide(1_000);
    await samples.beat();
  }
  const got = await stored(keys);
  expect(got).toHaveLength(400);
  expect(Math.max(...got.map(({ n }) => n))).toBeGreaterThan(7_000);
  // Late ones of a second are chosen as early ones: 200 of 400, standard deviation 10.
  const late = got.filter(({ n }) => (n - 1) % 1_000 >= 500).length;
  expect(Math.abs(late - 200)).toBeLessThan(60);
  expect(await bench.admin.pttl(keys.samples)).toBeGreaterThan(0);
});

test('the stream keeps about a thousand, however many ask to be heard', async () => {
  const { keys, samples, decide, ask } = sampler();
  await ask('a', 1, 1e9);
  await samples.beat();
  for (let second = 0; second < 40; second++) {
    decide(60);
    await samples.beat();
  }
  const length = await bench.admin.xlen(keys.samples);
  expect(length).toBeGreaterThanOrEqual(1_000);
  expect(length).toBeLessThanOrEqual(1_100);
});

test('several ask: the highest ratio serves all; what is over or garbage counts for nothing', async () => {
  const { keys, clock, samples, decide, ask } = sampler();
  await ask('low', 0.001, 60_000);
  await ask('high', 1, 3_000);
  await bench.admin.hset(keys.tail, { bad: 'x', wide: '{"ratio":7,"untilMs":9e15}', odd: 'null' });
  await samples.beat();
  decide(10);
  await samples.beat();
  expect(await stored(keys)).toHaveLength(10);
  clock.advance(3_000);
  await samples.beat();
  decide(20);
  await samples.beat();
  expect((await stored(keys)).length).toBeLessThan(20);
  clock.advance(60_000);
  await samples.beat();
  expect(samples.asked).toBe(false);
});

test('one who wants hashes is enough: the same subject has one hash, another salt another', async () => {
  const { keys, samples, decide, ask } = sampler();
  await ask('plain', 1, 60_000);
  await ask('private', 1, 60_000, 'salt-1');
  await samples.beat();
  decide(2, 'ada@example.org');
  decide(1, 'bob@example.org');
  decide(1, null);
  await ask('private', 1, 60_000, 'salt-2');
  await samples.beat();
  decide(1, 'ada@example.org');
  await samples.beat();
  const got = await stored(keys);
  const subjects = got.map(({ subject }) => subject);
  expect(JSON.stringify(got)).not.toContain('example.org');
  expect(subjects[0]).toMatch(/^[\w-]{16}$/);
  expect(subjects[1]).toBe(subjects[0]);
  expect(new Set(subjects).size).toBe(4);
  expect(got.map(({ hashed }) => hashed)).toEqual([true, true, true, false, true]);
});

test('a long subject is cut; an answer that is none ends the sampling', async () => {
  const { keys, samples, decide, ask, warned } = sampler();
  await ask('a', 1, 60_000);
  await samples.beat();
  decide(1, 'x'.repeat(10_000));
  await samples.beat();
  expect((await stored(keys))[0]!.subject).toHaveLength(257);
  await bench.admin.del(keys.tail);
  await bench.admin.set(keys.tail, 'of another kind');
  await samples.beat();
  expect(samples.asked).toBe(false);
  expect(warned).toEqual([]);
});

test('a user without the right samples nothing, is told which file has it, and goes on with Redis', async () => {
  await bench.admin.call('ACL', 'SETUSER', 'blind', 'on', '>pass', '~*', '+@all', '-hgetall');
  const blind = bench.server.client({ username: 'blind', password: 'pass' });
  await blind.ping();
  const link = createLink({
    redis: blind,
    deadlineMs: 10_000,
    clock: manualClock(),
    probe: () => blind.ping(),
    onEvent: () => {},
  });
  const { samples, ask, warned } = sampler(Math.random, blind, link);
  await ask('a', 1, 60_000);
  for (let beat = 0; beat < 6; beat++) await samples.beat();
  expect(samples.asked).toBe(false);
  // Said once a minute by a limiter; here by each beat.
  expect(warned).toHaveLength(6);
  expect(warned[0]).toMatch(/^FLYBALL_W_TAIL_REFUSED .*NOPERM.*deploy\/redis\/users\.acl/);
  expect(link.up).toBe(true);
  link.close();
});
