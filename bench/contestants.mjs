/** Who decides: Flyball and its peers, each with the same limits and a connection of its own. */
import fastifyRedisStore from '@fastify/rate-limit/store/RedisStore.js';
import { Ratelimit } from '@upstash/ratelimit';
import { RedisStore } from 'rate-limit-redis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { managedLimiter } from './limiter.mjs';

/** Nearly all pass, or nearly none: limits of one subject. Windows outlast the bench. */
export const WORKLOADS = {
  allowed: { limit: 1e6, rate: 1e5, capacity: 1e6 },
  denied: { limit: 1, rate: 0.001, capacity: 1 },
};
/** With the deny cache that is on by default; `flyball` alone asks Redis each time. */
export const FLYBALL_CACHED = 'flyball + deny cache';
const WINDOW_S = 1000;
const AUTO = { enableAutoPipelining: true };

/**
 * `exact`: every decision is Redis's; `caching`: denials may be answered from memory. Keys of a workload are its own: a
 * bucket that the other left full would admit all.
 */
export async function contestants(server, workload) {
  const limits = WORKLOADS[workload];
  return [
    ...(await flyball(server, workload, limits)),
    ...flexible(server, limits, workload),
    ...rateLimitRedis(server, limits, workload),
    ...fastifyStore(server, limits, workload),
    ...upstash(server, limits, workload),
  ];
}

async function flyball(server, workload, { rate, capacity }) {
  const make = async (name, kind, limiterName, denyCache) => {
    const limiter = await managedLimiter(server.connect(), limiterName, {
      perSubject: { subject: 'u:{id}', rate, capacity },
      denyCache,
    });
    return {
      name,
      kind,
      ask: async (subject) => {
        const { allowed, source } = await limiter.take(subject);
        if (source !== 'redis' && source !== 'cached') throw new Error(source);
        return allowed;
      },
      close: () => limiter.close(),
    };
  };
  const exact = await make('flyball', 'exact', workload, false);
  if (workload === 'allowed') return [exact];
  return [exact, await make(FLYBALL_CACHED, 'caching', `${workload}-cached`, true)];
}

function flexible(server, { limit }, workload) {
  const make = (name, kind, client, more) => {
    const limiter = new RateLimiterRedis({
      storeClient: server.connect(client),
      points: limit,
      duration: WINDOW_S,
      keyPrefix: `${workload}:${name}`,
      ...more,
    });
    return {
      name,
      kind,
      ask: (subject) =>
        limiter.consume(subject).then(
          () => true,
          (reason) => {
            if (reason instanceof Error) throw reason;
            return false;
          },
        ),
    };
  };
  const block = { inMemoryBlockOnConsumed: limit };
  return [
    make('rate-limiter-flexible', 'exact', {}, {}),
    make('rate-limiter-flexible, auto-pipelined', 'exact', AUTO, {}),
    make('rate-limiter-flexible + memory block', 'caching', {}, block),
    make('rate-limiter-flexible + memory block, auto-pipelined', 'caching', AUTO, block),
  ];
}

function rateLimitRedis(server, { limit }, workload) {
  const make = (name, options) => {
    const client = server.connect(options);
    const store = new RedisStore({
      prefix: `${workload}:${name}`,
      sendCommand: (command, ...args) => client.call(command, ...args),
    });
    store.init({ windowMs: WINDOW_S * 1000 });
    return {
      name,
      kind: 'exact',
      ask: async (subject) => (await store.increment(subject)).totalHits <= limit,
    };
  };
  return [make('rate-limit-redis', {}), make('rate-limit-redis, auto-pipelined', AUTO)];
}

function fastifyStore(server, { limit }, workload) {
  const make = (name, options) => {
    const store = new fastifyRedisStore(
      false,
      false,
      server.connect(options),
      `${workload}:${name}`,
    );
    return {
      name,
      kind: 'exact',
      ask: (subject) =>
        new Promise((ok, no) =>
          store.incr(
            subject,
            (error, found) => (error ? no(error) : ok(found.current <= limit)),
            WINDOW_S * 1000,
            limit,
          ),
        ),
    };
  };
  return [make('@fastify/rate-limit', {}), make('@fastify/rate-limit, auto-pipelined', AUTO)];
}

function upstash(server, { limit }, workload) {
  const make = (name, kind, rule, cache) => {
    const limiter = new Ratelimit({
      redis: upstashClient(server.connect(AUTO)),
      limiter: rule,
      prefix: `${workload}:${name}`,
      analytics: false,
      ephemeralCache: cache,
      timeout: 0,
    });
    return { name, kind, ask: async (subject) => (await limiter.limit(subject)).success };
  };
  const bucket = Ratelimit.tokenBucket(limit, `${WINDOW_S} s`, limit);
  const fixed = Ratelimit.fixedWindow(limit, `${WINDOW_S} s`);
  return [
    make('@upstash/ratelimit bucket, auto-pipelined', 'exact', bucket, false),
    make('@upstash/ratelimit window + cache, auto-pipelined', 'caching', fixed, new Map()),
  ];
}

/** Its client speaks HTTP; this one speaks to ioredis, without the script flag that stock Redis 7.0 refuses. */
function upstashClient(client) {
  const shaOf = new Map();
  // A limiter calls one script, so what was missed last is what is loaded next.
  let missed;
  const run = (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args);
  return {
    evalsha(hash, keys, args) {
      const sha = shaOf.get(hash);
      if (sha !== undefined) return run(sha, keys, args);
      missed = hash;
      return Promise.reject(new Error('NOSCRIPT'));
    },
    async eval(script, keys, args) {
      const sha = await client.script('LOAD', script.replace(/^#!lua[^\n]*\n/, '\n'));
      shaOf.set(missed, sha);
      return run(sha, keys, args);
    },
  };
}
