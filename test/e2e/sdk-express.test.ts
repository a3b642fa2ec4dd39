import { createServer } from 'node:http';
import express, { type Express, type Request, type Response } from 'express';
import { expect, test } from 'vitest';
import { flyball, type WithDecision } from '../../src/enforce/middleware/express.js';
import { FlyballTypeError } from '../../src/index.js';
import { middlewareCases } from '../support/middleware-cases.js';
import { useRig } from '../support/middleware-rig.js';
import { setParams, until } from '../support/sdk-params.js';

const rig = useRig('express');
const { limiter } = rig;
const listen = (app: Express) => rig.listen(createServer(app));

middlewareCases(rig, {
  name: 'express',
  knowsRoute: false,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const app = express();
    app.use(express.text());
    for (const each of limiters) app.use(flyball<Request>(each, options));
    app.get('/ok', (_req, res) => void res.send('ok'));
    app.get('/health', (_req, res) => void res.send('healthy'));
    app.get('/users/:id', (_req, res) => void res.send('user'));
    app.get('/fail', (_req, res) => void res.status(502).send('no'));
    app.get('/throw', () => {
      throw new Error('boom');
    });
    app.get('/destroy', (_req, res) => void res.destroy());
    app.get('/never', () => handlers.arrived());
    app.get('/stream', (_req, res) => {
      res.write('first ');
      handlers.streaming(() => res.end('last'));
    });
    app.post('/echo', (req, res) => void res.send(req.body));
    app.use((_error: unknown, _req: Request, res: Response, next: () => void) =>
      res.headersSent ? next() : res.status(500).send('error'),
    );
    return createServer(app);
  },
});

const PER_USER = { subject: 'user:{userId}', rate: 5, capacity: 10 };
const byUser = { attributes: (req: Request) => ({ userId: req.get('x-user') }) };

test('passes with rate limit fields; the subject’s own bucket answers 429 with a problem', async () => {
  const api = await limiter(
    { rate: 100, capacity: 200, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: PER_USER },
  );
  const app = express();
  app.use(flyball(api, byUser));
  app.get('/', (_req, res) => void res.send('hello'));
  const url = await listen(app);

  const first = await fetch(url, { headers: { 'x-user': 'ada' } });
  expect(first.status).toBe(200);
  expect(first.headers.get('ratelimit-policy')).toMatch(
    new RegExp(`^"${api.name}";q=200;w=2, "${api.name}.subject";q=1;w=100;pk=:.+:$`),
  );
  expect(first.headers.get('ratelimit')).toBe(`"${api.name}.subject";r=0;t=100`);

  const second = await fetch(url, { headers: { 'x-user': 'ada' } });
  expect(second.status).toBe(429);
  expect(second.headers.get('content-type')).toBe('application/problem+json');
  const retry = Number(second.headers.get('retry-after'));
  const t = Number(/t=(\d+)/.exec(second.headers.get('ratelimit')!)![1]);
  expect(retry).toBeGreaterThanOrEqual(t);
  expect(await second.json()).toMatchObject({
    status: 429,
    limiter: api.name,
    limit: 'subject',
    reason: 'subject',
    'violated-policies': [`${api.name}.subject`],
  });

  expect((await fetch(url, { headers: { 'x-user': 'bob' } })).status).toBe(200);
});

test('the total rate and an open breaker answer 503 and say which', async () => {
  const api = await limiter({ rate: 0.01, capacity: 1 }, { denyCache: false });
  const app = express();
  app.use(flyball(api));
  app.get('/', (_req, res) => void res.send('hello'));
  const url = await listen(app);
  await fetch(url);
  const denied = await fetch(url);
  expect(denied.status).toBe(503);
  expect(await denied.json()).toMatchObject({ limit: 'rate', reason: 'rate' });
  expect(denied.headers.get('ratelimit')).toMatch(/;r=0;t=\d+$/);

  await setParams(
    rig.admin,
    api,
    { state: 'open', openUntil: Date.now() + 60_000, openForMs: 60_000 },
    'breaker',
  );
  const open = await fetch(url);
  expect(open.status).toBe(503);
  expect(await open.json()).toMatchObject({ limit: 'breaker', reason: 'breaker_open' });
  expect(Number(open.headers.get('retry-after'))).toBeGreaterThan(0);
});

