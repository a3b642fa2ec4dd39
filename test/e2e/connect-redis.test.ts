/** Connections against a real server: name, password kept out of errors, hot path fails at once, bounded waits. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { awaitRedis, connect, type RedisClient } from '../../src/redis/connect.js';
import { VERSION } from '../../src/version.js';
import { freePort, startRedis, type TestRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

let server: TestRedis;
const open: RedisClient[] = [];
const track = (redis: RedisClient) => {
  open.push(redis);
  return redis;
};

beforeAll(async () => {
  server = await startRedis();
  // Set afterwards: the starter's own readiness probe knows no password.
  await server.client().config('SET', 'requirepass', 'hunter2');
});
afterEach(() => {
  for (const redis of open.splice(0)) redis.disconnect();
});
afterAll(() => server.stop());

const withPassword = () => server.url.replace('//', '//:hunter2@');

describe('connect', () => {
  test('names the connection after role and version', async () => {
    const redis = track(connect({ url: withPassword(), name: 'cli' }));
    expect(await redis.client('GETNAME')).toBe(`flyball-cli/${VERSION}`);
  });

  test('takes the password from a file when the URL has none', async () => {
    const file = join(tempFolder('pw'), 'pw');
    writeFileSync(file, 'hunter2\n');
    const env = { FLYBALL_REDIS_URL: server.url, FLYBALL_REDIS_PASSWORD_FILE: file };
    expect(await track(connect({ env, name: 'daemon' })).ping()).toBe('PONG');
  });

  test('a wrong password is said at once, and no error carries it', async () => {
    const url = server.url.replace('//', '//:secret-wrong@');
    const redis = track(connect({ url, name: 'daemon' }));
    const errors: Error[] = [];
    redis.on('error', (error) => errors.push(error));
    // Far beyond the test's own time: waiting for it out would fail.
    const fault: Error = await awaitRedis(redis, { url, deadlineMs: 120_000 }).then(
      () => new Error('connected'),
      (error) => error,
    );
    expect(fault.message).toMatch(/WRONGPASS/);
    expect(errors.length).toBeGreaterThan(0);
    for (const error of [fault, ...errors]) {
      expect(`${error.message} ${JSON.stringify(error)}`).not.toContain('secret-wrong');
    }
  });

  test.each([true, false])(
    'hot path %s: a database that is not there, or not for this user, is said; nothing reaches another one',
    async (hotPath) => {
      const admin = track(connect({ url: withPassword(), name: 'cli' }));
      await admin.acl('SETUSER', 'narrow', 'on', '>narrow', '~*', '+@all', '-select');
      const given = [withPassword(), server.url.replace('//', '//narrow:narrow@')];
      for (const [url, why] of [
        [`${given[0]}/9999`, /DB index is out of range.*database number at the end of the URL/],
        [`${given[1]}/1`, /'select'.*this user may SELECT/],
      ] as const) {
        const redis = track(connect({ url, name: 'sdk', hotPath }));
        let answered = 0;
        const count = () => redis.incr('elsewhere').then(() => answered++);
        redis.on('ready', () => void count().catch(() => {}));
        for (let i = 0; i < 3; i++) count().catch(() => {});
        // Far beyond the test's own time: waiting for it out would fail.
        await expect(awaitRedis(redis, { url, deadlineMs: 120_000 })).rejects.toThrow(why);
        await count().catch(() => {});
        expect(answered).toBe(0);
        expect(await admin.exists('elsewhere')).toBe(0);
      }
    },
  );

  test('nobody listening: an error with the address after the deadline', async () => {
    const url = `redis://bob:hunter2@127.0.0.1:${await freePort()}`;
    const redis = track(connect({ url, name: 'daemon' }));
    const fault = awaitRedis(redis, { url, deadlineMs: 600 });
    await expect(fault).rejects.toMatchObject({ code: 'FLYBALL_E_REDIS_UNREACHABLE' });
    await expect(fault).rejects.toThrow(/bob:\*\*\*@127\.0\.0\.1:\d+.*ECONNREFUSED/);
  });

  test('hot path: a command fails at once while Redis is away, and works again when it is back', async () => {
    const own = await startRedis();
    try {
      const redis = track(connect({ url: own.url, name: 'sdk', hotPath: true }));
      await awaitRedis(redis, { url: own.url, deadlineMs: 10_000 });
      await own.kill();
      await expect.poll(() => redis.status, { timeout: 10_000 }).not.toBe('ready');
      // A queued command would wait for the server, which nobody starts meanwhile.
      await expect(redis.get('x')).rejects.toThrow();
      await own.restart();
      await expect.poll(() => redis.ping().catch(() => 'away'), { timeout: 10_000 }).toBe('PONG');
    } finally {
      await own.stop();
    }
  });

  test.each([true, false])(
    'hot path %s: a command under way when the connection breaks is failed, not sent again',
    async (hotPath) => {
      const own = await startRedis();
      try {
        const redis = track(connect({ url: own.url, name: 'cli', hotPath }));
        await awaitRedis(redis, { url: own.url, deadlineMs: 10_000 });
        own.pause();
        const pending = redis.incr('charged').then(
          () => 'done',
          () => 'failed',
        );
        await own.kill();
        expect(await pending).toBe('failed');
        await own.restart();
        await expect.poll(() => redis.ping().catch(() => 'away'), { timeout: 10_000 }).toBe('PONG');
        expect(await redis.get('charged')).toBeNull();
      } finally {
        await own.stop();
      }
    },
  );
});
