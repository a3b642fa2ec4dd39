/** Who may do what over HTTP: roles by route, tokens that come and go, cookies and what they need, hosts. */
import { writeFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { routes } from '../../src/api/routes.js';
import { SESSION_MS } from '../../src/api/sessions.js';
import { streamRoute } from '../../src/api/stream.js';
import { hashToken, newToken, tokenLine } from '../../src/api/tokens.js';
import type { Role } from '../../src/api/types.js';
import { type ManualClock, manualClock } from '../../src/clock.js';
import { type ApiSetup, rawRequest, startApi, statusOf, type TestApi } from '../support/api.js';
import { mustRead, seedLimiter } from '../support/cli-run.js';
import { redisBench } from '../support/redis-bench.js';

let redis: Redis;
let clock: ManualClock;
let api: TestApi;

redisBench(async (bench) => {
  ({ redis } = bench);
  await seedLimiter(redis, { name: 'checkout' });
  await start();
});
afterEach(() => api.close());

async function start(setup: ApiSetup = {}) {
  clock = manualClock(Date.now());
  api = await startApi(redis, { clock, ...setup });
}

async function restart(setup: ApiSetup) {
  await api.close();
  await start(setup);
}

const ROLES: (Role | null)[] = [null, 'reader', 'operator', 'admin'];
const rank = (role: Role | null) => ROLES.indexOf(role);
const all = [...routes, streamRoute].map(({ method, path, role }) => ({ method, path, role }));
/** A body that no verb takes: past the gate it is 400, and nothing is done. */
const BODY = { nothing: 'known' };

async function asked(role: Role | null, method: string, path: string) {
  const at = path.replace('{limiter}', 'checkout').replace('{revision}', '1');
  const stop = new AbortController();
  const reply = await fetch(`${api.url}/api/v1${at}`, {
    method: method.toUpperCase(),
    signal: stop.signal,
    headers: {
      ...(role === null ? {} : { authorization: `Bearer ${api.tokens[role]}` }),
      ...(method === 'post' ? { 'content-type': 'application/json' } : {}),
    },
    ...(method === 'post' ? { body: JSON.stringify(BODY) } : {}),
  });
  const { status } = reply;
  stop.abort();
  return status;
}

describe.each([
  ['on loopback reading is open', '127.0.0.1'],
  ['elsewhere each answer needs a token', '0.0.0.0'],
])('roles: %s', (_name, boundTo) => {
  test('each route lets in its role and those above, and nobody else', async () => {
    await restart({ boundTo });
    for (const { method, path, role } of all) {
      for (const caller of ROLES) {
        clock.advance(1000);
        const open = role === 'reader' && boundTo === '127.0.0.1';
        const may = role === null || open || rank(caller) >= rank(role);
        const status = await asked(caller, method, path);
        const gate = caller === null ? 401 : 403;
        // Signing in is for pages: it wants their header.
        const signsIn = method === 'post' && path === '/session';
        const seen = [401, 403].includes(status) && !signsIn ? status : 0;
        expect([method, path, caller, seen]).toEqual([method, path, caller, may ? 0 : gate]);
      }
    }
  });
});

test('a token that does not count is refused even where none is needed', async () => {
  for (const authorization of [
    'Bearer nothing',
    `Bearer ${newToken()}`,
    'Bearer',
    `Basic ${Buffer.from('a:b').toString('base64')}`,
    `Bearer ${api.tokens.admin}x`,
    `Bearer ${'x'.repeat(5000)}`,
  ]) {
    const reply = await fetch(`${api.url}/api/v1/limiters`, { headers: { authorization } });
    expect([authorization.slice(0, 20), reply.status]).toEqual([authorization.slice(0, 20), 401]);
    expect(reply.headers.get('www-authenticate')).toContain('Bearer');
  }
});

test('tokens that are added count, those taken back do not, without a restart', async () => {
  const ada = newToken();
  writeFileSync(
    api.tokensFile,
    tokenLine({ name: 'ada', role: 'operator', sha256: hashToken(ada) }),
  );
  clock.advance(1001);
  const headers = { authorization: `Bearer ${ada}` };
  const reply = await fetch(`${api.url}/api/v1/session`, { headers });
  expect(await reply.json()).toMatchObject({ name: 'ada', role: 'operator', by: 'token' });
  expect((await api.ask('admin', 'GET', '/session')).status).toBe(401);
});

test('a broken file of tokens keeps those known', async () => {
  writeFileSync(api.tokensFile, 'what is this');
  clock.advance(1001);
  expect((await api.ask('admin', 'GET', '/session')).status).toBe(200);
});

describe('cookies', () => {
  const page = () => ({ origin: api.url, 'x-flyball-request': '1' });

  async function signIn(token: string, headers: Record<string, string> = page()) {
    const reply = await api.ask(null, 'POST', '/session', { body: { token }, headers });
    const set = reply.headers.get('set-cookie');
    return { reply, set, cookie: set?.split(';')[0] ?? '' };
  }

  test('a token becomes a cookie that scripts cannot read and other sites do not send', async () => {
    const { reply, set, cookie } = await signIn(api.tokens.operator);
    expect(await reply.json()).toMatchObject({ name: 'the-operator', by: 'cookie' });
    expect(set).toMatch(/^flyball_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=/);
    expect(set).not.toContain('Secure');
    const tls = await signIn(api.tokens.operator, {
      origin: api.url.replace('http:', 'https:'),
      'x-flyball-request': '1',
    });
    expect(tls.set).toMatch(/; Secure$/);
    const who = await api.ask(null, 'GET', '/session', { headers: { cookie } });
    expect(await who.json()).toMatchObject({ name: 'the-operator', role: 'operator' });
  });

  test('a wrong token is no session', async () => {
    const { reply, set } = await signIn(newToken());
    expect([reply.status, set]).toEqual([401, null]);
  });

  test('a change by cookie needs Origin and the header; neither a form nor another page has both', async () => {
    const { cookie } = await signIn(api.tokens.operator);
    const change = (headers: Record<string, string>) =>
      api.ask(null, 'POST', '/limiters/checkout/freeze', {
        body: { revision: 1 },
        headers: { cookie, ...headers },
      });
    const refused: Record<string, string>[] = [
      {},
      { 'x-flyball-request': '1' },
      { origin: api.url },
      { origin: 'https://evil.example', 'x-flyball-request': '1' },
      { origin: 'null', 'x-flyball-request': '1' },
      { origin: `${api.url}.evil.example`, 'x-flyball-request': '1' },
      { origin: api.url, 'x-flyball-request': '0' },
    ];
    for (const headers of refused) {
      const reply = await change(headers);
      expect([headers, reply.status]).toEqual([headers, 403]);
      expect(await reply.json()).toMatchObject({ code: 'FLYBALL_E_API_ORIGIN' });
    }
    expect((await mustRead(redis, { name: 'checkout' })).revision).toBe(1);
    expect((await change(page())).status).toBe(200);
    expect((await mustRead(redis, { name: 'checkout' })).heldBy).toBe('the-operator');
  });

  test('another page can neither sign a browser in nor use a token it has', async () => {
    const origin = 'https://evil.example';
    const { reply } = await signIn(api.tokens.admin, { origin, 'x-flyball-request': '1' });
    expect(reply.status).toBe(403);
    const change = await api.ask('operator', 'POST', '/limiters/checkout/freeze', {
      body: { revision: 1 },
      headers: { origin },
    });
    expect(change.status).toBe(403);
  });

  test('a page of another origin may not even ask, nor frame an answer, though who follows a link may look', async () => {
    const raw = (site: string, mode: string, dest: string) =>
      rawRequest(
        api.port,
        `GET /api/v1/limiters HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: ${site}\r\nSec-Fetch-Mode: ${mode}\r\nSec-Fetch-Dest: ${dest}\r\nConnection: close\r\n\r\n`,
      );
    for (const [site, mode, dest, status] of [
      ['cross-site', 'no-cors', 'image', 403],
      ['cross-site', 'cors', 'empty', 403],
      ['cross-site', 'navigate', 'iframe', 403],
      ['cross-site', 'navigate', 'document', 200],
      ['same-site', 'no-cors', 'image', 403],
      ['same-site', 'cors', 'empty', 403],
      ['same-site', 'navigate', 'iframe', 403],
      ['same-site', 'navigate', 'document', 200],
      ['same-origin', 'cors', 'empty', 200],
      ['none', 'navigate', 'document', 200],
    ] as const) {
      const got = statusOf(await raw(site, mode, dest));
      expect([site, mode, dest, got]).toEqual([site, mode, dest, status]);
    }
  });

  test('no answer lets another origin read it', async () => {
    const headers = { origin: 'https://evil.example' };
    const reply = await api.ask('reader', 'GET', '/limiters', { headers });
    const names = [...reply.headers.keys()];
    expect(names.filter((name) => name.startsWith('access-control-'))).toEqual([]);
    expect(reply.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    const preflight = await fetch(`${api.url}/api/v1/limiters/checkout/freeze`, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(405);
  });

  test('it ends: by a sign out, by time, and with its token', async () => {
    const who = async (cookie: string) =>
      (await (await api.ask(null, 'GET', '/session', { headers: { cookie } })).json()) as object;
    const first = (await signIn(api.tokens.reader)).cookie;
    const out = await api.ask(null, 'DELETE', '/session', {
      headers: { cookie: first, ...page() },
    });
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect(await who(first)).toMatchObject({ name: null, by: 'open' });
    const second = (await signIn(api.tokens.reader)).cookie;
    clock.advance(SESSION_MS - 1);
    expect(await who(second)).toMatchObject({ name: 'the-reader' });
    clock.advance(1);
    expect(await who(second)).toMatchObject({ name: null });
    const third = (await signIn(api.tokens.reader)).cookie;
    writeFileSync(api.tokensFile, '# all taken back\n');
    clock.advance(1001);
    expect(await who(third)).toMatchObject({ name: null });
    expect(await who('flyball_session=made-up')).toMatchObject({ name: null });
  });
});

describe('DNS rebinding: only names of this daemon are answered', () => {
  const status = async (host: string) =>
    statusOf(
      await rawRequest(
        api.port,
        `GET /api/v1/limiters HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      ),
    );

  test('on loopback', async () => {
    for (const host of ['127.0.0.1', '127.0.0.1:9464', 'localhost:1', '[::1]:80', 'LOCALHOST']) {
      expect([host, await status(host)]).toEqual([host, 200]);
    }
    for (const host of ['evil.example', '127.0.0.1.evil.example', '10.0.0.1', 'localhost.evil']) {
      expect([host, await status(host)]).toEqual([host, 421]);
    }
    for (const host of ['', 'a b', '127.0.0.1:99999999', 'localhost@evil', '[::1', 'a:b:c']) {
      expect([host, [400, 421].includes(await status(host))]).toEqual([host, true]);
    }
  });

  test('elsewhere: addresses, and the names that are given', async () => {
    await restart({ boundTo: '0.0.0.0', hosts: ['flyball.example', 'other.example:8443'] });
    for (const host of ['10.1.2.3:9464', 'flyball.example', 'flyball.example:1', '[fe80::1]']) {
      expect([host, await status(host)]).toEqual([host, 401]);
    }
    expect(await status('other.example:8443')).toBe(401);
    for (const host of ['evil.example', 'other.example:1', 'flyball.example.evil']) {
      expect([host, await status(host)]).toEqual([host, 421]);
    }
  });
});

test('too many requests of one client are told to wait; another is not, and Redis has no part in it', async () => {
  const statuses: number[] = [];
  for (let i = 0; i < 130; i++) statuses.push((await api.ask('reader', 'GET', '/session')).status);
  const first = statuses.indexOf(429);
  expect(first).toBeGreaterThan(99);
  expect(statuses.slice(first).every((status) => status === 429)).toBe(true);
  const reply = await api.ask('reader', 'GET', '/session');
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await reply.json()).toMatchObject({ code: 'FLYBALL_E_API_RATE', status: 429 });
  expect((await api.ask('operator', 'GET', '/session')).status).toBe(200);
  clock.advance(1000);
  expect((await api.ask('reader', 'GET', '/session')).status).toBe(200);
});

test('guessing tokens runs into the same limit', async () => {
  const guess = () =>
    fetch(`${api.url}/api/v1/session`, { headers: { authorization: 'Bearer x' } });
  const statuses = new Set<number>();
  for (let i = 0; i < 130; i++) statuses.add((await guess()).status);
  expect(statuses).toEqual(new Set([401, 429]));
});
