/** The daemon's Redis: given or embedded, reached within a bounded wait, with what is unfit said aloud. Stage: daemon. */
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import { redactUrl } from '../log.js';
import {
  awaitRedis,
  connect,
  type RedisClient,
  type RedisTarget,
  resolveDataDir,
  resolveRedis,
} from '../redis/connect.js';
import { startEmbeddedRedis } from '../redis/embedded.js';
import { gatherWrites } from '../redis/gather-writes.js';
import type { Metrics } from '../report/metrics.js';
import { type ClockWatch, watchClocks } from './clock-watch.js';
import type { DaemonConfig } from './config.js';
import { type Eviction, type EvictionWatch, watchEvictions } from './evictions.js';

/** How often the connection to an embedded server is looked at. */
const WATCH_MS = 1000;

export interface DaemonRedis {
  redis: RedisClient;
  clocks: ClockWatch;
  evictions: EvictionWatch;
  /** Without its password. */
  url: string;
  /** Ends the connection, and the embedded server if this was its last user. */
  close(): Promise<void>;
}

/** `embedded` false: never start a server; an embedded one that lives already may still be used. */
export async function openRedis(
  config: DaemonConfig,
  options: {
    env: NodeJS.ProcessEnv;
    embedded: boolean;
    log: Logger;
    clock: Clock;
    metrics: Metrics;
    onEvicted: (keys: number, eviction: Eviction) => void;
  },
): Promise<DaemonRedis> {
  const { env, embedded, log, clock, metrics } = options;
  const { dataDir, redisWaitMs: deadlineMs } = config;
  let release = async () => {};
  let revive: (() => Promise<void>) | undefined;
  let target: RedisTarget;
  if (config.redisUrl === undefined && embedded) {
    const server = await startEmbeddedRedis({ dataDir: resolveDataDir({ dataDir, env }), log });
    ({ release, revive } = server);
    target = { url: server.url, source: 'embedded' };
  } else {
    target = resolveRedis({ url: config.redisUrl, dataDir, env });
  }
  const redis = connect({ url: target.url, name: 'daemon', dataDir, env });
  gatherWrites(redis);
  let clocks: ClockWatch;
  try {
    await awaitRedis(redis, { url: target.url, deadlineMs });
    clocks = await watchClocks({ redis, clock, log, metrics });
  } catch (error) {
    redis.disconnect();
    await release();
    throw error;
  }
  // The embedded server's own line says so already: one line tells which Redis is used.
  if (target.source !== 'embedded' || !embedded) {
    log.info(
      { event: 'redis', source: target.source, address: redactUrl(target.url) },
      `Using Redis at ${redactUrl(target.url)}.`,
    );
  }
  const evictions = await watchEvictions(redis, log, options.onEvicted);
  const stopWatching = revive === undefined ? () => {} : watchOver(redis, revive, log);
  return {
    redis,
    clocks,
    evictions,
    url: redactUrl(target.url),
    async close() {
      clocks.close();
      stopWatching();
      evictions.close();
      const quit = redis.quit().then(
        () => true,
        () => false,
      );
      if (!(await Promise.race([quit, pause(1000)]))) redis.disconnect();
      await release();
    },
  };
}

/** A private server has nobody else: who uses it starts it again when it was killed. */
function watchOver(redis: RedisClient, revive: () => Promise<void>, log: Logger): () => void {
  let reviving = false;
  let told = false;
  const timer = setInterval(async () => {
    if (redis.status === 'ready') told = false;
    if (reviving || redis.status === 'ready' || redis.status === 'end') return;
    reviving = true;
    try {
      await revive();
    } catch (error) {
      const text = `The embedded Redis is gone and could not be started again: ${(error as Error).message}`;
      if (!told) log.error({ event: 'redis_not_revived', err: error }, text);
      told = true;
    }
    reviving = false;
  }, WATCH_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function pause(ms: number): Promise<false> {
  return new Promise((ok) => setTimeout(ok, ms, false).unref());
}
