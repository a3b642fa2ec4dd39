/** What most tests of verbs, in the CLI or over HTTP, stand on: a Redis for the file, emptied before each test, and no daemon. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type CliRun, cli } from './cli-run.js';
import { startRedis, type TestRedis } from './redis-server.js';

export interface RedisBench {
  server: TestRedis;
  redis: Redis;
  /** With it a command reaches this Redis. */
  env: NodeJS.ProcessEnv;
  /** A command line on this Redis; with `typed` at a terminal. */
  run(args: string | string[], typed?: string): Promise<CliRun>;
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
    const env = { FLYBALL_REDIS_URL: server!.url };
    const run: RedisBench['run'] = (args, typed) => {
      const words = typeof args === 'string' ? args.split(' ') : args;
      return cli(words, { env, ...(typed === undefined ? {} : { typed }) });
    };
    await begin({ server: server!, redis, env, run });
  });
}
