/** A Redis of its own with one limiter and no daemon, for tests of what the CLI shows. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { limiterKeys } from '../../src/redis/keys.js';
import { type CliRun, cli, seedLimiter } from './cli-run.js';
import { startRedis, type TestRedis } from './redis-server.js';

export const checkout = { name: 'checkout' };
export const keys = limiterKeys(checkout);

export interface ReadingRig {
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly env: NodeJS.ProcessEnv;
  /** Words parted by single spaces. */
  run(args: string, more?: NodeJS.ProcessEnv): Promise<CliRun>;
  /** Some whole seconds of telemetry that end now. */
  telemetry(fields: Record<string, number>): Promise<void>;
}

/** Call it at the top of a test file: each test begins with `checkout` just created. */
export function readingRig(): ReadingRig {
  let server: TestRedis | undefined;
  let redis: Redis | undefined;
  let env: NodeJS.ProcessEnv = {};
  let dir = '';
  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
    dir = mkdtempSync(join(tmpdir(), 'flyball-cli-'));
    const policy = join(dir, 'checkout.ts');
    writeFileSync(
      policy,
      `import { definePolicy } from 'flyball';
export default definePolicy({ limiter: { name: 'checkout', rate: 100, capacity: 200 } });`,
    );
    env = { FLYBALL_REDIS_URL: server.url, FLYBALL_POLICIES: policy };
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    await redis!.flushall();
    await seedLimiter(redis!, checkout);
  });
  return {
    get server() {
      return server!;
    },
    get redis() {
      return redis!;
    },
    get env() {
      return env;
    },
    run: (args, more = {}) => cli(args.split(' '), { env: { ...env, ...more } }),
    async telemetry(fields) {
      const [seconds] = await redis!.time();
      for (let i = -1; i <= 6; i++) {
        await redis!.hset(keys.telemetry(Number(seconds) - i), fields);
      }
    },
  };
}
