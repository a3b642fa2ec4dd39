import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { flyball, type WithDecision } from '../../src/enforce/middleware/http.js';
import { bodyOf, middlewareCases } from '../support/middleware-cases.js';
import { dial, get, useRig } from '../support/middleware-rig.js';
import { until } from '../support/sdk-params.js';

const rig = useRig('http');

middlewareCases(rig, {
  name: 'http',
  knowsRoute: false,
  namesRoutes: false,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const routes: Record<string, (res: ServerResponse, body: string) => unknown> = {
      '/ok': (res) => res.end('ok'),
      '/health': (res) => res.end('healthy'),
      '/users': (res) => res.end('user'),
      '/fail': (res) => res.writeHead(502).end('no'),
      '/throw': () => {
        throw new Error('boom');
      },
      '/destroy': (res) => res.destroy(),
      '/never': () => handlers.arrived(),
      '/stream': (res) => {
        res.write('first ');
        handlers.streaming(() => res.end('last'));
      },
      '/echo': (res, body) => res.end(body),
    };
    const guards = limiters.map((each) => flyball(each, options));
    return createServer(async (req, res) => {
      try {
        const body = req.method === 'POST' ? await bodyOf(req) : '';
        for (const guard of guards) if (!(await guard(req, res))) return;
        routes[/^\/\w+/.exec(req.url!)![0]]!(res, body);
      } catch {
        res.writeHead(500).end('error');
      }
    });
  },
});

test('wrap: a listener behind a limiter; what throws here answers 500 and warns, or goes to onError', async () => {
  const api = await rig.limiter({ rate: 0.01, capacity: 1 });
  const listener = (req: IncomingMessage, res: ServerResponse) =>
    res.end((req as WithDecision).flyball ? 'limited' : 'free');
  const url = await rig.listen(createServer(flyball(api).wrap(listener)));
  expect(await (await fetch(`${url}/a`)).text()).toBe('limited');
  expect((await fetch(`${url}/a`)).status).toBe(503);
  expect(await (await fetch(`${url}/health`)).text()).toBe('free');

  const cost = () => {
    throw new Error('no cost');
  };
  const warned = once(process, 'warning') as Promise<[Error & { code: string }]>;
  const faulty = await rig.listen(createServer(flyball(api, { cost }).wrap(listener)));
  expect((await fetch(faulty)).status).toBe(500);
  const [warning] = await warned;
  expect(warning.code).toBe('FLYBALL_W_REQUEST_UNDECIDED');
  expect(warning.message).toContain('no cost');
  const onError = (error: unknown, _req: IncomingMessage, res: ServerResponse) =>
    res.writeHead(418).end((error as Error).message);
  const own = await rig.listen(createServer(flyball(api, { cost, onError }).wrap(listener)));
  const answer = await fetch(own);
  expect([answer.status, await answer.text()]).toEqual([418, 'no cost']);
});

test('upgrade: admitted sockets count until they close, or until done; denied ones are told and closed', async () => {
  const api = await rig.limiter({ rate: 1000, capacity: 1000, inFlightMax: 2 });
  const guard = flyball(api);
  const server = createServer();
  const upgraded: IncomingMessage[] = [];
  server.on('upgrade', async (req, socket) => {
    if (!(await guard.upgrade(req, socket))) return;
    upgraded.push(req);
    socket.resume().on('end', () => socket.end());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  const url = await rig.listen(server);
  const open = () => {
    const client = dial(url);
    client.write(get('/socket', 'Connection: Upgrade\r\nUpgrade: x\r\n'));
    return client;
  };
  const first = open();
  const second = open();
  await until('both are open', () => upgraded.length === 2);
  expect(api.stats().inFlight).toBe(2);
  const third = open();
  await once(third, 'close');
  expect(third.received()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]+RateLimit: /);
  expect(third.received()).toMatch(/"limit":"in_flight"/);

  const ended = (count: number) => until('it ended', () => api.stats().inFlight === count);
  first.destroy();
  await ended(1);
  (upgraded[1] as WithDecision).flyball!.done('ok');
  await ended(0);
  second.destroy();
  await until('it is closed', () => upgraded[1]!.socket.destroyed);
  expect(await rig.reported(api)).toMatchObject({ adm: 2, ok: 1, can: 1, 'd:in_flight': 1 });
});

test('upgrade: a client that resets while it is decided ends nothing but itself', async () => {
  const api = await rig.limiter({ rate: 1000, capacity: 1000, inFlightMax: 2 });
  const guard = flyball(api);
  const answers: boolean[] = [];
  const server = createServer();
  server.on('upgrade', async (req, socket) => answers.push(await guard.upgrade(req, socket)));
  const url = await rig.listen(server);
  (await api.take()).done();
  rig.redis.pause();
  const client = dial(url);
  client.write(get('/socket', 'Connection: Upgrade\r\nUpgrade: x\r\n'));
  await until('it is being decided', () => api.stats().inFlight === 1);
  client.resetAndDestroy();
  await once(client, 'close');
  rig.redis.resume();
  await until('it was decided', () => answers.length === 1);
  expect(answers).toEqual([false]);
  await until('its place came back', () => api.stats().inFlight === 0);
});

test('a template with {route} needs a name for it here: without one the address is the subject', async () => {
  const warnings: string[] = [];
  const api = await rig.limiter(
    { rate: 1000, capacity: 1000, subjectRate: 1, subjectCapacity: 5 },
    {
      perSubject: { subject: '{route}', rate: 5, capacity: 10 },
      onWarning: ({ code }) => void warnings.push(code),
    },
  );
  const url = await rig.listen(createServer(flyball(api).wrap((_req, res) => res.end('ok'))));
  await fetch(url);
  expect(warnings).toContain('FLYBALL_W_MISSING_ATTRIBUTE');
  expect(await rig.admin.exists(`flyball:{${api.name}}:b:ip:127.0.0.1`)).toBe(1);
});
