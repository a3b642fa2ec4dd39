import { createServer, type ServerResponse } from 'node:http';
import fastify, { type FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { flyball as fastifyFlyball } from '../../src/enforce/middleware/fastify.js';
import { flyball } from '../../src/enforce/middleware/http.js';
import { createLimiter, createRoutes, type LimiterOptions } from '../../src/index.js';
import { useRig } from '../support/middleware-rig.js';
import { setParams, until } from '../support/sdk-params.js';

const rig = useRig('alone');
const PER_USER = { subject: 'user:{userId}', rate: 0.01, capacity: 2 };

/** Numbers in code alone: no policy, no params in Redis. */
function limiter(options: Partial<LimiterOptions> = {}) {
  const made = createLimiter({
    name: `alone-${Math.random().toString(36).slice(2)}`,
    url: rig.redis.url,
    deadlineMs: 5_000,
    onWarning: () => {},
    ...options,
  });
  rig.onEnd(() => made.close());
  return made;
}

const byUser = { attributes: (req: { headers: NodeJS.Dict<string | string[]> }) => userOf(req) };
const userOf = ({ headers }: { headers: NodeJS.Dict<string | string[]> }) => ({
  userId: String(headers['x-user']),
});

async function statuses(url: string, count: number, init?: RequestInit): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await fetch(url, init)).status);
  return all;
}

test('numbers for subjects alone: the answers name the subject’s limit and no total, a denial when to come again', async () => {
  const guard = flyball(limiter({ perSubject: PER_USER }), byUser);
  const url = await rig.listen(createServer(guard.wrap((_req, res) => res.end('ok'))));
  const ada = { headers: { 'x-user': 'ada' } };
  const first = await fetch(url, ada);
  expect(first.headers.get('ratelimit-policy')).toMatch(/^"alone-\w+\.subject";q=2;w=200;pk=:/);
  expect(first.headers.get('ratelimit')).toMatch(/\.subject";r=1;t=\d+$/);
  await fetch(url, ada);
  const denied = await fetch(url, ada);
  expect(denied.status).toBe(429);
  expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(90);
  expect(denied.headers.get('ratelimit')).toMatch(/\.subject";r=0;t=\d+$/);
  expect((await fetch(url, { headers: { 'x-user': 'bob' } })).status).toBe(200);
});

test('without Redis such a limiter holds its subjects by itself, since their numbers are known', async () => {
  const api = limiter({ perSubject: PER_USER, url: 'redis://127.0.0.1:1', deadlineMs: 20 });
  const taken = [];
  for (let i = 0; i < 4; i++) taken.push(await api.take('user:ada'));
  expect(taken.map(({ allowed }) => allowed)).toEqual([true, true, false, false]);
  expect(taken[2]).toMatchObject({ source: 'local', limit: 'subject' });
  expect((await api.take('user:bob')).allowed).toBe(true);
  // Of the others nothing is known: the total binds nobody.
  for (let i = 0; i < 50; i++) expect((await api.take(null)).allowed).toBe(true);
});

test('every denial says when to come again, also where no numbers are known', async () => {
  const closed = limiter({ onRedisError: 'closed', url: 'redis://127.0.0.1:1', deadlineMs: 20 });
  const url = await rig.listen(createServer(flyball(closed).wrap((_req, res) => res.end('ok'))));
  const answer = await fetch(url);
  expect(answer.status).toBe(503);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(answer.headers.get('ratelimit')).toBeNull();
  const body = (await answer.json()) as { retryAfterSeconds: number };
  expect(body.retryAfterSeconds).toBe(Number(answer.headers.get('retry-after')));
});

test('attributes may be a promise: it is awaited, and what it rejects with is the request’s error', async () => {
  const api = limiter({ perSubject: PER_USER });
  const attributes = async (req: { headers: NodeJS.Dict<string | string[]> }) => {
    await new Promise((ok) => setImmediate(ok));
    if (req.headers['x-user'] === 'nobody') throw new Error('no user');
    return userOf(req);
  };
  const onError = (_error: unknown, _req: unknown, res: ServerResponse) => res.writeHead(418).end();
  const guard = flyball(api, { attributes, onError });
  const url = await rig.listen(createServer(guard.wrap((_req, res) => res.end('ok'))));
  expect(await statuses(url, 3, { headers: { 'x-user': 'ada' } })).toEqual([200, 200, 429]);
  expect(await statuses(url, 1, { headers: { 'x-user': 'bob' } })).toEqual([200]);
  expect(await statuses(url, 1, { headers: { 'x-user': 'nobody' } })).toEqual([418]);
  expect(api.stats().missingAttributes).toBe(0);
});

test('Fastify, hook preHandler: a sign-in counts failures by the name in its body', async () => {
  const api = limiter({ perSubject: PER_USER, count: 'failures' });
  const app = fastify();
  rig.onEnd(() => app.close());
  await app.register(fastifyFlyball, {
    limiter: api,
    hook: 'preHandler',
    attributes: (req: FastifyRequest) => ({ userId: (req.body as { user: string }).user }),
    isFailure: (status: number) => status === 401,
  });
  app.post('/login', async (req, reply) =>
    (req.body as { right: boolean }).right ? 'welcome' : reply.code(401).send('wrong'),
  );
  const signIn = async (user: string, right: boolean) =>
    (await app.inject({ method: 'POST', url: '/login', payload: { user, right } })).statusCode;
  for (let i = 0; i < 4; i++) {
    expect(await signIn('ada', true)).toBe(200);
    await until(`refund ${i + 1}`, () => api.stats().refunded === i + 1);
  }
  expect([await signIn('ada', false), await signIn('ada', false)]).toEqual([401, 401]);
  expect([await signIn('ada', false), await signIn('bob', false)]).toEqual([429, 401]);
  await expect(
    fastify().register(fastifyFlyball, { limiter: api, hook: 'onSend' } as never),
  ).rejects.toThrow(/hook is "onSend".+preHandler/);
});

test('FLYBALL_PREFIX names the keys for the SDK as for daemon and CLI', async () => {
  process.env.FLYBALL_PREFIX = 'staging';
  try {
    const { admin } = rig;
    const address = { name: 'prefixed', prefix: 'staging' };
    await setParams(admin, address, { rate: 0.01, capacity: 1 });
    const api = limiter({ name: 'prefixed' });
    expect([(await api.take(null)).allowed, (await api.take(null)).allowed]).toEqual([true, false]);
    expect(await admin.exists('staging:{prefixed}:b')).toBe(1);
    const given = limiter({ name: 'prefixed', prefix: 'other' });
    expect((await given.take(null)).source).toBe('unmanaged');
    process.env.FLYBALL_PREFIX = 'a b';
    expect(() => createRoutes({ url: rig.redis.url })).toThrow(/FLYBALL_PREFIX is "a b"/);
  } finally {
    delete process.env.FLYBALL_PREFIX;
  }
});
