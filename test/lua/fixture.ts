/** One limiter on a private server, at a virtual time: what the script tests begin with. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import type { TakeAnswer, TakeCall, TakeReply, TakeRequest } from '../../src/redis/calls.js';
import { type LimiterKeys, limiterKeys } from '../../src/redis/keys.js';
import { take } from '../../src/redis/scripts.js';
import { startRedis, type TestRedis } from '../support/redis-server.js';

export const T0 = 1_700_000_000_000_000;
export const S = 1_000_000;
export const FALLBACK = {
  rate: 10,
  capacity: 10,
  inFlightMax: 0,
  subjectRate: -1,
  subjectCapacity: 0,
};

export interface Limiter {
  keys: LimiterKeys;
  call(takes: Partial<TakeRequest>[], nowUs: number, more?: Partial<TakeCall>): Promise<TakeReply>;
  /** One take. */
  one(nowUs: number, take?: Partial<TakeRequest>): Promise<TakeAnswer>;
}

export interface Fixture {
  readonly server: TestRedis;
  readonly redis: Redis;
  /** A limiter of its own for each call. */
  limiter(): Limiter;
}

/** Starts the server before the file's tests and ends it after them. */
export function useRedis(args: string[] = []): Fixture {
  let server: TestRedis;
  let redis: Redis;
  let names = 0;
  beforeAll(async () => {
    server = await startRedis(args);
    redis = server.client();
  });
  afterAll(() => server.stop());
  return {
    get server() {
      return server;
    },
    get redis() {
      return redis;
    },
    limiter() {
      names += 1;
      const keys = limiterKeys({ name: `l${names}` });
      const call: Limiter['call'] = (takes, nowUs, more = {}) =>
        take(redis, {
          keys,
          takes: takes.map((each) => ({ subject: null, cost: 1, priority: 'default', ...each })),
          chargeByUs: 'any',
          fallback: FALLBACK,
          shadow: false,
          nowUs,
          ...more,
        });
      return {
        keys,
        call,
        one: async (nowUs, each = {}) => (await call([each], nowUs)).answers[0]!,
      };
    },
  };
}

/** Reasons of a reply, in order. */
export function reasons(reply: TakeReply): string[] {
  return reply.answers.map((answer) => answer.reason);
}
