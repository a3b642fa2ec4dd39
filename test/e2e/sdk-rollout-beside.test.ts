/** A rollout beside what else a limiter does: the in-flight cap, refunds, a block of one subject, takes of several limiters. */
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { flyball } from '../../src/enforce/middleware/express.js';
import { takeAll } from '../../src/index.js';
import { fleetKeys, limiterKeys } from '../../src/redis/keys.js';
import { cli, seedLimiter } from '../support/cli-run.js';
import type { TestRedis } from '../support/redis-server.js';
import { type NamedBench, namedBench } from '../support/sdk-limiters.js';
import { setParams, until } from '../support/sdk-params.js';

const address = { name: 'checkout' };
const keys = limiterKeys(address);
let server: TestRedis;
let admin: Redis;
let limiter: NamedBench['limiter'];
let closing: NamedBench['closing'];

namedBench(address.name, (bench) => {
  ({ server, admin, limiter, closing } = bench);
});

/** Almost no rate: buckets hold what they are given. */
const STILL = { mode: 'recommend', rate: 0.001, capacity: 3, inFlightMax: 0 } as const;
const rollout = (percent: number, more: object = {}) => JSON.stringify({ percent, ...more });
const run = (args: string) => cli(args.split(' '), { env: { FLYBALL_REDIS_URL: server.url } });

test('takeAll: a limiter whose rollout has not reached the take denies nobody, and holds nothing of its own', async () => {
  const group = 'shop';
  const [total, user] = ['total', 'user'].map((name) => limiterKeys({ name, group }));
  await setParams(admin, { name: 'total', group }, { ...STILL, capacity: 5 });
  const named = rollout(0, { subjects: ['user:42'] });
  await setParams(
    admin,
    { name: 'user', group },
    {
      ...STILL,
      capacity: 9,
      inFlightMax: 1,
      subjectRate: 0.001,
      subjectCapacity: 1,
      rollout: named,
    },
  );
  const redis = server.client();
  const members = ['total', 'user'].map((name) =>
    limiter({ name, group, redis, completions: true }),
  );
  const both = takeAll(members);
  await both.ready();
  await until('the share is known', () => members[1]!.stats().share === 1);
  const take = (subject: string) => both.take({ user: { subject } });

  expect(await take('user:7')).toMatchObject({ allowed: true, wouldAllow: true });
  const second = await take('user:7');
  expect(second).toMatchObject({ allowed: true, wouldAllow: false, limiter: 'user' });
  expect(second.decisions.user).toMatchObject({ source: 'shadow', reason: 'subject' });
  expect(members[1]!.stats()).toMatchObject({ inFlight: 0, shadowAllowed: 1, shadowDenied: 1 });
  expect(await admin.exists(user!.bucket, user!.subjectBucket('user:7'))).toBe(0);

  const mine = await take('user:42');
  expect(mine.allowed).toBe(true);
  expect(mine.decisions.user).toMatchObject({ source: 'redis' });
  expect(members[1]!.stats().inFlight).toBe(1);
  expect(await admin.exists(user!.bucket, user!.subjectBucket('user:42'))).toBe(2);
  // In flight the one place is taken; the others have no need of it.
  expect(await take('user:42')).toMatchObject({ allowed: false, limiter: 'user' });
  expect((await take('user:8')).allowed).toBe(true);
  mine.done();
  expect(await take('user:42')).toMatchObject({ allowed: false, reason: 'subject' });
  // Whom a person has blocked is denied before the rollout has come, and the other limiter is not charged for it.
  const spent = await admin.get(total!.bucket);
  await admin.hset(fleetKeys().limiters, 'user', group);
  expect((await run('subject user user:66 --block --for 1h --yes')).code).toBe(0);
  expect(await take('user:66')).toMatchObject({
    allowed: false,
    limiter: 'user',
    reason: 'blocked',
  });
  expect(await admin.get(total!.bucket)).toBe(spent);
  // Four of five have gone from the other; its denial holds for those in shadow as well.
  expect((await take('user:9')).allowed).toBe(true);
  const last = await take('user:9');
  expect(last).toMatchObject({ allowed: false, limiter: 'total' });
  expect(last.decisions.user).toMatchObject({ allowed: true, source: 'shadow' });
  expect(await admin.exists(total!.bucket)).toBe(1);
});

