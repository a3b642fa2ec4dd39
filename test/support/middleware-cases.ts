/** The cases that hold before every framework: what is limited, what is answered, what is counted once. Stage: tests. */
import type { IncomingMessage, Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { LimiterChoice, MiddlewareOptions } from '../../src/enforce/middleware/http.js';
import type { Limiter } from '../../src/index.js';
import type { Priority } from '../../src/redis/calls.js';
import { dial, get, type Rig } from './middleware-rig.js';
import { until } from './sdk-params.js';

/** The same service in each framework. */
export interface Handlers {
  /** `/never`: a request that is never answered has arrived. */
  arrived(): void;
  /** `/stream`: call `end` to end the answer, whose first chunk is out. */
  streaming(end: () => void): void;
}

export interface Mounting {
  /** In the order in which a request meets them. */
  limiters: LimiterChoice[];
  /** Options that do not look at the framework's request. */
  options: MiddlewareOptions<unknown>;
  handlers: Handlers;
}

/**
 * `/ok` says ok; `/fail` answers 502; `/throw` throws; `/destroy` destroys its answer; `POST /echo` answers with the
 * body, which was read before the limiter; `/users/:id`, `/health`.
 */
export interface Framework {
  name: string;
  /** A server that does not listen yet, or that listens on 127.0.0.1. */
  serve(mounting: Mounting): Promise<Server>;
  /** The framework knows the route's pattern when the limiter decides. */
  knowsRoute: boolean;
  /** False: there is no pattern, not even once the handler was found. */
  namesRoutes?: false;
  /** Where the framework is given a parsed body, or can have read it, before the limiter. */
  readsBodyFirst: boolean;
}

const WIDE = { rate: 1000, capacity: 1000 };
/** All but a twentieth is kept for critical requests. */
const SCARCE = { rate: 0.01, capacity: 10, reserveDefault: 0.95, reserveSheddable: 0.95 };
const CRITICAL = { headers: { 'x-priority': 'critical' } };

export function middlewareCases(rig: Rig, framework: Framework): void {
  async function serve(
    limiters: LimiterChoice[],
    options: MiddlewareOptions<unknown> = {},
    handlers: Partial<Handlers> = {},
  ): Promise<{ url: string; server: Server }> {
    const all = { arrived() {}, streaming() {}, ...handlers };
    const server = await framework.serve({ limiters, options, handlers: all });
    return { url: await rig.listen(server), server };
  }

  const ended = (api: Limiter) => until('all are counted out', () => api.stats().inFlight === 0);
  const underWay = (api: Limiter, count: number) =>
    until(`${count} are under way`, () => api.stats().inFlight === count);

  describe(`${framework.name}: what is counted in flight`, () => {
    test('an answer, a 5xx, an error, HEAD and a destroyed answer end once each', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const { url } = await serve([api]);
      expect((await fetch(`${url}/ok`)).status).toBe(200);
      expect((await fetch(`${url}/ok`, { method: 'HEAD' })).status).toBe(200);
      expect((await fetch(`${url}/fail`)).status).toBe(502);
      expect((await fetch(`${url}/throw`)).status).toBe(500);
      await expect(fetch(`${url}/destroy`)).rejects.toThrow();
      await ended(api);
      expect(await rig.reported(api)).toMatchObject({ off: 5, adm: 5, ok: 2, err: 2, can: 1 });
    });

    test('each kind of request is told apart, by the pattern of its route', async () => {
      const api = await rig.limiter(WIDE);
      const { url } = await serve([api]);
      // A process names its routes once it has seen two.
      for (const path of ['/ok', '/fail', '/users/1', '/users/2']) await fetch(`${url}${path}`);
      await ended(api);
      const reported = await rig.reported(api);
      const kinds = Object.keys(reported).filter((field) => field.startsWith('rn:'));
      if (framework.namesRoutes === false) expect(kinds).toEqual([]);
      else {
        expect(reported['rn:GET__users__id']).toBe(2);
        expect(reported['rs:GET__users__id']).toBeGreaterThan(0);
      }
    });

    test('which answers are failures is a limiter’s own choice', async () => {
      const strict = await rig.limiter(WIDE);
      const lax = await rig.limiter(WIDE);
      const { url } = await serve([strict], { isFailure: (status) => status === 200 });
      const both = await serve([strict, lax]);
      await fetch(`${url}/ok`);
      await fetch(`${both.url}/fail`);
      await Promise.all([ended(strict), ended(lax)]);
      expect(await rig.reported(strict)).toMatchObject({ err: 2, 'c:HTTP_200': 1 });
      expect(await rig.reported(lax)).toMatchObject({ err: 1, 'c:HTTP_502': 1 });
    });

    test('a stream counts until its last chunk, or until its client leaves', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const ends: (() => void)[] = [];
      const { url } = await serve([api], {}, { streaming: (end) => ends.push(end) });
      const whole = await fetch(`${url}/stream`);
      const abort = new AbortController();
      const left = await fetch(`${url}/stream`, { signal: abort.signal });
      expect([whole.status, left.status]).toEqual([200, 200]);
      expect(api.stats().inFlight).toBe(2);
      abort.abort();
      await left.text().catch(() => {});
      await underWay(api, 1);
      ends[0]!();
      expect(await whole.text()).toBe('first last');
      await ended(api);
      expect(await rig.reported(api)).toMatchObject({ adm: 2, ok: 1, can: 1 });
    });

    test('pipelined requests whose client leaves before their turn give their places back', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const { url } = await serve([api]);
      const client = dial(url);
      client.write(get('/never') + get('/ok') + get('/never'));
      await underWay(api, 3);
      client.destroy();
      await ended(api);
      expect(await rig.reported(api)).toMatchObject({ adm: 3, can: 3 });
    });

    test('one connection, many requests: each ends by itself', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const { url } = await serve([api]);
      const client = dial(url);
      for (let i = 1; i <= 12; i++) {
        client.write(get('/ok'));
        await until('it is answered', () => client.received().split('200 OK').length - 1 === i);
      }
      await ended(api);
      client.destroy();
      expect(await rig.reported(api)).toMatchObject({ adm: 12, ok: 12 });
    });

    test('a request that the server times out is timed out, not cancelled', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const { url, server } = await serve([api]);
      server.setTimeout(200);
      await expect(fetch(`${url}/never`)).rejects.toThrow();
      await ended(api);
      const sums = await rig.reported(api);
      expect(sums).toMatchObject({ adm: 1, to: 1 });
      expect(sums).not.toHaveProperty('can');
    });

    test('the same limiter mounted twice takes and counts once', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const { url } = await serve([api, api]);
      const answer = await fetch(`${url}/ok`);
      expect(answer.headers.get('ratelimit')).toMatch(/^"[^",]+";r=999;t=1$/);
      await ended(api);
      expect(await rig.reported(api)).toMatchObject({ off: 1, adm: 1, ok: 1 });
    });

    test('two limiters: both count, both are named; what one denies is no answer of the other', async () => {
      const outer = await rig.limiter({ ...WIDE, inFlightMax: 50 });
      const inner = await rig.limiter({ rate: 0.01, capacity: 1 });
      const { url } = await serve([outer, inner]);
      const first = await fetch(`${url}/ok`);
      expect(first.headers.get('ratelimit-policy')).toBe(
        `"${outer.name}";q=1000;w=1, "${inner.name}";q=1;w=100`,
      );
      expect(first.headers.get('ratelimit')).toMatch(/^"[^"]+";r=999;t=1, "[^"]+";r=0;t=100$/);
      const second = await fetch(`${url}/ok`);
      expect(second.status).toBe(503);
      expect(await second.json()).toMatchObject({ limiter: inner.name });
      await ended(outer);
      const sums = await rig.reported(outer);
      expect(sums).toMatchObject({ adm: 2, ok: 1, can: 1 });
      expect(sums).not.toHaveProperty('err');
      expect(await rig.reported(inner)).toMatchObject({ adm: 1, ok: 1 });
    });

    test('a client that left before the decision does not reach the service', async () => {
      const api = await rig.limiter(WIDE);
      let reached = 0;
      const { url } = await serve(
        [api],
        {},
        {
          arrived() {
            reached += 1;
          },
        },
      );
      (await api.take()).done();
      rig.redis.pause();
      const client = dial(url);
      client.write(get('/never'));
      await underWay(api, 1);
      client.destroy();
      await new Promise((ok) => client.once('close', ok));
      rig.redis.resume();
      await ended(api);
      expect(reached).toBe(0);
    });
  });

  describe(`${framework.name}: what is limited and what is answered`, () => {
    test('denied: 503 with a problem, the wait alike in header and body, and the connection goes on', async () => {
      const api = await rig.limiter({ rate: 0.01, capacity: 1 });
      const { url } = await serve([api], { legacyHeaders: true });
      const client = dial(url);
      client.write(get('/ok') + get('/ok'));
      await until('both are answered', () => client.received().includes('retryAfterSeconds'));
      const [, head = '', body = ''] = /(HTTP\/1.1 503[\s\S]*?)\r\n\r\n(\{.*\})/.exec(
        client.received(),
      )!;
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim();
      expect(field('content-type')).toBe('application/problem+json');
      expect(field('ratelimit')).toMatch(/;r=0;t=\d+$/);
      const t = Number(/t=(\d+)/.exec(field('ratelimit')!)![1]);
      expect(Number(field('retry-after'))).toBeGreaterThanOrEqual(t);
      expect(field('x-ratelimit-reset')).toBe(String(t));
      expect(field('x-ratelimit-remaining')).toBe('0');
      expect(JSON.parse(body)).toMatchObject({
        status: 503,
        limiter: api.name,
        retryAfterSeconds: Number(field('retry-after')),
      });
      const before = client.received().length;
      client.write(get('/health'));
      await until('it goes on', () => client.received().slice(before).includes('200 OK'));
      client.destroy();
    });

    test('health and metrics are never limited nor counted, whatever their query; exempt: [] limits them', async () => {
      const api = await rig.limiter({ rate: 0.01, capacity: 1 });
      const { url } = await serve([api]);
      await fetch(`${url}/ok`);
      expect((await fetch(`${url}/ok`)).status).toBe(503);
      const health = await fetch(`${url}/health?verbose`);
      expect(health.status).toBe(200);
      expect(health.headers.get('ratelimit')).toBeNull();
      for (const path of ['/metrics', '/healthz', '/livez', '/readyz']) {
        const answer = await fetch(`${url}${path}`);
        expect(answer.status, path).not.toBe(503);
        expect(answer.headers.get('ratelimit'), path).toBeNull();
      }
      // Another path that only looks like it.
      expect((await fetch(`${url}/health/x`)).status).toBe(503);
      expect(await rig.reported(api)).toMatchObject({ off: 3, adm: 1 });

      const all = await rig.limiter({ rate: 0.01, capacity: 1 });
      const strict = await serve([all], { exempt: [] });
      expect((await fetch(`${strict.url}/health`)).status).toBe(200);
      expect((await fetch(`${strict.url}/health`)).status).toBe(503);
      expect((await fetch(`${strict.url}/metrics`)).status).toBe(503);
    });

    test('a function of the request gives its priority, whatever the client says', async () => {
      const api = await rig.limiter(SCARCE);
      const asked: unknown[] = [];
      let is: Priority = 'default';
      const priority = (request: unknown) => {
        asked.push(request);
        return is;
      };
      const { url } = await serve([api], { priority });
      const ask = async () => (await fetch(`${url}/ok`, CRITICAL)).status;
      expect(await ask()).toBe(503);
      is = 'critical';
      expect(await ask()).toBe(200);
      is = 'sheddable';
      expect(await ask()).toBe(503);
      expect(asked).toEqual([expect.anything(), expect.anything(), expect.anything()]);
      expect(new Set(asked).size).toBe(3);
    });

    test('a priority in a header counts from trusted callers only', async () => {
      const trusting = await rig.limiter(SCARCE);
      const header = 'X-Priority';
      const trusted = await serve([trusting], { priority: { header, trust: ['127.0.0.0/8'] } });
      expect((await fetch(`${trusted.url}/ok`, CRITICAL)).status).toBe(200);
      expect((await fetch(`${trusted.url}/ok`)).status).toBe(503);
      const forged = { headers: { 'x-priority': 'highest' } };
      expect((await fetch(`${trusted.url}/ok`, forged)).status).toBe(503);

      for (const options of [{}, { priority: { header, trust: ['10.0.0.0/8'] } }]) {
        const { url } = await serve([await rig.limiter(SCARCE)], options);
        expect((await fetch(`${url}/ok`, CRITICAL)).status).toBe(503);
      }
    });

    test('C50: the address is the socket’s, whatever is forwarded, until a proxy is trusted', async () => {
      const params = { ...WIDE, subjectRate: 0.01, subjectCapacity: 1 };
      const perSubject = { subject: 'ip:{ip}', rate: 5, capacity: 10 };
      const warnings: string[] = [];
      const onWarning = ({ code }: { code: string }) => void warnings.push(code);
      const from = (client: string) => ({ headers: { 'x-forwarded-for': client } });

      const plain = await rig.limiter(params, { perSubject, onWarning });
      const { url } = await serve([plain]);
      expect((await fetch(`${url}/ok`, from('1.1.1.1'))).status).toBe(200);
      expect((await fetch(`${url}/ok`, from('2.2.2.2'))).status).toBe(429);
      expect(await rig.admin.exists(`flyball:{${plain.name}}:b:ip:127.0.0.1`)).toBe(1);
      expect(warnings.filter((code) => code === 'FLYBALL_W_PROXY_NOT_TRUSTED')).toHaveLength(1);

      for (const trustProxy of [1, 'loopback', ['127.0.0.1']] as const) {
        const api = await rig.limiter(params, { perSubject });
        const behind = await serve([api], { trustProxy });
        expect((await fetch(`${behind.url}/ok`, from('9.9.9.9, 1.1.1.1'))).status).toBe(200);
        expect((await fetch(`${behind.url}/ok`, from('8.8.8.8, 1.1.1.1'))).status).toBe(429);
        expect((await fetch(`${behind.url}/ok`, from('2001:db8::1'))).status).toBe(200);
        expect((await fetch(`${behind.url}/ok`, from('[2001:db8::2]:99'))).status).toBe(429);
        expect(await rig.admin.exists(`flyball:{${api.name}}:b:ip:1.1.1.1`)).toBe(1);
      }
    });

    test('{route} is the pattern or a given name, never the path', async () => {
      const params = { ...WIDE, subjectRate: 0.01, subjectCapacity: 1 };
      const perSubject = { subject: 'route:{route}', rate: 5, capacity: 10 };
      const named = await rig.limiter(params, { perSubject });
      const { url } = await serve([named], { route: 'everything' });
      expect((await fetch(`${url}/users/1`)).status).toBe(200);
      expect((await fetch(`${url}/users/2`)).status).toBe(429);
      expect(await rig.admin.exists(`flyball:{${named.name}}:b:route:everything`)).toBe(1);

      const free = await rig.limiter(params, { perSubject });
      const plain = await serve([free]);
      expect((await fetch(`${plain.url}/users/1`)).status).toBe(200);
      expect((await fetch(`${plain.url}/users/2`)).status).toBe(429);
      const keys = (await rig.admin.keys(`flyball:{${free.name}}:b:*`)).join();
      expect(keys).toContain(framework.knowsRoute ? 'route:%2Fusers%2F:id' : 'ip:127.0.0.1');
      expect(keys).not.toMatch(/users%2F[12]/);
    });

    test('a function chooses the limiter of each request, or none', async () => {
      const [a, b] = [await rig.limiter({ rate: 0.01, capacity: 1 }), await rig.limiter(WIDE)];
      const { url } = await serve([
        ({ path, method }) =>
          path === '/fail' ? null : path === '/ok' && method === 'GET' ? a : b,
      ]);
      const ask = async (path: string) => (await fetch(`${url}${path}`)).status;
      expect([await ask('/ok?q'), await ask('/ok'), await ask('/users/1')]).toEqual([
        200, 503, 200,
      ]);
      expect([await ask('/fail'), await ask('/fail')]).toEqual([502, 502]);
      await ended(b);
      expect(await rig.reported(a)).toMatchObject({ off: 2, adm: 1 });
      expect(await rig.reported(b)).toMatchObject({ off: 1, adm: 1, ok: 1 });
    });

    test('a leaky bucket holds the request until its turn', async () => {
      const api = await rig.limiter({ rate: 20, capacity: 5 }, { algorithm: 'leaky-bucket' });
      const { url } = await serve([api]);
      await api.take();
      const startedMs = performance.now();
      const [first, second] = await Promise.all([fetch(`${url}/ok`), fetch(`${url}/ok`)]);
      expect([first.status, second.status]).toEqual([200, 200]);
      // Two are let go 50 ms apart: the second cannot have been answered before.
      expect(performance.now() - startedMs).toBeGreaterThanOrEqual(49);
    });

    test('a function that throws is the framework’s error, and takes no place', async () => {
      const api = await rig.limiter({ ...WIDE, inFlightMax: 5 });
      const cost = () => {
        throw new Error('no cost');
      };
      const { url } = await serve([api], { cost });
      expect((await fetch(`${url}/ok`)).status).toBe(500);
      expect(api.stats().inFlight).toBe(0);
    });

    if (framework.readsBodyFirst) {
      test('a body that was read before the limiter does not make the request look gone', async () => {
        const api = await rig.limiter({ ...WIDE, inFlightMax: 5 });
        const { url } = await serve([api]);
        const echo = await fetch(`${url}/echo`, { method: 'POST', body: 'hello' });
        expect([echo.ok, await echo.text()]).toEqual([true, 'hello']);
        await ended(api);
        expect(await rig.reported(api)).toMatchObject({ adm: 1, ok: 1 });
      });
    }
  });
}

export async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text;
}
