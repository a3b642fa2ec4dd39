import { type AddressInfo, connect } from 'node:net';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { flyball } from '../../src/enforce/middleware/fastify.js';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type TakeDecision,
} from '../../src/index.js';
import type { ParamChange } from '../../src/redis/params.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';

let server: TestRedis;
let admin: Redis;
let count = 0;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => server.stop());

/** The params come first, so that the first share is asked of them. */
async function limiter(
  params: ParamChange,
  options: Partial<LimiterOptions> = {},
): Promise<Limiter> {
  const name = `fastify-${++count}`;
  await setParams(admin, { name }, params);
  const made = createLimiter({
    name,
    url: server.url,
    deadlineMs: 5_000,
    onWarning: () => {},
    ...options,
  });
  closing.push(() => made.close());
  return made;
}

async function listen(app: FastifyInstance): Promise<string> {
  await app.listen({ port: 0, host: '127.0.0.1' });
  closing.push(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

test('the subject’s own bucket answers 429 with a problem; other subjects pass', async () => {
  const api = await limiter(
    { rate: 100, capacity: 200, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: { subject: 'user:{userId}', rate: 5, capacity: 10 } },
  );
  const app = fastify();
  await app.register(flyball, {
    limiter: api,
    attributes: (req: FastifyRequest) => ({ userId: req.headers['x-user'] as string }),
  });
  app.get('/', async () => 'hello');
  const url = await listen(app);
  const first = await fetch(url, { headers: { 'x-user': 'ada' } });
  expect(first.status).toBe(200);
  expect(first.headers.get('ratelimit')).toBe(`"${api.name}.subject";r=0;t=100`);
  const second = await fetch(url, { headers: { 'x-user': 'ada' } });
  expect(second.status).toBe(429);
  expect(second.headers.get('content-type')).toBe('application/problem+json');
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(99);
  expect(await second.json()).toMatchObject({ status: 429, limit: 'subject' });
  expect((await fetch(url, { headers: { 'x-user': 'bob' } })).status).toBe(200);
});

test('a full in-flight cap answers 503 with r=0; outcomes are counted once', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 1 });
  const app = fastify();
  await app.register(flyball, { limiter: api });
  let finish: ((text: string) => void) | undefined;
  app.get('/slow', () => new Promise((ok) => (finish = ok)));
  app.get('/throw', async (req) => {
    (req as { flyball?: TakeDecision }).flyball!.note({ upstream: 'pay', code: 'SYSTEMERROR' });
    throw new Error('boom');
  });
  const url = await listen(app);
  const slow = fetch(`${url}/slow`);
  await until('it is under way', () => finish !== undefined);
  const denied = await fetch(`${url}/slow`);
  expect(denied.status).toBe(503);
  expect(denied.headers.get('ratelimit')).toMatch(/;r=0;t=1$/);
  finish!('done');
  expect((await slow).status).toBe(200);
  await until('it is counted out', () => api.stats().inFlight === 0);

  expect((await fetch(`${url}/throw`)).status).toBe(500);
  await until('it is counted out', () => api.stats().inFlight === 0);
  const abort = new AbortController();
  const left = fetch(`${url}/slow`, { signal: abort.signal }).catch(() => 'left');
  await until('it is under way', () => api.stats().inFlight === 1);
  abort.abort();
  await left;
  await until('it is counted out', () => api.stats().inFlight === 0);
  await api.close();
  const sums: Record<string, number> = {};
  for (const key of await admin.keys(`flyball:{${api.name}}:t:*`)) {
    for (const [field, value] of Object.entries(await admin.hgetall(key))) {
      sums[field] = (sums[field] ?? 0) + Number(value);
    }
  }
  const counts = { adm: 3, ok: 1, err: 1, can: 1 };
  expect(sums).toMatchObject({ ...counts, 'c:SYSTEMERROR': 1, 'uc:pay:SYSTEMERROR': 1 });
  // What the handler noted leads over what the middleware sees of the answer.
  expect(sums).not.toHaveProperty('c:HTTP_500');
});

test('it binds the instance that registers it, and not its siblings', async () => {
  const api = await limiter({ rate: 0.01, capacity: 1 });
  const app = fastify();
  await app.register(async (limited) => {
    await limited.register(flyball, { limiter: api });
    limited.get('/limited', async () => 'a');
  });
  app.get('/free', async () => 'b');
  const url = await listen(app);
  expect((await fetch(`${url}/limited`)).status).toBe(200);
  expect((await fetch(`${url}/limited`)).status).toBe(503);
  expect((await fetch(`${url}/free`)).status).toBe(200);
});

test('a client that left before the decision does not reach the route', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000 });
  const app = fastify();
  await app.register(flyball, { limiter: api });
  (await api.take()).done();
  let reached = 0;
  app.get('/', async () => {
    reached += 1;
    return 'hello';
  });
  const url = await listen(app);
  server.pause();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('the request arrived', () => api.stats().inFlight === 1);
  socket.destroy();
  await new Promise((ok) => socket.once('close', ok));
  server.resume();
  await until('its place came back', () => api.stats().inFlight === 0);
  expect(reached).toBe(0);
});
