/** The embedded Redis with real processes: joined, adopted, stopped by the last; crashes and bad folders survived. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { connect } from '../../src/redis/connect.js';
import { readRedisFile } from '../../src/redis/locate.js';
import { newFolder, serversOf, startUser, type User } from '../support/embedded.js';

const users: User[] = [];
const folders: string[] = [];
const folder = () => {
  const path = newFolder();
  folders.push(path);
  return path;
};
const use = async (...args: Parameters<typeof startUser>) => {
  const user = await startUser(...args);
  users.push(user);
  return user;
};

afterEach(async () => {
  for (const user of users.splice(0)) await user.end('SIGKILL');
  for (const path of folders.splice(0)) {
    for (const pid of serversOf(path)) process.kill(pid, 'SIGKILL');
    rmSync(path, { recursive: true, force: true });
  }
});

/** One command over a connection found as daemon, CLI and SDK find it: by the folder alone. */
async function ask(dataDir: string, ...command: [string, ...string[]]) {
  const redis = connect({ dataDir, env: {}, name: 'cli' });
  try {
    return await redis.call(...command);
  } finally {
    redis.disconnect();
  }
}
const servers = (dataDir: string) =>
  expect.poll(() => serversOf(dataDir).length, { timeout: 20_000 });

describe('living together', () => {
  test('the first starts it, redis.json leads to it, the last to stop stops it', async () => {
    const dataDir = folder();
    const first = await use(dataDir);
    expect(first).toMatchObject({ joined: false, url: `unix://${dataDir}/redis.sock` });
    const file = readRedisFile(dataDir);
    expect(file).toMatchObject({ url: first.url, pid: serversOf(dataDir)[0] });
    expect(statSync(join(dataDir, 'redis.json')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(dataDir, 'redis.log'), 'utf8')).toContain('Creating AOF incr file');

    const second = await use(dataDir);
    expect(second).toMatchObject({ joined: true, url: first.url });
    await first.end('SIGTERM');
    expect(await ask(dataDir, 'PING')).toBe('PONG');
    await second.end('SIGTERM');
    await servers(dataDir).toBe(0);
    expect(readRedisFile(dataDir)).toBeNull();
  });

  test('the default folder is kept out of git, any other left alone', async () => {
    const other = folder();
    const dataDir = join(folder(), '.flyball');
    const users = [await use(dataDir), await use(other)];
    expect(readFileSync(join(dataDir, '.gitignore'), 'utf8')).toBe('*\n');
    expect(existsSync(join(other, '.gitignore'))).toBe(false);
    await Promise.all(users.map((user) => user.end('SIGTERM')));
  });

  test('many that start at once share one server', async () => {
    const dataDir = folder();
    const all = await Promise.all(Array.from({ length: 5 }, () => use(dataDir)));
    expect(all.filter((user) => user.joined === false)).toHaveLength(1);
    expect(serversOf(dataDir)).toHaveLength(1);
    await Promise.all(all.map((user) => user.end('SIGTERM')));
    await servers(dataDir).toBe(0);
  });

  test('starts, stops and kills in any order: never two servers, never a lost write', async () => {
    const dataDir = folder();
    let living = [await use(dataDir)];
    for (let round = 0; round < 6; round++) {
      const [goes, ...stay] = living;
      const signal = round % 2 ? 'SIGTERM' : 'SIGKILL';
      const [joining] = await Promise.all([use(dataDir), goes!.end(signal)]);
      expect(joining.url).toBeDefined();
      await ask(dataDir, 'INCR', 'rounds');
      await servers(dataDir).toBe(1);
      living = [...stay, joining];
    }
    expect(await ask(dataDir, 'GET', 'rounds')).toBe('6');
  });

  test('it outlives a killed starter, is adopted with its data, and a dead user does not keep it alive', async () => {
    const dataDir = folder();
    const starter = await use(dataDir);
    await ask(dataDir, 'SET', 'kept', 'yes');
    const [pid] = serversOf(dataDir);
    await starter.end('SIGKILL');
    expect(await ask(dataDir, 'GET', 'kept')).toBe('yes');
    const next = await use(dataDir);
    expect(next.joined).toBe(true);
    expect(serversOf(dataDir)).toEqual([pid]);
    await next.end('SIGTERM');
    await servers(dataDir).toBe(0);
  });
});