test('what does not count goes back to the bucket it came from, and so does a refund', async () => {
  await setParams(admin, address, {
    ...STILL,
    capacity: 1,
    terms: '{"count":"failures"}',
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const api = limiter();
  await api.ready();
  const good = await api.take('user:7');
  good.done('ok');
  await until('it has gone back', async () => (await api.peek('user:7')).remaining === 1);
  const again = await api.take('user:7');
  expect(again.wouldAllow).toBe(true);
  expect(await api.refund(again.id!)).toEqual({ refunded: true });
  expect((await api.take('user:7')).wouldAllow).toBe(true);
  expect((await api.take('user:7')).wouldAllow).toBe(false);
  expect(await admin.exists(keys.bucket)).toBe(0);
});

test('a person who blocks one subject is obeyed, whomever the rollout has reached', async () => {
  await seedLimiter(admin, address, { mode: 'recommend', rollout: rollout(0) });
  const api = limiter();
  await api.ready();
  expect((await api.take('user:7')).source).toBe('shadow');
  const { code } = await run('subject checkout user:7 --block --for 1h --reason abuse --yes');
  expect(code).toBe(0);
  await until('it is seen', async () => (await api.take('user:7')).reason === 'blocked');
  expect(await api.take('user:7')).toMatchObject({ allowed: false, source: 'redis' });
  expect(await api.take('user:8')).toMatchObject({ allowed: true, source: 'shadow' });
  expect(await admin.exists(keys.bucket, keys.subjectBucket('user:8'))).toBe(0);
});

test('the in-flight cap binds and counts whom it has reached alone', async () => {
  await setParams(admin, address, {
    ...STILL,
    capacity: 1000,
    inFlightMax: 1,
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const api = limiter({ completions: true });
  await api.ready();
  await until('the share is known', () => api.stats().share === 1);
  const apart = await Promise.all([1, 2, 3].map(() => api.take('user:7')));
  expect(apart.map(({ allowed }) => allowed)).toEqual([true, true, true]);
  expect(api.stats().inFlight).toBe(0);
  const first = await api.take('user:42');
  expect(first.allowed).toBe(true);
  expect(await api.take('user:42')).toMatchObject({ allowed: false, reason: 'in_flight' });
  for (const decision of [...apart, first]) decision.done('ok');
  expect((await api.take('user:42')).allowed).toBe(true);
});

test('C99: an answer in shadow is untouched, one that is enforced tells its limit', async () => {
  await setParams(admin, address, {
    ...STILL,
    subject: 'user:{userId}',
    subjectRate: 0.001,
    subjectCapacity: 1,
    rollout: rollout(0, { subjects: ['user:42'] }),
  });
  const app = express();
  app.disable('x-powered-by');
  const attributes = (req: express.Request) => ({ userId: req.get('x-user') });
  app.use(flyball<express.Request>(limiter(), { attributes, legacyHeaders: true }));
  app.get('/', (_req, res) => void res.send('hello'));
  const http = app.listen(0, '127.0.0.1');
  await new Promise((ok) => http.once('listening', ok));
  closing.push(() => {
    http.closeAllConnections();
    return new Promise((ok) => http.close(ok));
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const get = async (user: string) => {
    const { status, headers } = await fetch(url, { headers: { 'x-user': user } });
    return { status, limits: [...headers.keys()].filter((name) => /ratelimit|retry/.test(name)) };
  };
  for (let i = 0; i < 3; i++) expect(await get('7')).toEqual({ status: 200, limits: [] });
  const mine = await get('42');
  expect(mine.status).toBe(200);
  expect(mine.limits).toContain('ratelimit');
  expect(await get('42')).toMatchObject({ status: 429 });
});
