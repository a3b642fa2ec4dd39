/** Which Redis is found, how URLs are read, and that no password is shown. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environmentAuth, sentinelAuth } from '../../src/redis/credentials.js';
import { resolveRedis } from '../../src/redis/locate.js';
import { parseRedisUrl } from '../../src/redis/url.js';
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

const single = { kind: 'single', tls: false, db: 0 } as const;

describe('parseRedisUrl', () => {
  test.each([
    ['redis://h', { ...single, host: 'h', port: 6379 }],
    ['redis://h:7/3', { ...single, host: 'h', port: 7, db: 3 }],
    ['redis://[::1]:7', { ...single, host: '::1', port: 7 }],
    [
      'redis://bob:p%40ss@h',
      { ...single, host: 'h', port: 6379, username: 'bob', password: 'p@ss' },
    ],
    ['redis://:pw@h', { ...single, host: 'h', port: 6379, password: 'pw' }],
    ['redis://bob@h', { ...single, host: 'h', port: 6379, username: 'bob' }],
    ['rediss://h:7', { ...single, host: 'h', port: 7, tls: true }],
    ['unix:///tmp/a%20b/r.sock', { ...single, path: '/tmp/a b/r.sock' }],
    ['unix:///r.sock?db=2', { ...single, path: '/r.sock', db: 2 }],
    [
      'redis+sentinel://bob:p%2Fw@a,b:7,[::1]:8/main%20one/3',
      {
        kind: 'sentinel',
        tls: false,
        username: 'bob',
        password: 'p/w',
        sentinels: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 7 },
          { host: '::1', port: 8 },
        ],
        master: 'main one',
        db: 3,
      },
    ],
    [
      'rediss+cluster://a,b:7',
      {
        kind: 'cluster',
        tls: true,
        nodes: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 7 },
        ],
        db: 0,
      },
    ],
    [
      'redis+cluster://a/0',
      { kind: 'cluster', tls: false, nodes: [{ host: 'a', port: 6379 }], db: 0 },
    ],
  ])('%s', (url, expected) => {
    expect(parseRedisUrl(url)).toEqual(expected);
  });

  test.each([
    ['localhost:6379', 'is not a URL'],
    ['redis-cluster://h1:1,h2:2', 'begins with redis-cluster://'],
    ['redis2://h', 'begins with redis2://'],
    ['', 'is not a URL'],
    ['http://h', 'begins with http://'],
    ['redis+sentinels://h/m', 'begins with redis+sentinels://'],
    ['redis://h/notanumber', 'names database "notanumber"'],
    ['redis:///0', 'names no host'],
    ['redis://h:0', 'names port 0'],
    ['redis://h:70000', 'names port 70000'],
    ['redis://h:x', 'names the host "h:x"'],
    ['redis://a,b', 'names several hosts'],
    ['redis://h?family=6', 'has parameters'],
    ['redis://%zz@h', 'holds a %'],
    ['unix://', 'has no absolute socket path'],
    ['redis+sentinel://a:26379', 'does not end in the name'],
    ['redis+sentinel://a,/m', 'names no host'],
    ['redis+sentinel://a/m/1/2', 'does not end in the name'],
    ['redis+cluster://a/1', 'has only database 0'],
  ])('%j is refused, with what is allowed', (url, fault) => {
    expect(() => parseRedisUrl(url)).toThrow(fault);
    expect(() => parseRedisUrl(url)).toThrow(/rediss:\/\/host:port\/db, rediss\+sentinel/);
  });

  test('a fault never shows the password', () => {
    for (const url of [
      'redis://bob:hunter2@h/x',
      'foo://bob:hunter2@h',
      'redis://:hunter2@/x',
      'redis+sentinel://bob:hunter2@a,b',
      'redis+cluster://:hunter2@a,b/2',
    ]) {
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
    expect(() => environmentAuth({ FLYBALL_REDIS_PASSWORD_FILE: '/no/such' })).toThrow(
      /^FLYBALL_REDIS_PASSWORD_FILE.*ENOENT/,
    );
  });

  test('Sentinels have a login of their own', () => {
    const env = {
      FLYBALL_REDIS_PASSWORD: 'data',
      FLYBALL_REDIS_SENTINEL_USERNAME: 's',
      FLYBALL_REDIS_SENTINEL_PASSWORD: 'watch',
    };
    expect(sentinelAuth(env)).toEqual({ username: 's', password: 'watch' });
    expect(sentinelAuth({ FLYBALL_REDIS_PASSWORD: 'data' })).toEqual({});
    expect(() => sentinelAuth({ FLYBALL_REDIS_SENTINEL_PASSWORD_FILE: '/no/such' })).toThrow(
      /^FLYBALL_REDIS_SENTINEL_PASSWORD_FILE/,
    );
  });
});
