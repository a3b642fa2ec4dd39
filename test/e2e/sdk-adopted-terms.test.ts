/** What the adopted policy says beside the numbers reaches running services: `onRedisError` and the subject. */
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readParams } from '../../src/actuate/actuator.js';
import { adopt } from '../../src/actuate/adopt.js';
import { flyball } from '../../src/enforce/middleware/express.js';
import { createLimiter, type LimiterOptions, type LimiterWarning } from '../../src/index.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';

const address = { name: 'api' };
let server: TestRedis;
let admin: Redis;
const closing: (() => unknown)[] = [];
const warnings: LimiterWarning[] = [];

beforeEach(async () => {
  server = await startRedis();
  admin = server.client({ maxRetriesPerRequest: null });
  warnings.length = 0;
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await server.stop();
});

function limiter(options: Partial<LimiterOptions> = {}) {
  const made = createLimiter({
    ...address,
    url: server.url,
    deadlineMs: 2_000,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  closing.push(() => made.close());
  return made;
}

/** As `flyball run` or a person's `apply` adopts it. */
async function adopted(more: Omit<PolicyInput, 'limiter'>, subject?: string): Promise<void> {
  const policy = policySchema.parse({
    limiter: {
      ...address,
      rate: 0.001,
      capacity: 100,
      ...(subject ? { perSubject: { subject, rate: 0.001, capacity: 1 } } : {}),
    },
    ...more,
  });
  const outcome = await adopt(
    admin,
    { file: 'api.ts', policy, hash: policyHash(policy), json: policyJson(policy) },
    { actor: { kind: 'autopilot', name: 'd1' }, leaseMs: 60_000, nowMs: Date.now() },
  );
  expect(outcome.status).toMatch(/created|changed/);
}

test('onRedisError: a take’s own > the adopted policy’s > createLimiter’s > local; followed without a restart', async () => {
  await adopted({ onRedisError: 'closed' });
  const api = limiter({ onRedisError: 'open', deadlineMs: 300 });
  await until('Redis decides', async () => (await api.peek()).source === 'redis');
  const away = async (choice?: 'open') =>
    (await api.take(null, choice ? { onRedisError: choice } : {})).source;

  server.pause();
  await until('the policy’s choice is seen', async () => (await away()) === 'closed');
  expect(await away('open')).toBe('open');
  server.resume();
  await until('Redis decides again', async () => (await api.peek()).source === 'redis');

  // A policy that says nothing leaves it to the service; its subject shows that it was read.
  await adopted({}, 'user:{userId}');
  await until('the policy is read', () => api.attributes.length > 0);
  await server.kill();
  await until('the loss is seen', () => !api.stats().redisUp);
  expect(await away()).toBe('open');
});

test('middleware fills the adopted policy’s template from the first request on, and follows a change', async () => {
  await adopted({}, 'user:{userId}');
  const api = limiter();
  const app = express();
  app.use(
    flyball(api, {
      attributes: (req) => ({ userId: req.get('x-user'), tenant: req.get('x-tenant') }),
    }),
  );
  app.get('/', (_req, res) => void res.send('hello'));
  const http = app.listen(0, '127.0.0.1');
  await new Promise((ok) => http.once('listening', ok));
  closing.push(() => {
    http.closeAllConnections();
    return new Promise((ok) => http.close(ok));
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const get = async (user: string, tenant: string) =>
    (await fetch(url, { headers: { 'x-user': user, 'x-tenant': tenant } })).status;

  expect(await get('ada', 'acme')).toBe(200);
  expect(await get('ada', 'other')).toBe(429);
  const { subjectBucket } = limiterKeys(address);
  expect(await admin.exists(subjectBucket('user:ada'))).toBe(1);

  await adopted({}, 'tenant:{tenant}');
  // No request is needed to learn of it.
  await until('the new template is used', () => api.attributes[0] === 'tenant');
  expect(await get('ada', 'new')).toBe(200);
  expect(await get('bob', 'new')).toBe(429);
  expect(await admin.exists(subjectBucket('tenant:new'))).toBe(1);
  expect(warnings).toEqual([]);

  // The service knows nothing of `plan`: addresses are the subjects, and it says so once.
  await adopted({}, 'plan:{plan}');
  await until('the next template is used', () => api.attributes[0] === 'plan');
  expect(await get('ada', 'x')).toBe(200);
  expect(await get('bob', 'y')).toBe(429);
  expect(await admin.exists(subjectBucket('ip:127.0.0.1'))).toBe(1);
  expect(warnings.map(({ code }) => code)).toEqual(['FLYBALL_W_MISSING_ATTRIBUTE']);
  expect(warnings[0]!.message).toContain('plan:{plan}');
});

test('a template of the code serves until a policy has one, and a broken one leaves the last', async () => {
  await adopted({});
  const api = limiter({ perSubject: { subject: 'user:{userId}', rate: 1, capacity: 1 } });
  await api.ready();
  expect(api.subjectFor({ userId: 'ada', tenant: 'acme' }, '::1')).toBe('user:ada');
  await setParams(admin, address, { subject: '{tenant}' });
  await until('the policy’s is used', () => api.attributes[0] === 'tenant');
  await setParams(admin, address, { subject: 'no attribute' });
  await until('it is told', () => warnings.length > 0);
  expect(warnings[0]!.code).toBe('FLYBALL_W_SUBJECT_TEMPLATE');
  expect(api.subjectFor({ userId: 'ada', tenant: 'acme' }, '::1')).toBe('acme');
});

test('params without the two fields, written before there were any, are read and changed', async () => {
  await adopted({});
  await admin.hdel(limiterKeys(address).params, 'onRedisError', 'subject');
  expect((await readParams(admin, address)).params).toMatchObject({
    onRedisError: '',
    subject: '',
  });
  const api = limiter({ onRedisError: 'closed' });
  expect((await api.take()).source).toBe('redis');
  await setParams(admin, address, { rate: 0.0005 });
  const hash = await admin.hgetall(limiterKeys(address).params);
  expect(hash).toMatchObject({ onRedisError: '', subject: '', rate: '0.0005' });
  await expect(setParams(admin, address, { onRedisError: 'fail' as never })).rejects.toThrow(
    'onRedisError is fail',
  );
});
