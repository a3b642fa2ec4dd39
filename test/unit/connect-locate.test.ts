/** Which Redis is found, how URLs are read, and that no password is shown. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environmentAuth, parseRedisUrl, resolveRedis } from '../../src/redis/locate.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = () => tempFolder('locate');

describe('resolveRedis', () => {
  test('an explicit URL leads over the environment, which leads over redis.json', () => {
    const dataDir = folder();
    const file = { schema: 1, url: 'unix:///run/f.sock', socket: '/run/f.sock', pid: 1 };
    writeFileSync(join(dataDir, 'redis.json'), JSON.stringify(file));
    const env = { FLYBALL_REDIS_URL: 'redis://env:1' };
    expect(resolveRedis({ url: 'redis://mine:1', env, dataDir })).toEqual({
      url: 'redis://mine:1',
      source: 'option',
    });
    expect(resolveRedis({ env, dataDir })).toEqual({ url: 'redis://env:1', source: 'environment' });
    expect(resolveRedis({ env: {}, dataDir })).toEqual({ url: file.url, source: 'embedded' });
    expect(resolveRedis({ env: { FLYBALL_DATA_DIR: dataDir } }).source).toBe('embedded');
  });

  test('with none, or a torn redis.json, the error says what to set', () => {
    const dataDir = folder();
    writeFileSync(join(dataDir, 'redis.json'), '{"schema":1,"url":"uni');
    expect(() => resolveRedis({ env: {}, dataDir })).toThrow(/FLYBALL_REDIS_URL.*flyball run/);
  });
});

describe('parseRedisUrl', () => {
  test.each([
    ['redis://h', { host: 'h', port: 6379, db: 0 }],
    ['redis://h:7/3', { host: 'h', port: 7, db: 3 }],
    ['redis://[::1]:7', { host: '::1', port: 7, db: 0 }],
    ['redis://bob:p%40ss@h', { host: 'h', port: 6379, db: 0, username: 'bob', password: 'p@ss' }],
    ['redis://:pw@h', { host: 'h', port: 6379, db: 0, password: 'pw' }],
    ['rediss://h:7', { host: 'h', port: 7, db: 0, tls: { servername: 'h' } }],
    ['unix:///tmp/a%20b/r.sock', { path: '/tmp/a b/r.sock', db: 0 }],
    ['unix:///r.sock?db=2', { path: '/r.sock', db: 2 }],
  ])('%s', (url, expected) => {
    expect(parseRedisUrl(url)).toEqual(expected);
  });

  test.each(['localhost:6379', 'http://h', 'redis://h/notanumber', 'unix://', 'redis:///0', ''])(
    '%j is refused with what is allowed',
    (url) => {
      expect(() => parseRedisUrl(url)).toThrow(/rediss:\/\/host:port\/db or unix:/);
    },
  );

  test('a fault never shows the password', () => {
    for (const url of ['redis://bob:hunter2@h/x', 'foo://bob:hunter2@h', 'redis://:hunter2@/x']) {
      expect(() => parseRedisUrl(url)).toThrow(/^(?!.*hunter2)/);
      expect(() => parseRedisUrl(url)).not.toThrow(/hunter2/);
    }
  });
});

describe('environmentAuth', () => {
  test('password from the variable, or from a file without its line break', () => {
    const file = join(folder(), 'pw');
    writeFileSync(file, 'from file\n');
    expect(environmentAuth({ FLYBALL_REDIS_PASSWORD: 'a', FLYBALL_REDIS_USERNAME: 'u' })).toEqual({
      password: 'a',
      username: 'u',
    });
    expect(environmentAuth({ FLYBALL_REDIS_PASSWORD_FILE: file })).toEqual({
      password: 'from file',
    });
    expect(environmentAuth({})).toEqual({});
    expect(() => environmentAuth({ FLYBALL_REDIS_PASSWORD_FILE: '/no/such' })).toThrow(/ENOENT/);
  });
});