describe('after a crash', () => {
  test('a killed server leaves a stale socket and a dead pid: the next start keeps the data', async () => {
    const dataDir = folder();
    const starter = await use(dataDir);
    await ask(dataDir, 'SET', 'kept', 'yes');
    process.kill(serversOf(dataDir)[0]!, 'SIGKILL');
    await servers(dataDir).toBe(0);
    await starter.end('SIGKILL');
    expect(statSync(join(dataDir, 'redis.sock')).isSocket()).toBe(true);
    expect(await use(dataDir)).toMatchObject({ joined: false });
    expect(await ask(dataDir, 'GET', 'kept')).toBe('yes');
  });

  test('a pid that another process got is not taken for the server', async () => {
    const dataDir = folder();
    const other = { pid: process.pid, start: 'of another process' };
    writeFileSync(join(dataDir, 'server.json'), JSON.stringify(other));
    expect(await use(dataDir)).toMatchObject({ joined: false });
  });

  test('torn files are as if they were not there', async () => {
    const dataDir = folder();
    const starter = await use(dataDir);
    for (const name of ['server.json', 'redis.json']) writeFileSync(join(dataDir, name), '{"pid":');
    await starter.end('SIGKILL');
    expect(await use(dataDir)).toMatchObject({ joined: true });
    expect(readRedisFile(dataDir)?.pid).toBe(serversOf(dataDir)[0]);
  });

  test('a living server whose socket was deleted is ended first, since two would spoil the data', async () => {
    const dataDir = folder();
    await use(dataDir);
    await ask(dataDir, 'SET', 'kept', 'yes');
    const [pid] = serversOf(dataDir);
    rmSync(join(dataDir, 'redis.sock'));
    expect(await use(dataDir, { deadlineMs: 2_000 })).toMatchObject({ joined: false });
    expect(serversOf(dataDir)).toHaveLength(1);
    expect(serversOf(dataDir)).not.toContain(pid);
    expect(await ask(dataDir, 'GET', 'kept')).toBe('yes');
  });

  test('a server that is there but silent is named with its process, and no second one is started', async () => {
    const dataDir = folder();
    await use(dataDir);
    const [pid] = serversOf(dataDir);
    process.kill(pid!, 'SIGSTOP');
    const next = await use(dataDir, { deadlineMs: 500 });
    expect(next.code).toBe('FLYBALL_E_EMBEDDED_REDIS');
    expect(next.message).toContain(`process ${pid}`);
    expect(serversOf(dataDir)).toEqual([pid]);
  });
});

describe('folders that will not do', () => {
  test('a path too long for a socket: the socket lies under the temporary folder', async () => {
    const base = folder();
    const dataDir = join(base, 'd'.repeat(60), 'e'.repeat(60));
    const user = await use(dataDir);
    expect(user.url).toMatch(/\/flyball-\d+\/[0-9a-f]{16}\.sock$/);
    expect(await ask(dataDir, 'PING')).toBe('PONG');
    await user.end('SIGTERM');
    await servers(user.url!.slice('unix://'.length)).toBe(0);
  });

  test('blanks and signs in the path', async () => {
    const dataDir = join(folder(), 'a b #1 100% ü?');
    const user = await use(dataDir);
    expect(user.joined).toBe(false);
    expect(await ask(dataDir, 'PING')).toBe('PONG');
    await user.end('SIGTERM');
  });

  test('a folder that cannot be made', async () => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    const user = await use(join(file, 'data'));
    expect(user.code).toBe('FLYBALL_E_DATA_DIR');
    expect(user.message).toMatch(/file\/data.*ENOTDIR.*FLYBALL_DATA_DIR/);
  });

  test('a folder that is read-only', async () => {
    const dataDir = folder();
    const mount = `mount -t tmpfs -o ro,size=1m none ${dataDir} && exec "$@"`;
    const user = await use(dataDir, { within: ['unshare', '-rm', 'sh', '-c', mount, 'sh'] });
    expect(user.code).toBe('FLYBALL_E_DATA_DIR');
    expect(user.message).toMatch(/EROFS/);
  });

  test('a full disk: a clear error, and no server is left', async () => {
    const dataDir = folder();
    const fill = `head -c 65536 /dev/zero >${dataDir}/filler 2>/dev/null`;
    const mount = `mount -t tmpfs -o size=16k none ${dataDir} && { ${fill}; exec "$@"; }`;
    const user = await use(dataDir, { within: ['unshare', '-rm', 'sh', '-c', mount, 'sh'] });
    expect(user.code).toMatch(/^FLYBALL_E_(DATA_DIR|EMBEDDED_REDIS)$/);
    expect(user.message).toMatch(/no space left/i);
    await servers(dataDir).toBe(0);
  });

  test('a disk that fills up: writes are refused with the reason, and go on once there is space', async () => {
    const dataDir = folder();
    const mount = `mount -t tmpfs -o size=600k none ${dataDir} && exec "$@"`;
    const user = await use(dataDir, { within: ['unshare', '-rm', 'sh', '-c', mount, 'sh'] });
    // The mount is seen by that process alone; /proc leads to it.
    const inside = `/proc/${user.pid}/root${dataDir}`;
    const redis = connect({ url: `unix://${inside}/redis.sock`, name: 'cli' });
    try {
      writeFileSync(`${inside}/filler`, Buffer.alloc(300_000));
      const big = 'x'.repeat(50_000);
      const write = () =>
        redis.set('big', big).then(
          () => 'written',
          (error: Error) => error.message,
        );
      await expect.poll(write, { timeout: 20_000 }).toMatch(/MISCONF.*No space left/);
      rmSync(`${inside}/filler`);
      await expect.poll(write, { timeout: 20_000 }).toBe('written');
      await user.end('SIGTERM');
      await servers(dataDir).toBe(0);
    } finally {
      redis.disconnect();
    }
  });

  test('no redis-server: the error says what to install or to set', async () => {
    const env = { ...process.env, FLYBALL_REDIS_SERVER: '/no/such/redis-server' };
    const user = await use(folder(), { env });
    expect(user.code).toBe('FLYBALL_E_REDIS_SERVER_MISSING');
    expect(user.message).toMatch(/\/no\/such\/redis-server does not run.*FLYBALL_REDIS_URL/);
  });
});
