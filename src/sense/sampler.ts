/** One tick's readings of a limiter: its telemetry, and of each source the newest answer with the moment it speaks of. Stage: sense. */
import type { Clock } from '../clock.js';
import type { Policy } from '../policy/schema.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/scripts.js';
import { waitAtMost } from './deadline.js';
import type { Reading, Readings } from './readings.js';
import type { Seen } from './source.js';
import type { SourcePool } from './source-pool.js';
import { isSourced, type SourcedSignal } from './sources.js';
import { createTelemetrySource } from './telemetry.js';

export interface SamplerOptions {
  redis: RedisClient;
  policy: Policy;
  address: LimiterAddress;
  clock: Clock;
  /** Shared by all limiters of a daemon. */
  sources: SourcePool;
  /** How long a tick waits for sources; a slower one is read with its age at the next tick. Default 100 ms. */
  patienceMs?: number;
}

export interface Sampler {
  /** Never rejects. Sources are asked side by side; none delays it beyond the patience. */
  read(): Promise<Readings>;
  close(): Promise<void>;
}

/** All moments are in Redis's time, so that ages mean the same whatever the daemon's own clock says. */
export function createSampler(options: SamplerOptions): Sampler {
  const { redis, policy, address, clock, patienceMs = 100 } = options;
  const telemetry = createTelemetrySource({ redis, address, clock });
  const sourced: Record<string, SourcedSignal> = {};
  for (const [name, signal] of Object.entries(policy.signals)) {
    if (isSourced(signal)) sourced[name] = signal;
  }
  const sources = options.sources.open(sourced);
  /** The same object again is a repetition: it keeps its moment, whatever was learnt of clocks meanwhile. */
  const told = new Map<string, { seen: Seen; reading: Reading }>();
  /** Redis time and the monotonic clock at one moment, for ticks without Redis. */
  let known: { nowMs: number; monotonicMs: number } | null = null;

  function readingOf(name: string, seen: Seen, atMs: number, startMs: number): Reading {
    const before = told.get(name);
    if (before?.seen === seen) return before.reading;
    const { monotonicMs, ...rest } = seen;
    // Asked in this tick: no reading is newer than it.
    const reading = { ...rest, atMs: Math.min(atMs, atMs + monotonicMs - startMs) };
    told.set(name, { seen, reading });
    return reading;
  }

  return {
    async read() {
      const startMs = clock.monotonicMs();
      const asked = sources.ask();
      const look = await telemetry.read();
      if (asked !== null) await waitAtMost(patienceMs - (clock.monotonicMs() - startMs), asked);
      if (look.nowMs !== null) known = { nowMs: look.nowMs, monotonicMs: startMs };
      const atMs = known ? known.nowMs + startMs - known.monotonicMs : clock.nowMs();
      const signals: Record<string, Reading> = {};
      for (const [name, found] of sources.newest()) {
        signals[name] = found.kind === 'missing' ? found : readingOf(name, found, atMs, startMs);
      }
      return { atMs, telemetry: look.reading, signals };
    },
    close: () => sources.close(),
  };
}
