/** Reads all sources of a tick side by side, each within its deadline: a value with its moment, or missing and why. Stage: sense. */
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import type { Policy, Signal } from '../policy/schema.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/scripts.js';
import { createPostgresSource, type PostgresSource, readingOf } from './postgres.js';
import type { PostgresRow } from './postgres-query.js';
import type { Missing, Reading, Readings } from './readings.js';
import { createTelemetrySource } from './telemetry.js';

export interface SamplerOptions {
  redis: RedisClient;
  policy: Policy;
  address: LimiterAddress;
  clock: Clock;
  /** Where `env('X')` is looked up: here and nowhere else. */
  env: NodeJS.ProcessEnv;
  log: Logger;
}

export interface Sampler {
  /** One tick's readings; never rejects, and takes no longer than the slowest deadline. */
  read(): Promise<Readings>;
  close(): Promise<void>;
}

type PostgresSignal = Extract<Signal, { source: 'postgres' }>;

/** Signals of one address share one query: `ask` gives its row, or why there is none. */
interface Asked {
  name: string;
  signal: PostgresSignal;
  ask: () => Promise<PostgresRow | Missing>;
}

/** All moments are in Redis's time, so that ages mean the same whatever the daemon's own clock says. */
export function createSampler(options: SamplerOptions): Sampler {
  const { redis, policy, address, clock, env, log } = options;
  const telemetry = createTelemetrySource({ redis, address, clock });
  const sources = new Map<string, PostgresSource>();
  const asked = Object.entries(policy.signals).flatMap(([name, signal]): Asked[] =>
    signal.source === 'postgres' ? [{ name, signal, ask: asker(signal) }] : [],
  );
  /** Redis time and the monotonic clock at one moment, for ticks without Redis. */
  let known: { nowMs: number; monotonicMs: number } | null = null;

  function asker(signal: PostgresSignal): Asked['ask'] {
    const url = addressOf(signal.url, env);
    if (typeof url !== 'string') return async () => url;
    const key = `${signal.deadlineMs} ${url}`;
    const source =
      sources.get(key) ?? createPostgresSource({ url, deadlineMs: signal.deadlineMs, log });
    sources.set(key, source);
    return () => source.look();
  }

  return {
    async read() {
      const startMs = clock.monotonicMs();
      const [look, ...rows] = await Promise.all([
        telemetry.read(),
        ...asked.map(({ ask }) => ask()),
      ]);
      if (look.nowMs !== null) known = { nowMs: look.nowMs, monotonicMs: startMs };
      const atMs = known ? known.nowMs + startMs - known.monotonicMs : clock.nowMs();
      const signals: Record<string, Reading> = {};
      asked.forEach(({ name, signal }, i) => {
        signals[name] = readingOf(rows[i]!, signal.stat, atMs);
      });
      return { atMs, telemetry: look.reading, signals };
    },
    async close() {
      await Promise.all([...sources.values()].map((source) => source.close()));
    },
  };
}

function addressOf(url: PostgresSignal['url'], env: NodeJS.ProcessEnv): string | Missing {
  if (typeof url === 'string') return url;
  const found = env[url.env];
  if (found) return found;
  const detail = `the environment variable ${url.env} is not set where the daemon runs`;
  return { kind: 'missing', reason: 'error', detail };
}
