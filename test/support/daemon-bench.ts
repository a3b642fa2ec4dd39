/** What most tests of daemons stand on: a Redis for the file, emptied before each test, and daemons that end after it. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, type TestContext } from 'vitest';
import { type DaemonSetup, daemonSetup } from './daemon.js';
import { startRedis, type TestRedis } from './redis-server.js';

export interface DaemonBench {
  server: TestRedis;
  redis: Redis;
  /** A folder of policies, and the daemons on it. */
  setup: DaemonSetup;
  /** All of them, where a test asked for several. */
  setups: DaemonSetup[];
}

/** Registers the hooks of the file that calls it; `begin` is given all anew before each test. */
export function daemonBench(
  begin: (bench: DaemonBench) => void | Promise<void>,
  folders = 1,
): void {
  let server: TestRedis;
  let redis: Redis;
  let setups: DaemonSetup[] = [];
  beforeAll(async () => {
    server = await startRedis();
    redis = server.client();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    await redis.flushall();
    setups = Array.from({ length: folders }, () => daemonSetup(server.url));
    await begin({ server, redis, setup: setups[0]!, setups });
  });
  afterEach(() => Promise.all(setups.map((setup) => setup.close())));
}

/**
 * The same for one test alone, ended with it: others of its file may run beside it (`test.concurrent`), which is for
 * those that mostly wait.
 */
export async function ownBench(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  folders = 1,
): Promise<DaemonBench> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const setups = Array.from({ length: folders }, () => daemonSetup(server.url));
  onTestFinished(async () => {
    await Promise.all(setups.map((setup) => setup.close()));
  });
  return { server, redis: server.client(), setup: setups[0]!, setups };
}