test('a full in-flight cap answers 503 with r=0; requests are counted until they end', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 1 });
  const app = express();
  app.use(flyball(api));
  let finish: (() => unknown) | undefined;
  app.get('/slow', (_req, res) => {
    finish = () => res.send('done');
  });
  const url = await listen(app);
  const slow = fetch(`${url}/slow`);
  await until('the slow one is under way', () => finish !== undefined);
  const denied = await fetch(`${url}/slow`);
  expect(denied.status).toBe(503);
  expect(denied.headers.get('ratelimit')).toMatch(/;r=0;t=1$/);
  expect(await denied.json()).toMatchObject({ limit: 'in_flight' });
  finish!();
  expect((await slow).status).toBe(200);
  await until('it is counted out', () => api.stats().inFlight === 0);
});

test('5xx is failed, a client that leaves is cancelled, a handler that throws is counted once', async () => {
  const api = await limiter({ rate: 1000, capacity: 1000, inFlightMax: 50 });
  const app = express();
  app.use(flyball(api));
  app.get('/ok', (_req, res) => void res.send('ok'));
  app.get('/fail', (_req, res) => void res.status(502).send('no'));
  app.get('/throw', () => {
    throw new Error('boom');
  });
  app.get('/upstream', (req, res) => {
    (req as { flyball?: { note(info: object): void } }).flyball!.note({
      upstream: 'pay',
      code: 'SYSTEMERROR',
      dbWaitMs: 3,
    });
    res.status(503).send('no');
  });
  app.get('/never', () => {});
  app.use((_error: unknown, _req: Request, res: Response, _next: () => void) => {
    res.status(500).send('error');
  });
  const url = await listen(app);
  await fetch(`${url}/ok`);
  await fetch(`${url}/fail`);
  await fetch(`${url}/throw`);
  await fetch(`${url}/upstream`);
  const abort = new AbortController();
  const left = fetch(`${url}/never`, { signal: abort.signal }).catch(() => 'left');
  await until('it is under way', () => api.stats().inFlight === 1);
  abort.abort();
  expect(await left).toBe('left');
  await until('it is counted out', () => api.stats().inFlight === 0);
  const sums = await rig.reported(api);
  expect(sums).toMatchObject({
    off: 5,
    adm: 5,
    ok: 1,
    err: 3,
    can: 1,
    'c:HTTP_502': 1,
    'c:HTTP_500': 1,
    'c:SYSTEMERROR': 1,
    'uc:pay:SYSTEMERROR': 1,
    ws: 3000,
  });
  // What the handler noted leads over what the middleware sees of the answer.
  expect(sums).not.toHaveProperty('c:HTTP_503');
  expect(sums).not.toHaveProperty('uc:pay:HTTP_503');
});

test('a template that needs attributes without a function is a typed error at start', async () => {
  const api = await limiter({}, { perSubject: PER_USER });
  expect(() => flyball(api)).toThrow(FlyballTypeError);
  expect(() => flyball(api)).toThrow(/needs userId.+Pass attributes/);
});

test('C50: a request without the attribute is limited by its socket address, not by a header', async () => {
  const api = await limiter(
    { rate: 100, capacity: 200, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: PER_USER },
  );
  const app = express();
  app.use(flyball(api, byUser));
  app.get('/', (_req, res) => void res.send('hello'));
  const url = await listen(app);
  expect((await fetch(url, { headers: { 'x-forwarded-for': '1.1.1.1' } })).status).toBe(200);
  expect((await fetch(url, { headers: { 'x-forwarded-for': '2.2.2.2' } })).status).toBe(429);
  expect(api.stats().missingAttributes).toBe(2);
  expect(await rig.admin.exists(`flyball:{${api.name}}:b:ip:127.0.0.1`)).toBe(1);
});

test('I12: shadow changes no answer', async () => {
  const api = await limiter({ mode: 'shadow', rate: 0.01, capacity: 1 });
  const app = express();
  app.use(flyball(api));
  app.get('/', (_req, res) => void res.send('hello'));
  const url = await listen(app);
  for (let i = 0; i < 3; i++) {
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('ratelimit')).toBeNull();
    expect(answer.headers.get('ratelimit-policy')).toBeNull();
  }
  expect(api.stats().wouldDeny).toEqual({ rate: 2 });
});

