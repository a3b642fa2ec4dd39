/** A service under steady load for tests of the loop: real takes, real outcomes, flushed by the SDK itself. */
import { createLimiter } from '../../src/index.js';
import type { TestRedis } from './redis-server.js';

export interface Traffic {
  stop(): Promise<void>;
}

/** About 40 requests a second; each admitted one takes `latencyMs`. */
export function startTraffic(server: TestRedis, name: string, latencyMs: number): Traffic {
  const redis = server.client({ autoResendUnfulfilledCommands: false });
  const limiter = createLimiter({ name, redis, rate: 100, capacity: 50, inFlightMax: 20 });
  const work = () => new Promise((ok) => setTimeout(ok, latencyMs));
  const timer = setInterval(() => {
    limiter.run(undefined, work).catch(() => {});
  }, 25);
  return {
    async stop() {
      clearInterval(timer);
      await limiter.close();
      redis.disconnect();
    },
  };
}
