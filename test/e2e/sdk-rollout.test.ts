/** A rollout in running services: who is enforced, who is in shadow, and that neither touches the other's buckets. */
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { readEntries, verifyAudit } from '../../src/actuate/audit.js';
import { rolloutPart } from '../../src/enforce/rollout.js';
import { shadowKeys } from '../../src/enforce/rollout-shadow.js';
import type { TakeCall } from '../../src/redis/calls.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { takeCall } from '../../src/redis/scripts.js';
import { subjectTakeCall } from '../../src/redis/subject-call.js';
import { cli, seedLimiter } from '../support/cli-run.js';
import type { TestRedis } from '../support/redis-server.js';
import { type NamedBench, namedBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let admin: Redis;
let limiter: NamedBench['limiter'];

namedBench(address.name, (bench) => {
  ({ server, admin, limiter } = bench);
});

/** Almost no rate: buckets hold what they are given. */
const STILL = { mode: 'recommend', rate: 0.001, capacity: 3, inFlightMax: 0 } as const;
const users = Array.from({ length: 400 }, (_, i) => `user:${i}`);
const atMost = (percent: number) =>
  users.filter((user) => rolloutPart('checkout', user) < percent * 100);
const rollout = (percent: number, more: object = {}) => JSON.stringify({ percent, ...more });
const run = (args: string) => cli(args.split(' '), { env: { FLYBALL_REDIS_URL: server.url } });

test('whom it has reached is denied, the others are admitted with the answer they would have had', async () => {
  await setParams(admin, address, {
    ...STILL,
    subjectRate: 0.001,
    subjectCapacity: 1,
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const api = limiter();
  await api.ready();
  expect(await api.take('user:42')).toMatchObject({ allowed: true, source: 'redis' });
  expect(await api.take('user:42')).toMatchObject({ allowed: false, reason: 'subject' });
  expect(await api.take('user:7')).toMatchObject({ allowed: true, source: 'shadow' });
  const second = await api.take('user:7');
  expect(second).toMatchObject({
    allowed: true,
    wouldAllow: false,
    reason: 'subject',
    limit: 'subject',
    source: 'shadow',
  });
  expect(second.retryAfterMs).toBeGreaterThan(0);
  expect(await api.peek('user:7')).toMatchObject({ source: 'shadow', remaining: 0 });
  expect(await api.peek('user:42')).toMatchObject({ source: 'redis', remaining: 0 });
  expect(api.stats()).toMatchObject({
    admitted: 3,
    denied: { subject: 1 },
    wouldDeny: { subject: 1 },
    shadowAllowed: 1,
    shadowDenied: 1,
  });
});

test('takes of one turn, some reached and some not, each get their own answer', async () => {
  await setParams(admin, address, { ...STILL, capacity: 1000, rollout: rollout(20) });
  const api = limiter();
  await api.ready();
  const { calls } = api.stats();
  const decisions = await Promise.all(users.map((user) => api.take(user)));
  const enforced = users.filter((_, i) => decisions[i]!.source === 'redis');
  expect(enforced).toEqual(atMost(20));
  expect(decisions.filter(({ source }) => source === 'shadow')).toHaveLength(
    users.length - enforced.length,
  );
  // Two sets of buckets are two calls; halves of a large batch go apart.
  expect(api.stats().calls - calls).toBeLessThanOrEqual(4);
  const taken = async (key: string) => 1000 - (await tokens(key));
  expect(await taken(keys.bucket)).toBeCloseTo(enforced.length, 0);
  expect(await taken(keys.shadowBucket)).toBeCloseTo(users.length - enforced.length, 0);
});

/** Tokens of a total's bucket, by its mark: the clock has paid nearly nothing since the cold start. */
async function tokens(key: string): Promise<number> {
  const [accrued, mark] = [Number(await admin.hget(keys.params, 'accrued')), await admin.get(key)];
  return mark === null ? 1000 : Math.min(1000, accrued - Number(mark));
}

describe('C99: what is in shadow leaks into nothing that is enforced', () => {
  test('shadow takes by the thousand leave the enforced buckets untouched, and the other way round', async () => {
    await setParams(admin, address, {
      ...STILL,
      subjectRate: 0.001,
      subjectCapacity: 2,
      rollout: rollout(0, { subjects: ['user:42'] }),
    });
    const api = limiter();
    await api.ready();
    for (let i = 0; i < 10; i++) {
      expect((await api.take(users[i]!)).allowed).toBe(true);
      expect((await api.take(null)).allowed).toBe(true);
    }
    const enforced = (await admin.keys('flyball:{checkout}:b*')).sort();
    expect(enforced).toEqual([]);
    // The shadow's total is long empty; who is enforced has all of the three.
    expect((await api.take('user:42')).allowed).toBe(true);
    expect(await admin.exists(keys.bucket, keys.subjectBucket('user:42'))).toBe(2);
    expect(await admin.exists(keys.shadowSubjectBucket('user:42'))).toBe(0);
  });

  test.each([undefined, 'sliding-log', 'sliding-counter', 'fixed-window', 'leaky-bucket'] as const)(
    'the calls for them name no key that is enforced: %s',
    (algorithm) => {
      const terms = algorithm && { algorithm, windowMs: 1000, cells: 6 };
      const apart = shadowKeys({ keys, find: async () => keys }).keys!;
      const takes = [null, 'user:1'].map((subject) => ({ subject, cost: 1, priority: 'default' }));
      for (const build of [takeCall, subjectTakeCall]) {
        const call = { keys: apart, takes, chargeByUs: 'any', fallback: GIVEN, terms } as const;
        const names = build({ ...call, shadow: false } as TakeCall).keys;
        const known = [keys.params, keys.overrides, keys.standing('user:1')];
        const written = names.filter((name) => !known.includes(name));
        expect(written.length).toBeGreaterThan(2);
        for (const name of written) expect(name).toMatch(/^flyball:\{checkout\}:s:/);
        // The mode that it is meant for enforces.
        expect(['0', '4']).toContain(build({ ...call, shadow: false } as TakeCall).args[2]);
      }
    },
  );

  test('from shadow to recommend: one write, and buckets that nothing has drained', async () => {
    await setParams(admin, address, { ...STILL, mode: 'shadow' });
    const api = limiter();
    await api.ready();
    for (let i = 0; i < 8; i++) expect((await api.take('user:1')).allowed).toBe(true);
    expect(api.stats().wouldDeny).toEqual({ rate: 5 });
    await setParams(admin, address, { mode: 'recommend' });
    const after = [];
    for (let i = 0; i < 5; i++) after.push((await api.take('user:1')).allowed);
    expect(after).toEqual([true, true, true, false, false]);
  });

  test('each next step begins with buckets of its own as well: raised, whom it now reaches starts full', async () => {
    const own = { capacity: 500, subjectRate: 0.001, subjectCapacity: 1 };
    await setParams(admin, address, { ...STILL, ...own, rollout: rollout(0) });
    const api = limiter();
    await api.ready();
    const [user] = atMost(10);
    await api.take(user);
    expect((await api.take(user)).wouldAllow).toBe(false);
    await setParams(admin, address, { rollout: rollout(10) });
    await until('the next step is seen', async () => (await api.peek(user)).source === 'redis');
    expect((await api.take(user)).allowed).toBe(true);
    expect((await api.take(user)).allowed).toBe(false);
  });

  test('--dry-run of every verb writes nothing at all', async () => {
    await seedLimiter(admin, address, { mode: 'recommend', rollout: rollout(1) });
    await setParams(admin, address, { rate: 30 });
    const before = await everything();
    for (const verb of [
      'rollout checkout --percent 10',
      'rollout checkout --done',
      'pin checkout --rate 1',
      'freeze checkout',
      'trip checkout',
      'rollback checkout 1',
    ]) {
      const { code, stdout } = await run(`${verb} --dry-run`);
      expect([verb, code]).toEqual([verb, 0]);
      expect(stdout).toContain('→');
    }
    expect(await everything()).toEqual(before);
  });
});

const GIVEN = { rate: 1, capacity: 1, inFlightMax: 0, subjectRate: 1, subjectCapacity: 1 };

async function everything(): Promise<Record<string, string>> {
  const names = (await admin.keys('*')).sort();
  const dumps = await Promise.all(names.map((name) => admin.dumpBuffer(name)));
  return Object.fromEntries(names.map((name, i) => [name, dumps[i]!.toString('hex')]));
}

test.each(['sliding-log', 'sliding-counter', 'fixed-window', 'leaky-bucket'] as const)(
  '%s: the others are in shadow there too, and wait for nothing',
  async (algorithm) => {
    // A day: of a minute a fixed window would sometimes be over between two takes.
    const windowMs = algorithm === 'leaky-bucket' ? 0 : 86_400_000;
    await setParams(admin, address, {
      mode: 'recommend',
      rate: algorithm === 'leaky-bucket' ? 0.01 : 1 / 86_400,
      capacity: 1,
      algorithm,
      windowMs,
      cells: 6,
      rollout: rollout(0, { subjects: ['user:42'] }),
    });
    const api = limiter();
    await api.ready();
    for (let i = 0; i < 4; i++) {
      expect(await api.take('user:7')).toMatchObject({ allowed: true, delayMs: 0 });
    }
    expect(api.stats().shadowDenied).toBeGreaterThan(0);
    expect((await api.take('user:42')).allowed).toBe(true);
    expect((await api.take('user:42')).allowed).toBe(false);
  },
);

test('an open breaker denies whom it has reached; the others are told that it would', async () => {
  await setParams(admin, address, {
    ...STILL,
    state: 'open',
    openUntil: -1,
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const api = limiter();
  await api.ready();
  expect(await api.take('user:42')).toMatchObject({ allowed: false, reason: 'breaker_open' });
  expect(await api.take('user:7')).toMatchObject({ allowed: true, reason: 'breaker_open' });
});

test('a process that has just started denies nobody whom the rollout has not reached', async () => {
  await setParams(admin, address, { ...STILL, capacity: 1, rollout: rollout(0) });
  await (await limiter().take('user:1')).done();
  for (let i = 0; i < 3; i++) {
    // Its buckets for all are empty, and its very first takes do not wait for the params to be read.
    await admin.set(keys.bucket, '1e9', 'PX', 60_000);
    const fresh = limiter();
    const decisions = await Promise.all([fresh.take('user:1'), fresh.take(null)]);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true]);
  }
});

test('Redis away: the others are admitted whatever onRedisError says, and that is known of them', async () => {
  await setParams(admin, address, {
    ...STILL,
    onRedisError: 'closed',
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const api = limiter({ deadlineMs: 100 });
  await api.ready();
  await until('Redis decides', async () => (await api.peek('user:42')).source === 'redis');
  server.pause();
  try {
    expect(await api.take('user:42')).toMatchObject({ allowed: false, source: 'closed' });
    expect(await api.take('user:7')).toMatchObject({ allowed: true, source: 'shadow' });
    await until('the outage is known', async () => {
      await api.take('user:7');
      return !api.stats().redisUp;
    });
    expect(await api.take('user:7')).toMatchObject({ allowed: true, wouldAllow: true });
  } finally {
    server.resume();
  }
});

test('flyball rollout: one revision and one entry a step, followed by services that run', async () => {
  await setParams(admin, address, { ...STILL, capacity: 1000 });
  await admin.hset('flyball:limiters', 'checkout', '');
  const api = limiter();
  await api.ready();
  const apart = async () => {
    const sources = await Promise.all(users.map(async (user) => (await api.peek(user)).source));
    return users.filter((_, i) => sources[i] === 'redis');
  };
  expect(await apart()).toEqual(users);
  for (const [step, reached] of [
    ['--percent 0 --subject user:42', ['user:42']],
    ['--percent 5', users.filter((u) => u === 'user:42' || atMost(5).includes(u))],
    ['--percent 50', users.filter((u) => u === 'user:42' || atMost(50).includes(u))],
    ['--done', users],
  ] as const) {
    const { code, stdout } = await run(`rollout checkout ${step} --yes --reason next --json`);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ verb: 'rollout', status: 'done' });
    await until(`${step} is followed`, async () => (await apart()).length === reached.length);
    expect(await apart()).toEqual(reached);
  }
  const { entries } = await readEntries(admin, address, { limit: 10 });
  expect(entries.slice(0, 4).map(({ body }) => body.reason)).toEqual(Array(4).fill('rollout'));
  expect(entries[0]!.body.sentence).toContain('50 % of the subjects, and 1 by name → all');
  expect(entries[0]!.body.sentence).toContain('Reason: next');
  expect((await verifyAudit(admin, address)).verdict).toBe('consistent');
});
