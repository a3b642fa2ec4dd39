/** A canary in running services: whom its limiter decides for, from take to done, and that all fall back with every daemon dead. Stage: tests. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { compileCanary } from '../../src/enforce/canary-reach.js';
import { partsDeciding, partsOf } from '../../src/enforce/limiter-parts.js';
import { takeAll } from '../../src/index.js';
import { canaryText } from '../../src/redis/canary.js';
import { limiterKeys } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import type { TestRedis } from '../support/redis-server.js';
import { type NamedBench, namedBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const address = { name: 'checkout' };
const other = { name: 'checkout.canary' };
const VERSION = 'ab'.repeat(32);
let server: TestRedis;
let admin: Redis;
let limiter: NamedBench['limiter'];

namedBench(address.name, (bench) => {
  ({ server, admin, limiter } = bench);
});

/** Almost no rate: buckets hold what they are given. */
const STILL = { mode: 'recommend', rate: 0.001, inFlightMax: 0 } as const;
const users = Array.from({ length: 300 }, (_, i) => `user:${i}`);

async function redisMs(): Promise<number> {
  const [s, us] = await admin.time();
  return Number(s) * 1000 + Math.floor(Number(us) / 1000);
}

function text(percent: number, untilMs: number, more: { ended?: 'failed' } = {}): string {
  const times = { since: 0, forMs: 600_000, until: untilMs, epoch: 1 };
  return canaryText({ policy: VERSION, limiter: other.name, percent, ...times, ...more });
}

async function begins(percent: number, lastsMs = 600_000): Promise<string> {
  const canary = text(percent, (await redisMs()) + lastsMs);
  await setParams(admin, other, { ...STILL, capacity: 7_000 });
  await setParams(admin, address, { ...STILL, capacity: 1_000, canary });
  return canary;
}

/** What is left tells who decided. */
const byCanary = ({ remaining }: { remaining: number }) => remaining > 1_000;

test('its part of the subjects is decided for by its limiter, the others by the limiter itself; each subject stays', async () => {
  const canary = compileCanary(await begins(20))!;
  const api = limiter();
  await api.ready();
  const first = await Promise.all(users.map((user) => api.take(user)));
  expect(first.map(byCanary)).toEqual(users.map((user) => canary.reaches(user)));
  const share = first.filter(byCanary).length / users.length;
  expect(share).toBeGreaterThan(0.1);
  expect(share).toBeLessThan(0.3);
  const again = await api.takeMany(users.map((subject) => ({ subject })));
  expect(again.map(byCanary)).toEqual(first.map(byCanary));
  expect(api.stats().admitted).toBe(2 * users.length);
  // Peek, wait, refund, by the decision and by its id from another process.
  const user = users.find((one) => canary.reaches(one))!;
  expect(byCanary(await api.peek(user))).toBe(true);
  expect(byCanary(await api.wait(user))).toBe(true);
  const decision = await api.take(user);
  const before = (await api.peek(user)).remaining;
  expect(await limiter().refund(decision.id!)).toEqual({ refunded: true });
  expect((await api.peek(user)).remaining).toBe(before + 1);
});

test('without a subject it is a share of the requests; outcomes are counted where it was decided', async () => {
  await begins(50);
  const api = limiter();
  await api.ready();
  let tried = 0;
  for (let i = 0; i < 200; i++) {
    await api.run(undefined, (decision) => {
      if (byCanary(decision)) tried += 1;
    });
  }
  expect(tried).toBeGreaterThan(60);
  expect(tried).toBeLessThan(140);
  await api.close();
  const answers = async (name: string) => {
    const seconds = await admin.keys(limiterKeys({ name }).telemetry(0).replace(/0$/, '*'));
    let ok = 0;
    for (const key of seconds) ok += Number((await admin.hget(key, 'ok')) ?? 0);
    return ok;
  };
  expect(await answers(other.name)).toBe(tried);
  expect(await answers(address.name)).toBe(200 - tried);
});

test('it begins and ends in a running service within seconds', async () => {
  await setParams(admin, address, { ...STILL, capacity: 1_000 });
  const api = limiter();
  await api.ready();
  expect(byCanary(await api.take('user:1'))).toBe(false);
  const canary = await begins(50);
  const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
  await until('the canary decides', async () => byCanary(await api.take(user)));
  const ended = JSON.stringify({ ...JSON.parse(canary), ended: 'failed' });
  await setParams(admin, address, { canary: ended });
  await until('the limiter decides', async () => !byCanary(await api.take(user)));
});

