/** Requests that mean harm: paths, sizes, forms, slow clients, hostile names; and a Redis that goes and comes back. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { write } from '../../src/actuate/actuator.js';
import { MOST_BYTES } from '../../src/api/gate.js';
import { connect } from '../../src/redis/connect.js';
import { jsonOf, rawRequest, startApi, statusOf, type TestApi } from '../support/api.js';
import { mustRead, seedLimiter } from '../support/cli-run.js';
import { until } from '../support/daemon.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

let server: TestRedis;
let redis: Redis;
let api: TestApi;
let dashboard: string;

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  redis.on('error', () => {});
  dashboard = mkdtempSync(join(tmpdir(), 'flyball-pages-'));
  mkdirSync(join(dashboard, 'assets'));
  writeFileSync(join(dashboard, 'index.html'), '<!doctype html><title>page</title>');
  writeFileSync(join(dashboard, 'assets/main-1a2b3c4d.js'), 'export {};');
  writeFileSync(join(dashboard, 'assets/main.js.map'), '{}');
  writeFileSync(join(dashboard, 'secret'), 'a secret');
  symlinkSync('/etc/passwd', join(dashboard, 'passwd.txt'));
});
afterAll(async () => {
  rmSync(dashboard, { recursive: true, force: true });
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  await seedLimiter(redis, { name: 'checkout' });
  api = await startApi(redis, { dashboard });
});
afterEach(() => api.close());

const raw = (start: string, headers = '', body = '') =>
  rawRequest(
    api.port,
    `${start} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n${body}`,
  );

describe('paths', () => {
  test('the dashboard hands out its own files by exact path and nothing else', async () => {
    for (const path of ['/', '/index.html', '/assets/main-1a2b3c4d.js']) {
      expect([path, statusOf(await raw(`GET ${path}`))]).toEqual([path, 200]);
    }
    for (const path of [
      '/../../etc/passwd',
      '/..%2f..%2fetc/passwd',
      '/%2e%2e/%2e%2e/etc/passwd',
      '/assets/..%2fsecret',
      '/assets/../secret',
      '/assets//main-1a2b3c4d.js',
      '/assets/main-1a2b3c4d.js%00.html',
      '/assets\\..\\secret',
      '/assets/main.js.map',
      '/secret',
      '/passwd.txt',
      '/%',
      '/%c0%ae%c0%ae/secret',
      '//evil.example/',
    ]) {
      const answer = await raw(`GET ${path}`);
      expect([path, answer.includes('root:') || answer.includes('a secret')]).toEqual([
        path,
        false,
      ]);
      expect([path, [400, 404].includes(statusOf(answer))]).toEqual([path, true]);
    }
  });

  test('its pages load nothing from elsewhere, lie in no frame, and are known by their hash', async () => {
    const page = await fetch(`${api.url}/`);
    const csp = page.headers.get('content-security-policy')!;
    expect(csp).toContain("default-src 'none'");
    expect(csp).toContain("frame-ancestors 'none'");
    expect(csp).not.toMatch(/unsafe|https?:/);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    const again = await fetch(`${api.url}/`, {
      headers: { 'if-none-match': page.headers.get('etag')! },
    });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const asset = await fetch(`${api.url}/assets/main-1a2b3c4d.js`);
    expect(asset.headers.get('cache-control')).toContain('immutable');
    const host = await rawRequest(
      api.port,
      'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    );
    expect(statusOf(host)).toBe(421);
  });

  test('limiters are known by their names alone', async () => {
    for (const name of [
      '..%2fcheckout',
      'checkout%00',
      '%7Bcheckout%7D',
      'CHECKOUT',
      'checkout%0d%0aset-cookie:x',
      '__proto__',
      'constructor',
      '%F0%9F%92%A9',
      'a'.repeat(65),
      '<img src=x>',
    ]) {
      const answer = await raw(`GET /api/v1/limiters/${encodeURI(name)}/top`);
      expect([name, [400, 404].includes(statusOf(answer))]).toEqual([name, true]);
      expect(answer).not.toMatch(/^set-cookie/im);
    }
  });

  test('an unknown path, a method that a path does not take: problems, with what is there', async () => {
    const missing = await api.ask(null, 'GET', '/nothing');
    expect(missing.headers.get('content-type')).toBe('application/problem+json');
    expect([missing.status, (await jsonOf(missing)).code]).toEqual([404, 'FLYBALL_E_API_PATH']);
    const wrong = await api.ask('admin', 'DELETE', '/limiters/checkout');
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET']);
    const head = await api.ask('reader', 'HEAD', '/limiters');
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});

describe('bodies', () => {
  const auth = () => `Authorization: Bearer ${api.tokens.operator}\r\n`;
  const json = 'Content-Type: application/json\r\n';
  const path = 'POST /api/v1/limiters/checkout/freeze';

  test('larger than what is allowed: 413, by what is said and by what comes', async () => {
    const large = 'x'.repeat(MOST_BYTES + 1);
    const said = await raw(path, `${auth()}${json}Content-Length: ${large.length}\r\n`, large);
    expect(statusOf(said)).toBe(413);
    const chunk = `${(32_768).toString(16)}\r\n${'x'.repeat(32_768)}\r\n`;
    const chunked = `${chunk.repeat(4)}0\r\n\r\n`;
    const came = await raw(path, `${auth()}${json}Transfer-Encoding: chunked\r\n`, chunked);
    expect(statusOf(came)).toBe(413);
  });

  test('not JSON: 415; JSON that is none, or another: 400 with each fault', async () => {
    const headers = { 'content-type': 'text/plain' };
    const plain = await api.ask('operator', 'POST', '/limiters/checkout/freeze', {
      body: {},
      headers,
    });
    expect(plain.status).toBe(415);
    const torn = await raw(path, `${auth()}${json}Content-Length: 2\r\n`, '{x');
    expect(statusOf(torn)).toBe(400);
    const reply = await api.ask('operator', 'POST', '/limiters/checkout/pin', {
      body: { revision: -1, rate: 'ten', forMs: 1, colour: 'red', __proto__x: 1 },
    });
    const { faults, code } = await jsonOf(reply);
    expect([reply.status, code]).toEqual([400, 'FLYBALL_E_API_INVALID']);
    expect(faults.map(({ field }: { field: string }) => field).sort()).toEqual([
      '__proto__x',
      'colour',
      'forMs',
      'rate',
      'revision',
    ]);
    for (const body of [null, [], 'text', 7, { revision: 1, __proto__: null, reason: '' }]) {
      const answer = await api.ask('operator', 'POST', '/limiters/checkout/freeze', { body });
      expect([JSON.stringify(body), answer.status]).toEqual([JSON.stringify(body), 400]);
    }
    const polluted = await raw(
      path,
      `${auth()}${json}Content-Length: 40\r\n`,
      '{"revision":1,"__proto__":{"dryRun":true}}'.slice(0, 40),
    );
    expect(statusOf(polluted)).toBe(400);
    expect((await mustRead(redis, { name: 'checkout' })).revision).toBe(1);
  });

  test('times and ids before anything was: nothing is found, and no fault of the daemon', async () => {
    for (const path of [
      'limiters/checkout/audit?before=0-0',
      'limiters/checkout/audit?until=0',
      'limiters/checkout/audit?since=0000-01-01',
      'limiters/checkout/episodes?before=0-0',
      'limiters/checkout/episodes?until=0',
      'limiters/checkout/report?since=0001-01-01',
    ]) {
      const { status } = await api.ask(null, 'GET', `/${path}`);
      expect([path, status]).toEqual([path, 200]);
    }
    const odd = await api.ask(null, 'GET', '/limiters/checkout/audit?since=-1');
    expect(odd.status).toBe(400);
    for (const toMs of [0, 1, Number.MAX_SAFE_INTEGER]) {
      const body = { toMs, dryRun: true };
      const reply = await api.ask('operator', 'POST', '/limiters/checkout/rollback', { body });
      expect([toMs, reply.status]).toEqual([toMs, 404]);
    }
  });

  test('a hold of a length and without an end at once is no wish', async () => {
    const body = { rate: 50, forMs: 1000, hold: true, dryRun: true };
    const reply = await api.ask('operator', 'POST', '/limiters/checkout/pin', { body });
    expect([reply.status, (await jsonOf(reply)).faults[0].field]).toEqual([400, 'forMs']);
  });

  test('a body that ends early is no fault of the daemon', async () => {
    const head = `Host: 127.0.0.1\r\nX-Flyball-Request: 1\r\nContent-Type: application/json\r\n`;
    const socket = connectTo(api.port, '127.0.0.1');
    socket.write(
      `POST /api/v1/session HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n{`,
    );
    // The head is read: it says that it waits for the rest.
    await once(socket, 'data');
    const count = async () => (await api.metrics.apiRequests.get()).values;
    socket.destroy();
    const [seen] = await until('its answer', async () => {
      const values = (await count()).filter(({ labels }) => labels.route === 'post /session');
      return values.length > 0 ? values : null;
    });
    expect(seen!.labels.status).toBe('400');
  });

  test('a revision that is none; a query where none is taken', async () => {
    const of = async (path: string) => {
      const reply = await api.ask(null, 'GET', path);
      return [reply.status, (await jsonOf(reply)).faults?.[0]?.field];
    };
    for (const revision of ['1e3', '-1', 'x', '9'.repeat(16)]) {
      expect(await of(`/limiters/checkout/revisions/${revision}/explain`)).toEqual([
        400,
        'revision',
      ]);
    }
    expect(await of('/limiters?sort=name')).toEqual([400, 'sort']);
    expect(await of('/fleet?x=%zz')).toEqual([400, 'x']);
  });

  test('queries: each fault by its field', async () => {
    const reply = await api.ask(null, 'GET', '/limiters/checkout/audit?limit=0&since=never&odd=1');
    const { faults } = await jsonOf(reply);
    expect(reply.status).toBe(400);
    expect(faults.map(({ field }: { field: string }) => field).sort()).toEqual([
      'limit',
      'odd',
      'since',
    ]);
  });
});

describe('slow clients', () => {
  test('who never ends their head or body is cut, and the others are served meanwhile', async () => {
    await api.close();
    api = await startApi(redis, {
      limits: {
        headersTimeout: 300,
        requestTimeout: 600,
        keepAliveTimeout: 300,
        connectionsCheckingInterval: 50,
        silentMs: 20_000,
      },
    });
    const head = 'GET /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\n';
    const slow = Array.from({ length: 50 }, () => rawRequest(api.port, head));
    const post = `POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Flyball-Request: 1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
    const slowBody = rawRequest(api.port, post);
    expect((await api.ask(null, 'GET', '/session')).status).toBe(200);
    // All of them end by the server's doing.
    for (const answer of await Promise.all(slow)) expect([0, 408]).toContain(statusOf(answer));
    expect([0, 408]).toContain(statusOf(await slowBody));
  });
});

describe('C98: names and words that mean harm are inert', () => {
  const HOSTILE = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    '=cmd|calc!A1',
    '\u202egnp.exe',
    '\u001b[31mred\u001b[0m\u2028\r\nset-cookie: a=b',
    'x'.repeat(10_000),
  ].join(' ');

  test('in JSON, which no browser takes for a page, and in the stream, in which they begin no event', async () => {
    const { epoch, revision } = await mustRead(redis, { name: 'checkout' });
    const values = {
      mode: 'auto',
      state: 'closed',
      rate: 90,
      capacity: 200,
      inFlightMax: 24,
    } as const;
    const wrote = await write(
      redis,
      { name: 'checkout' },
      {
        authority: { kind: 'person' },
        expected: { epoch, revision },
        change: { rate: 90 },
        cause: 'person',
        actor: { kind: 'person', name: HOSTILE },
        reason: 'pin',
        sentence: HOSTILE,
        before: values,
        after: values,
        policyHash: 'a'.repeat(64),
        detail: { [HOSTILE]: HOSTILE },
      },
      { leaseMs: 0, nowMs: Date.now() },
    );
    expect(wrote.status).toBe('ok');
    const reply = await api.ask('reader', 'GET', '/limiters/checkout/audit');
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    const text = await reply.text();
    expect(text).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e]/u);
    expect(JSON.parse(text).entries[0].sentence).toBe(HOSTILE);
    const stream = await rawRequest(
      api.port,
      'GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
      (seen) => seen.includes('event: tick'),
    );
    expect(stream).not.toMatch(/^set-cookie/im);
    expect(stream.split('\n').filter((line) => line.startsWith('event: snapshot'))).toHaveLength(1);
  });
});

describe('Redis killed and back', () => {
  test('problems say so, the gate goes on, and answers come back by themselves', async () => {
    await api.close();
    const patient = connect({ url: server.url, name: 'daemon' });
    patient.on('error', () => {});
    api = await startApi(patient);
    expect((await api.ask('reader', 'GET', '/limiters')).status).toBe(200);
    await server.kill();
    const away = await until('an answer of 503', async () => {
      const reply = await api.ask('reader', 'GET', '/limiters/checkout/audit');
      return reply.status === 503 ? reply : null;
    });
    expect((await jsonOf(away)).code).toMatch(/^FLYBALL_E_REDIS_/);
    expect(away.headers.get('retry-after')).toBe('1');
    expect((await api.ask(null, 'GET', '/session')).status).toBe(200);
    expect((await api.ask(null, 'POST', '/limiters/checkout/freeze', { body: {} })).status).toBe(
      401,
    );
    await server.restart();
    await until('limiters again', async () => {
      const reply = await api.ask('operator', 'GET', '/limiters');
      return reply.status === 200;
    });
    patient.disconnect();
  });
});
