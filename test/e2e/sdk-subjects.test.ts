/** What is known of single subjects, as services meet it: a person's word in the next take, tiers by outcomes, the crowd. */
import { Registry } from 'prom-client';
import { beforeEach, expect, test } from 'vitest';
import { adopt } from '../../src/actuate/adopt.js';
import { collectMetrics } from '../../src/enforce/metrics.js';
import { statusOf } from '../../src/enforce/problem.js';
import type { Limiter, LimiterOptions, LimiterWarning } from '../../src/index.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { cli, mustRead } from '../support/cli-run.js';
import { startRedis } from '../support/redis-server.js';
import { sdkBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const bench = sdkBench('subjects');
const warnings: LimiterWarning[] = [];
beforeEach(async () => {
  warnings.length = 0;
  await bench.admin.flushall();
});

function limiter(name: string, options: Partial<LimiterOptions> = {}): Limiter {
  const onWarning = (warning: LimiterWarning) => warnings.push(warning);
  return bench.limiter({ name, onWarning, ...options });
}

async function person(words: string): Promise<void> {
  const run = await cli([...words.split(' '), '--yes'], {
    env: { FLYBALL_REDIS_URL: bench.server.url },
  });
  expect(run).toMatchObject({ code: 0 });
}

async function seeded(name: string): Promise<void> {
  const numbers = { rate: 100, capacity: 100, subjectRate: 0.01, subjectCapacity: 3 };
  await setParams(bench.admin, { name }, { ...numbers, mode: 'auto' });
  await bench.admin.hset(fleetKeys().limiters, name, '');
}

async function adopted(name: string, limiterPart: Partial<PolicyInput['limiter']>): Promise<void> {
  const policy = policySchema.parse({
    limiter: { name, rate: 1_000, capacity: 1_000, ...limiterPart },
  });
  const file = { file: `${name}.ts`, policy, hash: policyHash(policy), json: policyJson(policy) };
  const actor = { kind: 'autopilot', name: 'd1' } as const;
  const outcome = await adopt(bench.admin, file, { actor, leaseMs: 60_000, nowMs: Date.now() });
  expect(outcome.status).toMatch(/created|changed/);
}

test('a block counts with the very next take of every process, in the same call; so does its end', async () => {
  await seeded('api');
  const [one, two] = [limiter('api'), limiter('api')];
  for (const each of [one, two]) expect((await each.take('user:42')).allowed).toBe(true);
  await person('subject api user:42 --block --for 1h');
  for (const each of [one, two]) {
    const decision = await each.take('user:42');
    expect(decision).toMatchObject({
      allowed: false,
      reason: 'blocked',
      limit: 'subject',
      source: 'redis',
    });
    expect(decision.retryAfterMs).toBeGreaterThan(3_500_000);
    expect(statusOf(decision)).toBe(429);
    expect((await each.take('user:43')).allowed).toBe(true);
  }
  // The script that looks rules up is remembered: one call a take, and none for a denial that is repeated here.
  const before = one.stats().calls;
  for (let i = 0; i < 5; i++) await one.take(`user:5${i}`);
  expect((await one.take('user:42')).source).toBe('cached');
  expect(one.stats().calls - before).toBe(5);

  await person('subject api user:42 --clear');
  await one.take('user:44');
  expect((await one.take('user:42')).allowed).toBe(true);
  expect(await mustRead(bench.admin, { name: 'api' })).toMatchObject({ subjectRules: 0 });
});

test('500 takes at once, some blocked, some exempt, while a person speaks: each answered once', async () => {
  await seeded('busy');
  const busy = limiter('busy');
  await busy.take('warm');
  const wave = () =>
    Promise.all(Array.from({ length: 500 }, (_each, i) => busy.take(`u${i % 50}`)));
  const [first] = await Promise.all([wave(), person('subject busy u7 --exempt')]);
  expect(first).toHaveLength(500);
  await person('subject busy u8 --block --hold');
  const second = await wave();
  const of = (subject: string) => second.filter((each) => each.subject === subject);
  expect(of('u7').every((each) => each.allowed)).toBe(true);
  expect(of('u8').map((each) => each.reason)).toEqual(Array(10).fill('blocked'));
  expect(of('u8')[0]!.retryAfterMs).toBeNull();
  // It took what was there, perhaps nothing: to give it back would make tokens of nothing.
  expect(of('u7')[0]).toMatchObject({ reason: 'exempt', id: null });
  expect(await of('u7')[0]!.refund()).toEqual({ refunded: false, why: 'nothing_taken' });
  expect(busy.stats().redisErrors).toBe(0);
});

test('what a subject with numbers of its own took goes back to its own bucket, never above it', async () => {
  await seeded('own');
  const own = limiter('own');
  await person('subject own big --capacity 4 --rate 0.001');
  // The override begins with what the policy's bucket held: 3.
  const taken = await Promise.all([1, 2, 3].map(() => own.take('big')));
  expect(taken.every((each) => each.allowed)).toBe(true);
  expect((await own.take('big')).reason).toBe('subject');
  for (const each of taken.slice(0, 2)) expect(await each.refund()).toEqual({ refunded: true });
  expect(await taken[0]!.refund()).toMatchObject({ refunded: false, why: 'already' });
  expect((await own.peek('big')).remaining).toBe(2);
  expect((await own.take('big', { cost: 2 })).allowed).toBe(true);
});

test('tiers: three paid orders in a row let ten pass, one failure five; adopting keeps what people said', async () => {
  const tiers = { on: 'paid', steps: [{ times: 3, capacity: 10 }] };
  const perSubject = { subject: 'user:{id}', rate: 0.001, capacity: 5, tiers };
  await adopted('shop', { perSubject });
  const shop = limiter('shop');
  const allowed = async (subject: string, n: number) => {
    const all = await Promise.all(Array.from({ length: n }, () => shop.take(subject)));
    return all.filter((each) => each.allowed).length;
  };
  expect(await allowed('ann', 8)).toBe(5);
  for (const id of ['o1', 'o2', 'o2']) await shop.outcome('bob', 'paid', { id });
  expect(await shop.outcome('bob', 'paid')).toEqual({
    ...{ status: 'counted', inARow: 3, tier: 1, rate: 0.001, capacity: 10 },
  });
  // The room fills at the rate; here a person gives the tokens at once.
  await bench.admin.del(limiterKeys({ name: 'shop' }).subjectBucket('bob'));
  expect(await allowed('bob', 4)).toBe(4);
  expect(await shop.outcome('bob', 'failed')).toMatchObject({ tier: 0, capacity: 5 });
  expect((await shop.peek('bob')).remaining).toBeLessThanOrEqual(5);

  await person('subject shop eve --block');
  await adopted('shop', { perSubject: { ...perSubject, tiers: undefined } });
  expect(await mustRead(bench.admin, { name: 'shop' })).toMatchObject({
    subjectRules: 1,
    subjectTerms: '',
  });
  expect(await shop.take('eve')).toMatchObject({ reason: 'blocked' });
  expect(await shop.outcome('bob', 'paid')).toMatchObject({ status: 'no-tiers' });
  expect(warnings.map(({ code }) => code)).toContain('FLYBALL_W_OUTCOME_UNKNOWN');
  await person('subject shop eve --clear');
  expect(await mustRead(bench.admin, { name: 'shop' })).toMatchObject({ subjectRules: 0 });
});

test('an outcome that is none is refused; without Redis it says that perhaps nothing was counted', async () => {
  const shop = limiter('shop2');
  const wrong = { code: 'FLYBALL_E_ENFORCE_OUTCOME' };
  await expect(shop.outcome('ann', 'two words')).rejects.toMatchObject(wrong);
  await expect(shop.outcome('ann', 'paid', { id: '' })).rejects.toMatchObject(wrong);
  await expect(shop.outcome(null as never, 'paid')).rejects.toMatchObject(wrong);
  await expect(shop.outcome('', 'paid')).rejects.toThrow(/subject is ""/);
  const lone = await startRedis();
  const away = limiter('away', { url: lone.url, deadlineMs: 100 });
  await until('it answers', async () => (await away.peek()).source === 'unmanaged');
  await lone.kill();
  expect(await away.outcome('ann', 'paid')).toMatchObject({ status: 'away' });
  expect(warnings.map(({ code }) => code)).toContain('FLYBALL_W_OUTCOME_LOST');
  await lone.stop();
});

test('the crowd: past the most subjects newcomers share a bucket, counted and told', async () => {
  const perSubject = { subject: 'ip:{ip}', rate: 0.001, capacity: 3 };
  await adopted('open', { perSubject, subjects: { max: 20, overflow: 'shared' } });
  const api = limiter('open');
  const known = await Promise.all(Array.from({ length: 20 }, (_each, i) => api.take(`ip:${i}`)));
  expect(known.every((each) => each.allowed)).toBe(true);
  expect(api.stats().overflow).toBe(0);
  const flood = await Promise.all(Array.from({ length: 200 }, (_each, i) => api.take(`ip:x${i}`)));
  expect(flood.filter((each) => each.allowed)).toHaveLength(3);
  expect(api.stats().overflow).toBe(200);
  const registry = new Registry();
  collectMetrics(api, { register: registry });
  expect(await registry.metrics()).toContain(
    'flyball_enforce_overflow_requests_total{limiter="open"} 200\n',
  );
  expect(warnings.find(({ code }) => code === 'FLYBALL_W_SUBJECTS_OVERFLOW')?.message).toContain(
    'limiter.subjects.max',
  );
  expect((await api.take('ip:3')).allowed).toBe(true);
  const keys = await bench.admin.keys('flyball:{open}:b:*');
  expect(keys).toHaveLength(21);
});

test('I5: what was taken from the shared bucket is not given back to one of its own that came since', async () => {
  const perSubject = { subject: 'ip:{ip}', rate: 0.001, capacity: 3 };
  // So slow that the total has not refilled by itself when the refund comes.
  await adopted('since', {
    rate: 0.01,
    perSubject,
    subjects: { max: 1, overflow: 'shared' },
  });
  const api = limiter('since');
  expect((await api.take('ip:1')).allowed).toBe(true);
  const crowded = await api.take('ip:2');
  expect(crowded.allowed).toBe(true);
  const keys = limiterKeys({ name: 'since' });
  expect(await bench.admin.exists(keys.subjectBucket('ip:2'))).toBe(0);
  // Room came for it, and it has used its own.
  await bench.admin.copy(keys.subjectBucket('ip:1'), keys.subjectBucket('ip:2'));
  const [own, total] = await bench.admin.mget(keys.subjectBucket('ip:2'), keys.bucket);
  expect(await crowded.refund()).toEqual({ refunded: true });
  expect(await bench.admin.get(keys.subjectBucket('ip:2'))).toBe(own);
  expect(Number(await bench.admin.get(keys.bucket))).toBeLessThan(Number(total));
});
