/** What most tests of the SDK stand on: a Redis for the file, a client to look into it, limiters closed after each test. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../src/index.js';
import { startRedis, type TestRedis } from './redis-server.js';

export interface SdkBench {
  readonly server: TestRedis;
  readonly admin: Redis;
  /** Closed after the test that opened it. */
  readonly open: { close(): Promise<void> }[];
  /** A name that no other test has. */
  name(): string;
  /** A limiter with a name of its own, patient and silent unless told otherwise. */
  limiter(options?: Partial<LimiterOptions>): Limiter;
}

/** Registers the hooks of the file that calls it; `prefix` begins the names of its limiters. */
export function sdkBench(prefix: string): SdkBench {
  let server: TestRedis | undefined;
  let admin: Redis | undefined;
  let count = 0;
  const open: SdkBench['open'] = [];
  beforeAll(async () => {
    server = await startRedis();
    admin = server.client();
  });
  afterEach(async () => {
    // A test that failed while Redis was silent leaves the next one a Redis that answers.
    server?.resume();
    await Promise.all(open.splice(0).map((each) => each.close()));
  });
  afterAll(() => server?.stop());
  function name(): string {
    count += 1;
    return `${prefix}-${count}`;
  }
  return {
    get server() {
      return server!;
    },
    get admin() {
      return admin!;
    },
    open,
    name,
    limiter(options = {}) {
      const made = createLimiter({
        name: options.name ?? name(),
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

export interface NamedBench {
  server: TestRedis;
  admin: Redis;
  /** A limiter of that name, patient and silent unless told otherwise, without a memory of denials. */
  limiter(options?: Partial<LimiterOptions>): Limiter;
  /** Done after the test, last first. */
  closing: (() => unknown)[];
}

/** Registers the hooks of a file whose tests are all of one limiter; Redis is emptied before each. */
export function namedBench(name: string, begin: (bench: NamedBench) => void): void {
  let server: TestRedis | undefined;
  let admin: Redis;
  const closing: (() => unknown)[] = [];
  beforeAll(async () => {
    server = await startRedis();
    admin = server.client({ maxRetriesPerRequest: null });
    begin({ server, admin, limiter, closing });
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    await admin.flushall();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  function limiter(options: Partial<LimiterOptions> = {}): Limiter {
    const made = createLimiter({
      ...{ name, deadlineMs: 2_000, denyCache: false, topSubjects: false, onWarning: () => {} },
      ...(options.redis ? {} : { url: server!.url }),
      ...options,
    });
    closing.push(() => made.close());
    return made;
  }
}
