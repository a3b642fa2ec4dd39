/** `flyball __complete`: names of limiters for a shell, soon and silent, whatever Redis does. Stage: tests. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cli, seedLimiter } from '../support/cli-run.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';
import { tempFolder } from '../support/temp-folder.js';

let server: TestRedis;
let redis: Redis;
const away = { FLYBALL_REDIS_URL: 'redis://127.0.0.1:1', FLYBALL_DATA_DIR: tempFolder('complete') };
const names = (words: string[], env: NodeJS.ProcessEnv) =>
  cli(['__complete', 'limiters', '--', 'flyball', ...words], { env });

beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
  await seedLimiter(redis, { name: 'checkout' });
  await seedLimiter(redis, { name: 'orders-db' });
  await seedLimiter(redis, { name: 'search', prefix: 'shop' });
});
afterAll(() => server.stop());

/** A busy machine may need longer than a shell waits: asked again until there is an answer. */
async function answered(words: string[], env: NodeJS.ProcessEnv): Promise<string> {
  let said = '';
  const ask = async () => {
    said ||= (await names(words, env)).stdout;
    return said;
  };
  await expect.poll(ask).not.toBe('');
  return said;
}

test('prints them by name; --redis and --prefix are those of the words typed so far', async () => {
  const env = { FLYBALL_REDIS_URL: server.url };
  expect(await answered(['rollback', ''], env)).toBe('checkout\norders-db\n');
  expect(await answered(['--prefix', 'shop', 'pin', ''], env)).toBe('search\n');
  expect(await answered([`--redis=${server.url}`, 'pin', ''], away)).toBe('checkout\norders-db\n');
});

test('is silent without Redis, with one that never answers, and for what is no address', async () => {
  const mute = createServer(() => {});
  mute.listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  try {
    for (const env of [away, { FLYBALL_REDIS_URL: `redis://127.0.0.1:${port}` }]) {
      expect(await names(['rollback', ''], env)).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  } finally {
    mute.close();
  }
  const { FLYBALL_DATA_DIR } = away;
  for (const words of [['--redis', 'nonsense'], ['--prefix', 'a{b'], ['--redis']]) {
    expect(await names(words, { FLYBALL_DATA_DIR })).toEqual({ code: 0, stdout: '', stderr: '' });
  }
});
