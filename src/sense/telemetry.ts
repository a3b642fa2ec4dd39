/** Reads what the services reported since the last tick, each count once, however late its flush came. Stage: sense. */
import type { Clock } from '../clock.js';
import { binsIn } from '../histogram.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { readHashes } from '../redis/read-hashes.js';
import type { MarkedKey } from '../redis/read-marked.js';
import type { RedisClient } from '../redis/scripts.js';
import { TELEMETRY_TTL_MS } from '../redis/telemetry-fields.js';
import { readSeconds } from '../redis/telemetry-seconds.js';
import { DeadlineError, within } from './deadline.js';
import { createDeltaBins, type Delta, emptyDelta } from './delta.js';
import { createInterval } from './interval.js';
import type { Missing, TelemetryReading } from './readings.js';
import type { SecondLines } from './second-lines.js';
import { addSecond } from './telemetry-delta.js';

export interface TelemetryLook {
  reading: TelemetryReading | Missing;
  /** Redis time of the look, ms; null when Redis did not answer. */
  nowMs: number | null;
}

export interface TelemetrySource {
  /** Never rejects. */
  read(): Promise<TelemetryLook>;
}

export interface TelemetrySourceOptions {
  redis: RedisClient;
  address: LimiterAddress;
  clock: Clock;
  /** Default 700 ms. */
  deadlineMs?: number;
}

/** A flush may arrive this long after the second it is counted in: it was queued, or its sender's clock lags. */
const LATE_SECONDS = 5;
/** Redis time that runs this far off the monotonic clock between two looks has been set. */
const SKEW_MS = 2000;

/** One set is enough for all limiters: a delta becomes a reading before the next is made. */
const bins = createDeltaBins();

/** A second as it was last read; without a mark it is not there. The same object again: nothing was added. */
interface Kept extends MarkedKey {
  second: number;
  lines?: SecondLines;
}

interface Look {
  nowMs: number;
  monotonicMs: number;
  seconds: Map<number, Kept>;
}

/**
 * Each look takes the difference of the last few seconds to what it saw of them before, so a flush that comes late, or
 * twice in a second, is counted once. A second is read again only when a flush was added to it. The first look only
 * remembers: it starts from now.
 */
export function createTelemetrySource(options: TelemetrySourceOptions): TelemetrySource {
  const { redis, address, clock, deadlineMs = 700 } = options;
  const keys = limiterKeys(address);
  const interval = createInterval();
  /** What is known of the last seconds: their counts have been handed on. */
  let last: Look | null = null;
  /** Redis time of the last reading. */
  let countedMs: number | null = null;

  async function look(): Promise<Look> {
    const nowMs = last === null ? await redisTime() : expected(last);
    // A sender's idea of Redis time may be a little ahead.
    const newest = Math.floor(nowMs / 1000) + 1;
    const oldest = Math.max(
      Math.floor((last?.nowMs ?? nowMs) / 1000) - LATE_SECONDS,
      newest - TELEMETRY_TTL_MS / 1000,
    );
    const monotonicMs = clock.monotonicMs();
    const wanted: Kept[] = [];
    for (let second = oldest; second <= newest; second++) {
      const before = last?.seconds.get(second);
      wanted.push(before ?? { second, key: keys.telemetry(second), mark: '' });
    }
    const { seconds: found, nowUs } = await readSeconds(redis, wanted);
    const seconds = new Map<number, Kept>();
    for (const [i, before] of wanted.entries()) {
      const { second, key } = before;
      const now = found[i];
      seconds.set(second, now ? { second, key, mark: now.mark, lines: now.lines } : before);
    }
    return { nowMs: nowUs / 1000, monotonicMs, seconds };
  }

  const redisTime = async () => (await readHashes(redis, keys, [])).nowUs / 1000;
  const expected = (of: Look) => of.nowMs + clock.monotonicMs() - of.monotonicMs;

  function readingOf(seen: Look): TelemetryReading | Missing {
    if (last === null) {
      last = seen;
      return missing('not_started', 'the first look only remembers');
    }
    const off = seen.nowMs - last.nowMs - (seen.monotonicMs - last.monotonicMs);
    if (Math.abs(off) > SKEW_MS) {
      // What lies between is of no known length: start again from now.
      last = null;
      countedMs = null;
      interval.reset();
      return missing('clock_skew', `Redis's clock moved by ${Math.round(off)} ms`);
    }
    const delta = emptyDelta(bins);
    for (const [second, found] of seen.seconds) {
      const before = last.seconds.get(second);
      if (found === before || found.mark === '' || found.lines === undefined) continue;
      addSecond(delta, before?.lines, found.lines);
    }
    if (delta.flushes === 0) {
      // Counts without their flush are the first half of one: they wait for the next look.
      if (delta.grown === 0) last = seen;
      interval.silence(seen.nowMs);
      return missing('no_data', 'no process reported since the last tick');
    }
    const sinceMs = seen.nowMs - (countedMs ?? last.nowMs);
    last = seen;
    countedMs = seen.nowMs;
    if (delta.broken !== undefined) {
      return missing('not_finite', `field ${delta.broken} of the telemetry is no count`);
    }
    return telemetryReading(delta, seen.nowMs, sinceMs);
  }

  function telemetryReading(delta: Delta, toMs: number, sinceMs: number): TelemetryReading {
    const { spanMs, processes } = interval.measure(delta.flushes, delta.processes, toMs, sinceMs);
    // Gauges are summed over flushes; a process without a pool reports none.
    const total = (sum: number) => (sum / delta.flushes) * processes;
    return {
      kind: 'telemetry',
      fromMs: toMs - spanMs,
      toMs,
      processes,
      reporting: Math.min(processes, delta.reporting.size),
      ...delta.counts,
      latency: binsIn(delta.bins.latency),
      failedLatency: binsIn(delta.bins.failedLatency),
      dbWait: binsIn(delta.bins.dbWait),
      loopDelay: binsIn(delta.bins.loopDelay),
      ...(delta.clockSkewMs === 0 ? {} : { clockSkewMs: delta.clockSkewMs }),
      ...(delta.farFlushes > delta.flushes / 2 ? { clocksFar: true as const } : {}),
      cpu: delta.vitals === 0 ? null : delta.cpuSum / delta.vitals / 1000,
      memory: delta.vitals === 0 ? null : delta.memorySum / delta.vitals / 1000,
      inFlight: total(delta.inFlightSum),
      poolWaiting: delta.poolFlushes === 0 ? null : total(delta.poolSum),
    };
  }

  return {
    async read() {
      // Asking a connection that is known to be down only fills its queue.
      if (['reconnecting', 'close', 'end'].includes(redis.status)) {
        return { reading: missing('unreachable', `Redis: ${redis.status}`), nowMs: null };
      }
      try {
        const seen = await within(deadlineMs, look());
        return { reading: readingOf(seen), nowMs: seen.nowMs };
      } catch (error) {
        const reason = error instanceof DeadlineError ? 'timeout' : reasonOf(error);
        return { reading: missing(reason, (error as Error).message), nowMs: null };
      }
    },
  };
}

function reasonOf(error: unknown): Missing['reason'] {
  const { message, name } = error as Error;
  const away = /ECONN|ETIMEDOUT|closed|max retries|LOADING|isn't writeable|not reachable/i;
  return away.test(message) || name === 'MaxRetriesPerRequestError' ? 'unreachable' : 'error';
}

function missing(reason: Missing['reason'], detail: string): Missing {
  return { kind: 'missing', reason, detail };
}