test('with every daemon dead and its end over, all fall back to the limiter, though the params still name it', async () => {
  const canary = await begins(50, 1_500);
  const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
  const api = limiter();
  await api.ready();
  await until('its end', async () => !byCanary(await api.take(user)));
  expect(await admin.hget(limiterKeys(address).params, 'canary')).toBe(canary);
  // A service that starts later asks the limiter itself.
  const late = limiter();
  await late.ready();
  expect(byCanary(await late.take(user))).toBe(false);
});

test.each([
  ['open', { state: 'open', openUntil: -1, generation: 1 }, { state: 'closed', openUntil: 0 }],
  [
    'pinned',
    { rate: 0, pinnedUntil: -1, heldBy: 'kim' },
    { rate: 0.001, pinnedUntil: 0, heldBy: '' },
  ],
  ['frozen', { frozenUntil: -1, heldBy: 'kim' }, { frozenUntil: 0, heldBy: '' }],
  ['in shadow', { mode: 'shadow' }, { mode: 'recommend' }],
] satisfies [string, ParamChange, ParamChange][])(
  'while its limiter is %s, that binds the subjects of its canary too, also where nobody else asks',
  async (_, said, ended) => {
    const canary = await begins(50);
    const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
    const api = limiter();
    await api.ready();
    expect(byCanary(await api.take(user))).toBe(true);
    await setParams(admin, address, said);
    await until('the limiter decides', async () => !byCanary(await api.take(user)));
    const { allowed, state } = await api.take(user);
    expect({ allowed, state }).toEqual({
      allowed: !('state' in said || 'rate' in said),
      state: 'state' in said ? 'open' : 'closed',
    });
    await setParams(admin, address, ended);
    await until('the canary decides', async () => byCanary(await api.take(user)));
  },
);

test('a set that takes while its limiter closes makes no limiter of the canary, which nobody would close', async () => {
  await begins(50);
  const api = limiter();
  await api.ready();
  const parts = partsOf('limiter', api);
  const closing = api.close();
  for (const user of users) expect(partsDeciding(parts, user)).toBe(parts);
  await closing;
  expect(parts.closed).toBe(true);
});

test('a hold that lapses by itself ends for its canary as well', async () => {
  const canary = await begins(50);
  const user = users.find((one) => compileCanary(canary)!.reaches(one))!;
  await setParams(admin, address, { frozenUntil: (await redisMs()) + 1_500, heldBy: 'kim' });
  const api = limiter();
  await api.ready();
  await until('the canary decides', async () => byCanary(await api.take(user)));
  expect(await redisMs()).toBeGreaterThanOrEqual(
    Number(await admin.hget(limiterKeys(address).params, 'frozenUntil')),
  );
});

test('takeAll: a member that has a canary is decided for by it, in the same call; all or none', async () => {
  const group = 'shop';
  const total = { name: 'total', group };
  const tried = { name: 'checkout.canary', group };
  const named = text(50, (await redisMs()) + 600_000);
  await setParams(admin, total, { ...STILL, capacity: 900 });
  await setParams(admin, { ...address, group }, { ...STILL, capacity: 1_000, canary: named });
  await setParams(admin, tried, { ...STILL, capacity: 5_000 });
  const redis = server.client();
  const members = ['total', 'checkout'].map((name) => limiter({ name, group, redis }));
  const both = takeAll(members);
  await Promise.all(members.map((member) => member.ready()));
  const canary = compileCanary(named)!;
  const take = (subject: string, cost = 1) => both.take({ checkout: { subject, cost } });

  const first = await Promise.all(users.slice(0, 60).map((user) => take(user)));
  expect(first.map(({ decisions }) => byCanary(decisions.checkout!))).toEqual(
    users.slice(0, 60).map((user) => canary.reaches(user)),
  );
  const tookThere = first.filter(({ decisions }) => byCanary(decisions.checkout!)).length;
  const left = async (name: string) =>
    Math.round((await members.find((m) => m.name === name)!.peek()).remaining);
  expect(await left('total')).toBe(840);
  expect(members[1]!.stats().admitted).toBe(60);

  // What it denies, nobody is charged for; what all took is given back.
  const user = users.find((one) => canary.reaches(one))!;
  const denied = await take(user, 4_990);
  expect(denied).toMatchObject({ allowed: false, limiter: 'checkout' });
  expect(await left('total')).toBe(840);
  expect(Object.values(members[1]!.stats().denied)).toEqual([1]);
  const given = await take(user);
  expect((await members[1]!.peek(user)).remaining).toBe(5_000 - tookThere - 1);
  expect(await given.refund()).toEqual({ refunded: true });
  expect((await members[1]!.peek(user)).remaining).toBe(5_000 - tookThere);
  expect(await left('total')).toBe(840);

  // Its end: the same set asks the limiter itself.
  await setParams(admin, { ...address, group }, { canary: '' });
  await until('the limiter decides', async () => !byCanary((await take(user)).decisions.checkout!));
});
