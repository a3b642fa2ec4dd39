/** Which Redis server serves each limiter's keys, by its run id: another one is a failover, a restart, or a slot that moved. Stage: daemon. */
import type { Redis } from 'ioredis';
import { infoField } from '../redis/eviction.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { isCluster } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import { slotOf } from '../redis/slot.js';
import { within } from '../sense/deadline.js';

/** What a server says of itself. */
export interface ServerIdentity {
  runId: string;
  /** Of the replication history that it had as a replica, up to the offset after it; zeros: it was none. */
  replId2: string;
  secondOffset: number;
}

export interface ServerWatch {
  /** Asks again; one that does not answer keeps what was known. Never rejects. */
  look(): Promise<void>;
  /** Who serves this limiter; null: not known yet. */
  serving(address: LimiterAddress): ServerIdentity | null;
  /** Does a server with this run id still serve something? */
  serves(runId: string): boolean;
  start(): void;
  stop(): void;
}

const ANSWER_MS = 1_000;

export function createServerWatch(options: { redis: RedisClient; everyMs: number }): ServerWatch {
  const { redis, everyMs } = options;
  /** By `host:port` on a cluster, else under one name. */
  const known = new Map<string, ServerIdentity>();
  let looking: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  async function lookAll(): Promise<void> {
    const places = placesOf(redis);
    await Promise.all(
      places.map(async ([place, server]) => {
        const identity = await identityOf(server).catch(() => null);
        if (identity !== null) known.set(place, identity);
      }),
    );
    for (const place of known.keys()) {
      if (places.length > 0 && !places.some(([name]) => name === place)) known.delete(place);
    }
  }

  function look(): Promise<void> {
    looking ??= lookAll().finally(() => {
      looking = null;
    });
    return looking;
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void look().finally(() => {
        if (!stopped) schedule();
      });
    }, everyMs);
  }

  return {
    look,
    serving(address) {
      if (!isCluster(redis)) return known.get(ALONE) ?? null;
      // The client's own map: it is what commands go by.
      const [master] = redis.slots[slotOf(limiterKeys(address).params)] ?? [];
      return (master !== undefined && known.get(master)) || null;
    },
    serves(runId) {
      return [...known.values()].some((server) => server.runId === runId);
    },
    start: schedule,
    stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

const ALONE = 'the server';

function placesOf(redis: RedisClient): [place: string, server: Redis][] {
  if (!isCluster(redis)) return [[ALONE, redis]];
  return redis.nodes('master').map((node) => [`${node.options.host}:${node.options.port}`, node]);
}

async function identityOf(server: Redis): Promise<ServerIdentity | null> {
  return readIdentity(await within(ANSWER_MS, server.info('server', 'replication')));
}

/** A replica tells nothing: writes go to its master, whom the client is about to find. */
export function readIdentity(info: string): ServerIdentity | null {
  const field = (name: string) => infoField(info, name) ?? '';
  const runId = field('run_id');
  if (runId === '' || field('role') === 'slave') return null;
  return {
    runId,
    replId2: field('master_replid2'),
    secondOffset: Number(field('second_repl_offset')),
  };
}
