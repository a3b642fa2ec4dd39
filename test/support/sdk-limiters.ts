/** What most tests of the SDK stand on: a Redis for the file, a client to look into it, limiters closed after each test. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../src/index.js';
import { startRedis, type TestRedis } from './redis-server.js';

export interface SdkBench {
  readonly server: TestRedis;
  readonly admin: Redis;
  /** Closed after the test that made it. */
  readonly open: Limiter[];
  /** A limiter with a name of its own, patient and silent unless told otherwise. */
  limiter(options?: Partial<LimiterOptions>): Limiter;
}

/** Registers the hooks of the file that calls it; `prefix` begins the names of its limiters. */
export function sdkBench(prefix: string): SdkBench {
  let server: TestRedis | undefined;
  let admin: Redis | undefined;
  let count = 0;
  const open: Limiter[] = [];
  beforeAll(async () => {
    server = await startRedis();
    admin = server.client();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((limiter) => limiter.close()));
  });
  afterAll(() => server?.stop());
  return {
    get server() {
      return server!;
    },
    get admin() {
      return admin!;
    },
    open,
    limiter(options = {}) {
      count += 1;
      const made = createLimiter({
        name: `${prefix}-${count}`,
        url: server!.url,
        deadlineMs: 5_000,
        onWarning: () => {},
        ...options,
      });
      open.push(made);
      return made;
    },
  };
}
