/** What tests of every framework's middleware share: a Redis, limiters, and what a limiter reported. Stage: tests. */

import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../src/index.js';
import type { ParamChange } from '../../src/redis/params.js';
import { startRedis, type TestRedis } from './redis-server.js';
import { setParams } from './sdk-params.js';

export interface Rig {
  readonly redis: TestRedis;
  readonly admin: Redis;
  /** Closed after the test, the last first. */
  onEnd(close: () => unknown): void;
  /** The params come first, so that the first share is asked of them. */
  limiter(params: ParamChange, options?: Partial<LimiterOptions>): Promise<Limiter>;
  /** Listens on a free port until the test ends; gives the URL. */
  listen(server: Server): Promise<string>;
  /** What the limiter has reported, added up; closes it. */
  reported(limiter: Limiter): Promise<Record<string, number>>;
}

/** Call it once at the top of a file. */
export function useRig(name: string): Rig {
  let redis: TestRedis;
  let admin: Redis;
  let count = 0;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => redis.stop());

  return {
    get redis() {
      return redis;
    },
    get admin() {
      return admin;
    },
    onEnd: (close) => void closing.push(close),
    async limiter(params, options = {}) {
      const address = { name: `${name}-${++count}` };
      await setParams(admin, address, params);
      const made = createLimiter({
        ...address,
        url: redis.url,
        deadlineMs: 5_000,
        onWarning: () => {},
        ...options,
      });
      closing.push(() => made.close());
      return made;
    },
    async listen(server) {
      if (!server.listening) {
        await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
      }
      closing.push(() => {
        server.closeAllConnections();
        return new Promise((ok) => server.close(ok));
      });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    async reported(limiter) {
      await limiter.close();
      const sums: Record<string, number> = {};
      for (const key of await admin.keys(`flyball:{${limiter.name}}:t:*`)) {
        for (const [field, value] of Object.entries(await admin.hgetall(key))) {
          sums[field] = (sums[field] ?? 0) + Number(value);
        }
      }
      return sums;
    },
  };
}

/** A bare connection: for pipelining, half a request, and leaving when the test wants it. */
export function dial(url: string): Socket & { received(): string } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  socket.on('error', () => {});
  return Object.assign(socket, { received: () => text });
}

export function get(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;
}
