/** What most tests of verbs, in the CLI or over HTTP, stand on: a Redis for the file, emptied before each test, and no daemon. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { startRedis, type TestRedis } from './redis-server.js';

export interface RedisBench {
  server: TestRedis;
  redis: Redis;
  /** With it a command reaches this Redis. */
  env: NodeJS.ProcessEnv;
}

/** Registers the hooks of the file that calls it; `begin` is given all before each test. */
export function redisBench(begin: (bench: RedisBench) => void | Promise<void>): void {
  let server: TestRedis | undefined;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    await redis.flushall();
    await begin({ server: server!, redis, env: { FLYBALL_REDIS_URL: server!.url } });
  });
}
