/** A service that has just started: Redis is slow, its part is held by a dead process, or there is no Redis yet. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimiterWarning,
} from '../../src/index.js';
import { limiterKeys } from '../../src/redis/keys.js';
import { startUser, type User } from '../support/embedded.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { setParams, until } from '../support/sdk-params.js';
import { startProxy } from '../support/tcp-proxy.js';

let server: TestRedis;
let admin: Redis;
let count = 0;
const open: Limiter[] = [];
const warnings: LimiterWarning[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = server.client();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((limiter) => limiter.close()));
  warnings.length = 0;
  vi.unstubAllEnvs();
});
afterAll(() => server.stop());

function limiter(options: Partial<LimiterOptions> = {}): Limiter {
  const made = createLimiter({
    name: `new-${++count}`,
    url: server.url,
    rate: 100,
    capacity: 200,
    inFlightMax: 20,
    completions: true,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  open.push(made);
  return made;
}

test.each([0, 100, 400])(
  'Redis is healthy but slow: after %i ms the first requests are admitted by the numbers given',
  async (waitMs) => {
    const proxy = await startProxy(server.port);
    proxy.delayMs = 100;
    try {
      const api = limiter({ url: `redis://127.0.0.1:${proxy.port}` });
      await new Promise((ok) => setTimeout(ok, waitMs));
      await api.ready();
      for (let i = 0; i < 3; i++) {
        const decision = await api.take();
        expect(decision).toMatchObject({ allowed: true, source: 'local' });
        decision.done();
      }
    } finally {
      await proxy.close();
    }
  },
);

test.each([true, false])(
  'a dead process still holds the whole cap: the new one has one place until that lapses (%s)',
  async (completions) => {
    const name = `new-${++count}`;
    await setParams(admin, { name }, { rate: 1000, capacity: 1000, inFlightMax: 20 });
    const { inFlight } = limiterKeys({ name });
    const [seconds] = await admin.time();
    await admin.hset(inFlight, 'dead', `20 20 1 ${Number(seconds) * 1_000_000}`);
    const api = limiter({ name, deadlineMs: 5_000, completions });
    // A framework may register its plugins long after the limiter was made.
    if (!completions)
      await until('it is known, without a part', () => api.numbers()?.rate === 1000);
    api.expectCompletions();
    const first = await api.take();
    expect(first).toMatchObject({ allowed: true, source: 'redis' });
    if (api.stats().share === 1) expect((await api.take()).reason).toBe('in_flight');
    await until('its part came back', () => api.stats().share === 20, 20_000);
    first.done();
  },
);

test('a living process keeps to its part while a new one waits for its own', async () => {
  const name = `new-${++count}`;
  await setParams(admin, { name }, { rate: 1000, capacity: 1000, inFlightMax: 2 });
  const { inFlight } = limiterKeys({ name });
  // Far ahead of Redis's clock: it lapses 3 s after it is seen, as one that asks again would not.
  const far = String((Date.now() + 60_000) * 1000);
  await admin.hset(inFlight, { '~a': `1 1 1 ${far}`, '~b': `1 1 1 ${far}` });
  const api = limiter({ name, deadlineMs: 5_000 });
  // Two places, and two processes that go before it: no fair part is left for a third.
  expect((await api.take()).reason).toBe('in_flight');
});

test.each(['local', 'closed', 'open'] as const)(
  'no Redis is known yet: onRedisError %s decides, and the private Redis is found once it is there',
  async (onRedisError) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'flyball-start-'));
    vi.stubEnv('FLYBALL_DATA_DIR', dataDir);
    vi.stubEnv('FLYBALL_REDIS_URL', undefined);
    let user: User | undefined;
    try {
      const api = limiter({ url: undefined, onRedisError, deadlineMs: 300 });
      const before = await api.take();
      expect([before.allowed, before.source]).toEqual([onRedisError !== 'closed', onRedisError]);
      expect(warnings[0]).toMatchObject({
        code: 'FLYBALL_W_REDIS_NOT_CONFIGURED',
        message: expect.stringContaining(dataDir),
      });
      user = await startUser(dataDir);
      await until('Redis decides', async () => (await api.peek()).source === 'unmanaged', 20_000);

      // It is stopped and brought anew, at whatever place: found again by itself.
      await user.end('SIGTERM');
      await until('it is away', async () => (await api.peek()).source === onRedisError, 20_000);
      user = await startUser(dataDir);
      await until('and back', async () => (await api.peek()).source === 'unmanaged', 20_000);
    } finally {
      await user?.end('SIGTERM');
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
);

test('a connection that is refused: the warning says why, in its words and without the secret', async () => {
  await admin.acl('SETUSER', 'narrow', 'on', '>sesame', '~*', '+@all', '-select');
  for (const [url, why] of [
    [server.url.replace('//', '//narrow:wrong-sesame@'), /WRONGPASS/],
    [`${server.url.replace('//', '//narrow:sesame@')}/3`, /'select'/],
    [`${server.url}/9999`, /DB index is out of range/],
    ['redis://127.0.0.1:1', /ECONNREFUSED/],
  ] as const) {
    warnings.length = 0;
    const api = limiter({ url });
    await until('it warns', async () => {
      expect((await api.take()).source).not.toBe('redis');
      return warnings.length > 0;
    });
    expect(warnings[0]).toMatchObject({
      code: 'FLYBALL_W_REDIS_AWAY',
      message: expect.stringMatching(why),
    });
    expect(warnings[0]!.message).not.toContain('sesame');
  }
});
