/** Reads all sources of a tick side by side, each within its deadline: a value with its moment, or missing and why. Stage: sense. */
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import type { Policy } from '../policy/schema.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/scripts.js';
import type { Reading, Readings } from './readings.js';
import type { Source } from './source.js';
import { createSource, isSourced, type SourcedSignal, sourceKey } from './sources.js';
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

/** All moments are in Redis's time, so that ages mean the same whatever the daemon's own clock says. */
export function createSampler(options: SamplerOptions): Sampler {
  const { redis, policy, address, clock, env, log } = options;
  const telemetry = createTelemetrySource({ redis, address, clock });
  const sources = new Map<string, Source>();
  /** Signals of one source are asked for together. */
  const wanted = new Map<Source, [name: string, signal: SourcedSignal][]>();
  for (const [name, signal] of Object.entries(policy.signals)) {
    if (!isSourced(signal)) continue;
    const key = sourceKey(signal, env);
    const source = sources.get(key) ?? createSource(signal, { env, log, clock });
    sources.set(key, source);
    wanted.set(source, [...(wanted.get(source) ?? []), [name, signal]]);
  }
  /** Redis time and the monotonic clock at one moment, for ticks without Redis. */
  let known: { nowMs: number; monotonicMs: number } | null = null;

  return {
    async read() {
      const startMs = clock.monotonicMs();
      const [look, ...looks] = await Promise.all([
        telemetry.read(),
        ...[...wanted].map(([source, named]) => source.look(named.map(([, signal]) => signal))),
      ]);
      if (look.nowMs !== null) known = { nowMs: look.nowMs, monotonicMs: startMs };
      const atMs = known ? known.nowMs + startMs - known.monotonicMs : clock.nowMs();
      const signals: Record<string, Reading> = {};
      [...wanted.values()].forEach((named, i) => {
        for (const [name, signal] of named) {
          const seen = looks[i]!.get(signal)!;
          if (seen.kind === 'missing') signals[name] = seen;
          else {
            const { monotonicMs, ...rest } = seen;
            // Asked in this tick: no reading is newer than it.
            signals[name] = { ...rest, atMs: Math.min(atMs, atMs + monotonicMs - startMs) };
          }
        }
      });
      return { atMs, telemetry: look.reading, signals };
    },
    async close() {
      await Promise.all([...sources.values()].map((source) => source.close()));
    },
  };
}
