import { createServer, type Server, type ServerResponse } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { stream } from 'hono/streaming';
import { expect, test } from 'vitest';
import { type FlyballVariables, flyball } from '../../src/enforce/middleware/hono.js';
import { middlewareCases } from '../support/middleware-cases.js';
import { dial, get, useRig } from '../support/middleware-rig.js';
import { until } from '../support/sdk-params.js';

const rig = useRig('hono');

middlewareCases(rig, {
  name: 'hono',
  knowsRoute: true,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const app = new Hono<{ Bindings: { outgoing: ServerResponse } }>();
    app.use(async (c, next) => {
      if (c.req.method === 'POST') await c.req.text();
      await next();
    });
    for (const each of limiters) app.use(flyball(each, options));
    app.get('/ok', (c) => c.text('ok'));
    app.get('/health', (c) => c.text('healthy'));
    app.get('/users/:id', (c) => c.text('user'));
    app.get('/fail', (c) => c.text('no', 502));
    app.get('/throw', () => {
      throw new Error('boom');
    });
    app.get('/destroy', (c) => {
      c.env.outgoing.destroy();
      return c.text('gone');
    });
    app.get('/never', () => {
      handlers.arrived();
      return new Promise<Response>(() => {});
    });
    app.get('/stream', (c) =>
      stream(c, async (out) => {
        await out.write('first ');
        await new Promise<void>((ok) => handlers.streaming(ok));
        await out.write('last');
      }),
    );
    app.post('/echo', async (c) => c.text(await c.req.text()));
    app.onError((_error, c) => c.text('error', 500));
    return createAdaptorServer({ fetch: app.fetch }) as Server;
  },
});

const WIDE = { rate: 1000, capacity: 1000, inFlightMax: 50 };

test('without a server: an answer has ended when its body has, read or not', async () => {
  const api = await rig.limiter(WIDE);
  const app = new Hono();
  app.use(flyball(api), flyball(api));
  app.get('/ok', (c) => c.text('ok'));
  app.get('/none', (c) => c.body(null, 204));
  app.get('/fail', (c) => c.text('no', 503));
  app.get('/raw', () => new Response('raw', { headers: { 'x-own': 'kept' } }));
  app.get('/frozen', () => fetch('data:text/plain,frozen'));
  app.get('/throw', () => {
    throw 'not an Error';
  });
  await app.request('/ok');
  expect(api.stats().inFlight).toBe(0);
  await app.request('/ok', { method: 'HEAD' });
  await app.request('/none');
  await app.request('/fail');
  await expect(app.request('/throw')).rejects.toBe('not an Error');
  const raw = await app.request('/raw');
  expect(raw.headers.get('x-own')).toBe('kept');
  expect(raw.headers.get('ratelimit')).toMatch(/;r=\d+;t=1$/);
  expect(await raw.text()).toBe('raw');
  const frozen = await app.request('/frozen');
  expect(frozen.headers.get('ratelimit-policy')).toBe(`"${api.name}";q=1000;w=1`);
  expect(await frozen.text()).toBe('frozen');
  expect(api.stats().inFlight).toBe(0);
  expect(await rig.reported(api)).toMatchObject({ off: 7, adm: 7, ok: 5, err: 2 });
});

test('without a server: a stream counts until it ends, fails, or nobody wants more of it', async () => {
  const api = await rig.limiter(WIDE);
  const app = new Hono();
  app.use(flyball(api));
  let pulls = 0;
  const endless = (end: (pull: number, out: ReadableStreamDefaultController) => void) => () =>
    new Response(
      new ReadableStream({
        pull(out) {
          pulls += 1;
          out.enqueue(new TextEncoder().encode('x'));
          end(pulls, out);
        },
      }),
    );
  app.get(
    '/long',
    endless((pull, out) => pull === 20 && out.close()),
  );
  app.get(
    '/broken',
    endless((pull, out) => pull === 5 && out.error(new Error('broken'))),
  );
  app.get(
    '/endless',
    endless(() => {}),
  );

  const long = await app.request('/long');
  expect(api.stats().inFlight).toBe(1);
  expect(await long.text()).toBe('x'.repeat(20));
  expect(api.stats().inFlight).toBe(0);
  pulls = 0;
  await expect((await app.request('/broken')).text()).rejects.toThrow('broken');
  pulls = 0;
  const { body } = await app.request('/endless');
  await new Promise((ok) => setTimeout(ok, 20));
  // Few chunks are read ahead of who reads.
  expect(pulls).toBeLessThan(6);
  await body!.cancel();
  const abort = new AbortController();
  await app.request('/endless', { signal: abort.signal });
  expect(api.stats().inFlight).toBe(1);
  abort.abort();
  expect(api.stats().inFlight).toBe(0);
  expect(await rig.reported(api)).toMatchObject({ adm: 4, ok: 1, err: 1, can: 2 });
});

test('the address comes from `address` where there is no socket; the decision is in the context', async () => {
  const api = await rig.limiter(
    { ...WIDE, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: { subject: '{ip}', rate: 5, capacity: 10 } },
  );
  const app = new Hono<{ Variables: FlyballVariables }>();
  app.use(flyball(api, { address: (c) => c.req.header('x-peer') }));
  app.get('/', (c) => c.json({ subject: c.get('flyball')?.subject }));
  const from = (peer: string) => app.request('/', { headers: { 'x-peer': peer } });
  expect(await (await from('10.0.0.1')).json()).toEqual({ subject: '10.0.0.1' });
  expect(await (await from('2001:db8::1')).json()).toEqual({ subject: '2001:db8:0:0::/64' });
  const denied = await from('2001:db8::2');
  expect(denied.status).toBe(429);
  expect(denied.headers.get('content-type')).toBe('application/problem+json');
  expect(await (await app.request('/')).json()).toEqual({ subject: 'unknown' });
});

test('its functions may be given Hono’s own context', async () => {
  const api = await rig.limiter(
    { ...WIDE, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: { subject: '{tenant}', rate: 5, capacity: 10 } },
  );
  type Env = { Variables: FlyballVariables & { tenant: string } };
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    c.set('tenant', c.req.query('tenant') ?? 'none');
    await next();
  });
  app.use(flyball(api, { attributes: (c: Context<Env>) => ({ tenant: c.get('tenant') }) }));
  app.get('/', (c) => c.text(c.get('flyball')?.subject ?? ''));
  expect(await (await app.request('/?tenant=a')).text()).toBe('a');
  expect((await app.request('/?tenant=a')).status).toBe(429);
  expect(await (await app.request('/?tenant=b')).text()).toBe('b');
});

test('an upgraded socket, for which the Node adapter has no answer to watch, counts until it closes', async () => {
  const api = await rig.limiter(WIDE);
  const app = new Hono();
  app.use(flyball(api));
  app.get('/socket', (c) => c.body(null, 200));
  const server = createServer();
  server.on('upgrade', async (incoming, socket) => {
    await app.fetch(new Request('http://a/socket'), { incoming, outgoing: undefined });
    socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });
  const client = dial(await rig.listen(server));
  client.write(get('/socket', 'Connection: Upgrade\r\nUpgrade: x\r\n'));
  await until('it was upgraded', () => client.received().includes('101'));
  client.end();
  await until('it is counted out', () => api.stats().inFlight === 0);
  expect(await rig.reported(api)).toMatchObject({ adm: 1, can: 1 });
});
