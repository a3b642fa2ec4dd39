/** Routes without a deploy: what policies name is limited in services that run, on Express, Fastify and a cluster. */
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { Cluster, type Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { adopt } from '../../src/actuate/adopt.js';
import { createInForceView } from '../../src/enforce/in-force.js';
import { collectMetrics } from '../../src/enforce/metrics.js';
import { flyball as onExpress } from '../../src/enforce/middleware/express.js';
import { flyball as onFastify } from '../../src/enforce/middleware/fastify.js';
import { resolveOptions } from '../../src/enforce/options.js';
import { createRoutes, type LimiterWarning, type RoutesOptions } from '../../src/index.js';
import { policyHash, policyJson } from '../../src/policy/hash.js';
import { type PolicyInput, policySchema } from '../../src/policy/schema.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { until } from '../support/sdk-params.js';
import { startProxy } from '../support/tcp-proxy.js';

/** A change is followed within 2 s; the rest is for a machine that stands still for a while. */
const FOLLOWED_MS = 15_000;
let server: TestRedis;
let admin: Redis;
const closing: (() => unknown)[] = [];
const warnings: LimiterWarning[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client({ maxRetriesPerRequest: null });
});
afterAll(() => server.stop());
beforeEach(async () => {
  await admin.flushall();
  warnings.length = 0;
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function routes(options: RoutesOptions = {}) {
  const made = createRoutes({
    ...(options.redis ? {} : { url: server.url }),
    deadlineMs: 2_000,
    topSubjects: false,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  closing.push(() => made.close());
  return made;
}

type LimiterInput = Omit<PolicyInput['limiter'], 'rate' | 'capacity'> & { capacity?: number };

/** As `flyball run` or a person's `apply` adopts it. */
async function adopted(limiter: LimiterInput, redis: Redis | Cluster = admin): Promise<void> {
  const policy = policySchema.parse({ limiter: { rate: 0.001, capacity: 1, ...limiter } });
  const outcome = await adopt(
    redis,
    { file: 'x.ts', policy, hash: policyHash(policy), json: policyJson(policy) },
    { actor: { kind: 'autopilot', name: 'd1' }, leaseMs: 60_000, nowMs: Date.now() },
  );
  expect(outcome.status).toMatch(/created|changed/);
}

interface Service {
  get(path: string, user?: string, method?: string): Promise<number>;
}

async function serve(app: (found: ReturnType<typeof routes>) => Promise<string>): Promise<Service> {
  const url = await app(routes());
  return {
    get: async (path, user = 'ada', method = 'GET') =>
      (await fetch(`${url}${path}`, { method, headers: { 'x-user': user } })).status,
  };
}

const frameworks: [string, () => Promise<Service>][] = [
  [
    'Express',
    () =>
      serve(async (found) => {
        const app = express();
        const attributes = (req: express.Request) => ({ userId: req.get('x-user') });
        const api = express.Router();
        // Behind a mount point: routes are the client's paths all the same.
        api.use(onExpress<express.Request>(found, { attributes }));
        api.all('/*rest', (_req, res) => void res.send('hello'));
        app.use('/api', api);
        const http = app.listen(0, '127.0.0.1');
        await new Promise((ok) => http.once('listening', ok));
        closing.push(() => {
          http.closeAllConnections();
          return new Promise((ok) => http.close(ok));
        });
        return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
      }),
  ],
  [
    'Fastify',
    () =>
      serve(async (found) => {
        const app = fastify({ forceCloseConnections: true });
        await app.register(onFastify, {
          limiter: found,
          attributes: (req: { raw: { headers: Record<string, unknown> } }) => ({
            userId: String(req.raw.headers['x-user']),
          }),
        });
        app.all('/api/*', async () => 'hello');
        closing.push(() => app.close());
        return app.listen({ port: 0, host: '127.0.0.1' });
      }),
  ],
];

describe.each(frameworks)('%s', (_name, start) => {
  test('a policy limits a route of a service that runs, within 2 s, and lets it go again', async () => {
    const service = await start();
    const free = async () => [await service.get('/api/pay'), await service.get('/api/pay')];
    expect(await free()).toEqual([200, 200]);

    await adopted({ name: 'pay', routes: ['POST /api/pay/**'] });
    const post = (path: string) => service.get(path, 'ada', 'POST');
    await until(
      'the route is limited',
      async () => (await post('/api/pay/card')) === 503,
      FOLLOWED_MS,
    );
    expect(await post('/api/PAY//card/?x=1')).toBe(503);
    expect(await post('/api/p%61y')).toBe(503);
    expect(await post('/api/basket')).toBe(200);
    expect(await free()).toEqual([200, 200]);

    // A more exact route of another policy, and a subject that the service's attributes fill.
    await adopted({
      name: 'card',
      capacity: 1000,
      routes: ['POST /api/pay/:kind'],
      perSubject: { subject: 'user:{userId}:{route}', rate: 0.001, capacity: 1 },
    });
    await until(
      'the exact one is taken',
      async () => (await post('/api/pay/card')) === 429,
      FOLLOWED_MS,
    );
    expect(await service.get('/api/pay/card', 'bob', 'POST')).toBe(200);
    expect(await service.get('/api/pay/card', 'bob', 'POST')).toBe(429);
    expect(await post('/api/pay/card/1')).toBe(503);

    await adopted({ name: 'card' });
    await adopted({ name: 'pay', routes: ['POST /api/refund'] });
    await until('it is let go', async () => (await post('/api/pay/card')) === 200, FOLLOWED_MS);
    expect(await free()).toEqual([200, 200]);
  });
});

test('ready: the first request of a new process falls under what was adopted before it', async () => {
  await adopted({ name: 'pay', routes: ['/api/pay'] });
  const found = routes();
  expect(found.find({ method: 'GET', path: '/api/pay' })).toBeNull();
  await found.ready();
  expect(found.match({ method: 'GET', path: '/api/pay?x' })).toMatchObject({ route: '/api/pay' });
  expect(found.find({ method: 'GET', path: '/api/pay' })?.name).toBe('pay');
  expect(found.list()).toMatchObject([{ limiter: 'pay', route: '/api/pay' }]);
});

test('limiters: only those named are looked at, in their group too; a wrong name is told at once', async () => {
  await adopted({ name: 'pay', group: 'money', routes: ['/pay'] });
  await adopted({ name: 'all', routes: ['/**'] });
  const found = routes({ limiters: ['pay'] });
  await found.ready();
  expect(found.list()).toMatchObject([{ limiter: 'pay', route: '/pay' }]);
  expect(found.find({ method: 'GET', path: '/x' })).toBeNull();
  expect(() => createRoutes({ limiters: ['Pay!'] })).toThrow(/limiter name "Pay!" is not allowed/);
  expect(() => createRoutes({ limits: [] } as unknown as RoutesOptions)).toThrow(/"limits"/);
});

describe('C96: nothing that is missed is missed for ever', () => {
  test('three changes while the service is cut off: the newest is followed within 2 s of its return', async () => {
    await adopted({ name: 'pay', routes: ['/v1'] });
    const proxy = await startProxy(server.port);
    closing.push(() => proxy.close());
    const found = routes({ url: `redis://127.0.0.1:${proxy.port}` });
    const named = (path: string) => found.find({ method: 'GET', path }) !== null;
    await found.ready();
    const pay = found.find({ method: 'GET', path: '/v1' })!;
    await until('its numbers are seen', () => pay.numbers()?.capacity === 1);

    proxy.mode = 'hang';
    for (const n of [2, 3, 4]) await adopted({ name: 'pay', capacity: n, routes: [`/v${n}`] });
    // Nobody is told of what is not known: the last routes hold.
    expect(named('/v1')).toBe(true);
    proxy.mode = 'refuse';
    proxy.cut();
    await until('the loss is seen', () => !pay.stats().redisUp);
    expect(named('/v1')).toBe(true);
    proxy.mode = 'pass';
    await until('Redis answers again', () => pay.stats().redisUp);
    await until('the newest routes are followed', () => named('/v4') && !named('/v1'), FOLLOWED_MS);
    await until('and the newest numbers', () => pay.numbers()?.capacity === 4, FOLLOWED_MS);
  });

  test('without a request and without any notice: polled, by every process for itself', async () => {
    await adopted({ name: 'pay', routes: ['/v1'] });
    const found = [routes(), routes()];
    for (const each of found) await each.ready();
    const idle = found[0]!.find({ method: 'GET', path: '/v1' })!;
    await idle.ready();
    expect(await admin.pubsub('NUMSUB', 'flyball:changes')).toEqual(['flyball:changes', 0]);
    await adopted({ name: 'pay', capacity: 7, routes: ['/v2'] });
    await until(
      'both follow',
      () => found.every((each) => each.find({ method: 'GET', path: '/v2' }) !== null),
      FOLLOWED_MS,
    );
    await until('the numbers too', () => idle.numbers()?.capacity === 7, FOLLOWED_MS);
  });

  test('an older version is ignored, whatever shows it: routes of a lagging replica, replies out of order', async () => {
    await adopted({ name: 'pay', routes: ['/v1'] });
    await adopted({ name: 'pay', routes: ['/v2'] });
    const found = routes();
    await found.ready();
    const { params } = limiterKeys({ name: 'pay' });
    await admin.hset(params, { revision: 1, terms: '{"routes":["/v1"]}' });
    await adopted({ name: 'other', routes: ['/seen'] });
    await until('a later turn has read', () => found.list().some((e) => e.route === '/seen'));
    expect(found.list().map(({ route }) => route)).toEqual(['/seen', '/v2']);

    const view = createInForceView(resolveOptions({ name: 'pay' }));
    const reply = (epoch: number, revision: number) =>
      view.see({ ...REPLY, epoch, revision, rate: revision }, 0);
    expect([reply(1, 6), reply(1, 7), reply(1, 6), reply(0, 9), reply(2, 1)]).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
    expect(view.current).toMatchObject({ epoch: 2, revision: 1 });
  });

  test('lost params and a lost registry say nothing; a forgotten limiter is let go', async () => {
    await adopted({ name: 'pay', routes: ['/pay'] });
    await adopted({ name: 'gone', routes: ['/gone'] });
    const found = routes();
    const listed = () => found.list().map(({ route }) => route);
    await found.ready();
    await admin.flushall();
    await adopted({ name: 'new', routes: ['/new'] });
    await admin.hset('flyball:limiters', 'pay', '');
    await until('a later turn has read', () => listed().includes('/new') && listed().length === 2);
    expect(listed()).toEqual(['/new', '/pay']);
  });
});

const REPLY = {
  managed: true,
  generation: 0,
  mode: 'auto',
  state: 'closed',
  gliding: false,
  capacity: 1,
  inFlightMax: 0,
  subjectRate: -1,
  subjectCapacity: 0,
} as const;

test('what cannot be used is told once, and the rest works', async () => {
  await adopted({ name: 'pay', routes: ['/pay'] });
  await adopted({ name: 'zoo', routes: ['/pay', '/zoo'] });
  const { params } = limiterKeys({ name: 'zoo' });
  await admin.hset(params, 'terms', '{"routes":["/pay","/zoo","/a//b"]}');
  const found = routes();
  await found.ready();
  expect(found.list()).toHaveLength(2);
  expect(found.find({ method: 'GET', path: '/pay' })?.name).toBe('pay');
  expect(warnings.map(({ code }) => code).sort()).toEqual([
    'FLYBALL_W_ROUTE_SHARED',
    'FLYBALL_W_ROUTE_UNUSABLE',
  ]);
  expect(warnings.map(({ message }) => message).join()).toMatch(/zoo: "\/a\/\/b"/);
});

test('Redis away at the start: ready after one deadline, requests pass, and it is followed when it comes', async () => {
  await adopted({ name: 'pay', routes: ['/pay'] });
  const proxy = await startProxy(server.port);
  closing.push(() => proxy.close());
  proxy.mode = 'refuse';
  const found = routes({ url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 50 });
  await found.ready();
  expect(found.find({ method: 'GET', path: '/pay' })).toBeNull();
  proxy.mode = 'pass';
  await until('it comes', () => found.find({ method: 'GET', path: '/pay' }) !== null);
});

test('a user who may not list the registry is told so, and limiters by name are found all the same', async () => {
  await adopted({ name: 'pay', routes: ['/pay'] });
  await admin.call('ACL', 'SETUSER', 'svc', 'on', '>pw', '~*', '&*', '+@all', '-hgetall');
  const url = `redis://svc:pw@127.0.0.1:${server.port}`;
  const all = routes({ url });
  await all.ready();
  expect(all.list()).toEqual([]);
  expect(warnings).toMatchObject([{ code: 'FLYBALL_W_ROUTES_UNREADABLE' }]);
  expect(warnings[0]!.message).toContain('Allow HGETALL and HMGET on flyball:limiters');
  const named = routes({ url, limiters: ['pay'] });
  await named.ready();
  expect(named.list()).toHaveLength(1);
});

test('after close nothing is found any more, and closing twice is closing once', async () => {
  const found = routes();
  await found.ready();
  await Promise.all([found.close(), found.close()]);
  expect(() => found.find({ method: 'GET', path: '/' })).toThrow(/these routes are closed/);
});

test('on a cluster: each limiter is read where it lies', async () => {
  const node = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
  closing.push(() => node.stop());
  const one = node.client({ enableReadyCheck: false });
  await one.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until('the cluster is up', async () =>
    String(await one.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
  const cluster = new Cluster([{ host: '127.0.0.1', port: node.port }]);
  closing.push(() => cluster.disconnect());
  for (const name of ['a', 'b', 'c']) await adopted({ name, routes: [`/${name}`] }, cluster);
  const found = routes({ redis: cluster });
  await found.ready();
  expect(found.list().map(({ route }) => route)).toEqual(['/a', '/b', '/c']);
  const b = found.find({ method: 'GET', path: '/b' })!;
  expect([(await b.take()).allowed, (await b.take()).allowed]).toEqual([true, false]);
});

test('metrics of limiters that routes made, by the routes alone', async () => {
  await adopted({ name: 'pay', routes: ['/pay'], capacity: 5 });
  const made = routes();
  await made.ready();
  const registry = new Registry();
  const takeOff = collectMetrics(made, { register: registry });
  const count = async () =>
    /^flyball_enforce_admitted_requests_total\{limiter="pay"\} (\d+)$/m.exec(
      await registry.metrics(),
    )?.[1];
  expect([made.limiters(), await count()]).toEqual([[], undefined]);
  await made.find({ method: 'GET', path: '/pay' })!.take();
  expect(made.limiters().map(({ name }) => name)).toEqual(['pay']);
  expect(await count()).toBe('1');
  takeOff();
  expect(await registry.metrics()).not.toContain('flyball_');
});

test('routes that nobody names are told once at the start, with where they were looked for', async () => {
  await routes({ prefix: 'staging' }).ready();
  await until('a warning', () => warnings.length > 0);
  expect(warnings[0]).toMatchObject({ code: 'FLYBALL_W_ROUTES_NONE' });
  expect(warnings[0]!.message).toContain(
    'no adopted policy names a route under the prefix staging',
  );
  await adopted({ name: 'pay', routes: ['/pay'] });
  warnings.length = 0;
  const found = routes();
  await found.ready();
  expect(found.list()).toHaveLength(1);
  expect(warnings).toEqual([]);
});