test('{route} in the middleware of a route is its pattern; a mount point does not make a path exempt', async () => {
  const api = await limiter(
    { rate: 1000, capacity: 1000, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: { subject: '{route}:{ip}', rate: 5, capacity: 10 } },
  );
  const app = express();
  const limit = flyball(api);
  app.get('/users/:id', limit, (_req, res) => void res.send('user'));
  app.get('/orders/:id', limit, (_req, res) => void res.send('order'));
  app.use('/api', flyball(api, { route: 'api' }), (_req, res) => void res.send('api'));
  const url = await listen(app);
  const status = async (path: string) => (await fetch(`${url}${path}`)).status;
  expect([await status('/users/1'), await status('/users/2')]).toEqual([200, 429]);
  expect([await status('/orders/1'), await status('/orders/2')]).toEqual([200, 429]);
  expect([await status('/api/health'), await status('/api/health')]).toEqual([200, 429]);
});

test('C49: nothing is written after the head was sent', async () => {
  const api = await limiter({ rate: 0.01, capacity: 1 });
  const app = express();
  app.use((_req, res, next) => {
    res.write('begun ');
    next();
  });
  app.use(flyball(api));
  app.get('/', (_req, res) => void res.end('done'));
  const url = await listen(app);
  const answers = [await fetch(url), await fetch(url)];
  expect(answers.map((answer) => answer.headers.get('ratelimit'))).toEqual([null, null]);
  expect([await answers[0]!.text(), await answers[1]!.text()]).toEqual(['begun done', 'begun ']);
});

test('what cannot be used is refused at start, with the mend', async () => {
  const api = await limiter({});
  const wrong = (options: object, message: RegExp) => {
    expect(() => flyball(api, options)).toThrow(FlyballTypeError);
    expect(() => flyball(api, options)).toThrow(message);
  };
  wrong({ legacy: true }, /does not know "legacy".+legacyHeaders/);
  wrong({ trustProxy: true }, /trustProxy is true.+believe what any client writes/);
  wrong({ trustProxy: ['0.0.0.0/0'] }, /0\.0\.0\.0\/0.+everybody/);
  wrong({ trustProxy: ['::ffff:10.0.0.0/104'] }, /trustProxy is "::ffff:10\.0\.0\.0\/104"/);
  wrong({ trustProxy: 1.5 }, /trustProxy is 1\.5.+number of proxies/);
  wrong({ ipv6Prefix: 32 }, /ipv6Prefix is 32.+48 to 128/);
  wrong({ proxyHeader: 'x-real-ip' }, /proxyHeader is "x-real-ip"/);
  wrong({ exempt: ['health'] }, /exempt is an array.+begin with '\/'/);
  wrong({ route: '' }, /route is "".+a name/);
  wrong({ cost: 2 }, /cost is 2.+function/);
  wrong({ priority: 'critical' }, /priority is "critical".+must not choose/);
  wrong({ priority: { header: 'x-priority' } }, /priority is an object/);
  wrong({ priority: { header: 'x', trust: ['10.0.0.0/99'] } }, /priority\.trust is "10\.0/);
  expect(() => flyball({} as never)).toThrow(/the limiter is an object.+createLimiter/);
  expect(() => flyball(undefined as never)).toThrow(/the limiter is undefined/);
});

test('a note reaches every limiter that admitted the request', async () => {
  const outer = await limiter({ rate: 1000, capacity: 1000 });
  const inner = await limiter({ rate: 1000, capacity: 1000 });
  const app = express();
  app.use(flyball(outer), flyball(inner));
  app.get('/', (req, res) => {
    (req as WithDecision).flyball!.note({ code: 'SYSTEMERROR' });
    res.status(500).send('no');
  });
  await fetch(await listen(app));
  for (const each of [outer, inner]) {
    expect(await rig.reported(each)).toMatchObject({ err: 1, 'c:SYSTEMERROR': 1 });
  }
});

test('routes that are not ready yet are waited for once; what they give as a route names the subject', async () => {
  const api = await limiter(
    { rate: 1000, capacity: 1000, subjectRate: 0.01, subjectCapacity: 1 },
    { perSubject: { subject: '{route}', rate: 5, capacity: 10 } },
  );
  let asked = 0;
  let known = false;
  const routes = {
    async ready() {
      asked += 1;
      known = true;
    },
    match: ({ path }: { path: string }) =>
      known && path.startsWith('/pay') ? { limiter: api, route: '/pay/**' } : null,
  };
  const app = express();
  app.use(flyball(routes));
  app.use((_req, res) => void res.send('hello'));
  const url = await listen(app);
  const status = async (path: string) => (await fetch(`${url}${path}`)).status;
  expect([await status('/pay/1'), await status('/pay/2'), await status('/x')]).toEqual([
    200, 429, 200,
  ]);
  expect(asked).toBe(1);
});
