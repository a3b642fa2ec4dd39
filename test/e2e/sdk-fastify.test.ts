import { once } from 'node:events';
import { connect as http2Connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { flyball } from '../../src/enforce/middleware/fastify.js';
import type { TakeDecision } from '../../src/index.js';
import { middlewareCases } from '../support/middleware-cases.js';
import { dial, get, useRig } from '../support/middleware-rig.js';
import { until } from '../support/sdk-params.js';

const rig = useRig('fastify');
const { limiter } = rig;

async function listen(app: FastifyInstance): Promise<string> {
  await app.ready();
  return rig.listen(app.server);
}

middlewareCases(rig, {
  name: 'fastify',
  knowsRoute: true,
  readsBodyFirst: false,
  async serve({ limiters, options, handlers }) {
    const app = fastify();
    for (const each of limiters) await app.register(flyball, { ...options, limiter: each });
    app.get('/ok', async () => 'ok');
    app.get('/health', async () => 'healthy');
    app.get('/users/:id', async () => 'user');
    app.get('/fail', (_request, reply) => reply.code(502).send('no'));
    app.get('/throw', async () => {
      throw new Error('boom');
    });
    app.get('/destroy', (_request, reply) => void reply.raw.destroy());
    app.get('/never', () => handlers.arrived());
    app.get('/stream', (_request, reply) => {
      reply.hijack();
      reply.raw.write('first ');
      handlers.streaming(() => reply.raw.end('last'));
    });
    await app.ready();
    return app.server;
  },
});

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
  const sums = await rig.reported(api);
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

test('HTTP/2: streams of one connection end one by one, answered or reset', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 50 });
  const app = fastify({ http2: true });
  await app.register(flyball as never, { limiter: api } as never);
  app.get('/ok', async () => 'ok');
  app.get('/never', () => new Promise(() => {}));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const client = http2Connect(`http://127.0.0.1:${port}`);
  rig.onEnd(() => {
    client.destroy();
    return app.close();
  });
  const ask = (path: string) => {
    const stream = client.request({ ':path': path });
    stream.on('error', () => {});
    return stream.resume();
  };
  const never = ask('/never');
  const ok = ask('/ok');
  const [head] = (await once(ok, 'response')) as [Record<string, unknown>];
  expect(head.ratelimit).toMatch(/;r=\d+;t=1$/);
  await until('one is left', () => api.stats().inFlight === 1);
  never.close(8);
  await until('none is left', () => api.stats().inFlight === 0);
  expect(await rig.reported(api)).toMatchObject({ adm: 2, ok: 1, can: 1 });
});

test('a socket that a handler takes over counts until it closes', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 50 });
  const app = fastify();
  await app.register(flyball, { limiter: api });
  app.get('/take', (request, reply) => {
    reply.hijack();
    const { socket } = request.raw;
    reply.raw.detachSocket(socket);
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\nmine');
  });
  const client = dial(await listen(app));
  client.write(get('/take'));
  await until('it was taken over', () => client.received().endsWith('mine'));
  expect(api.stats().inFlight).toBe(1);
  client.destroy();
  await until('it is counted out', () => api.stats().inFlight === 0);
  expect(await rig.reported(api)).toMatchObject({ adm: 1, can: 1 });
});

test('inject, a plugin registered twice, and paths without a route', async () => {
  const api = await limiter(
    { rate: 1000, capacity: 1000, subjectRate: 0.01, subjectCapacity: 1, inFlightMax: 5 },
    { perSubject: { subject: '{route}', rate: 5, capacity: 10 } },
  );
  const app = fastify();
  await app.register(flyball, { limiter: api });
  await app.register(async (child) => {
    await child.register(flyball, { limiter: api, prefix: '/ignored' });
    child.get('/users/:id', async () => 'user');
  });
  const status = async (url: string) => (await app.inject(url)).statusCode;
  expect([await status('/users/1'), await status('/users/2')]).toEqual([200, 429]);
  expect([await status('/a'), await status('/b')]).toEqual([404, 429]);
  expect(api.stats().inFlight).toBe(0);
  await app.close();
  expect(await rig.reported(api)).toMatchObject({ off: 4, adm: 2, ok: 2 });
});
