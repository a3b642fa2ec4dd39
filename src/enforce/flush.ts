/** Sends a second's telemetry in one call; what cannot be sent is dropped, counted. Stage: enforce. */
import type { Clock } from '../clock.js';
import { binOf } from '../histogram.js';
import { FIELD } from '../redis/telemetry-fields.js';
import { sendReport } from '../redis/telemetry-report.js';
import { MIN_BIN } from '../sense/readings.js';
import type { KeyFinder } from './address.js';
import type { InFlight } from './in-flight.js';
import type { Link } from './link.js';
import type { RedisClient } from './options.js';
import type { PoolGauge } from './pool-gauge.js';
import type { Recorder } from './recorder.js';
import type { RedisTime } from './redis-time.js';
import type { Stats } from './stats.js';
import type { VitalsWatch } from './vitals.js';

/** Telemetry may wait longer than a decision: nobody waits for it. */
const FLUSH_DEADLINE_MS = 500;

export interface FlushOptions {
  redis: RedisClient;
  link: () => Link;
  finder: KeyFinder;
  time: RedisTime;
  recorder: Recorder;
  inFlight: InFlight;
  pool: PoolGauge;
  stats: Stats;
  clock: Clock;
  vitals: VitalsWatch;
  processId: string;
}

/** Most counts are small. */
const SMALL = Array.from({ length: 100 }, (_each, count) => `\n${count}\n`);

const lineOf = (count: number) => SMALL[count] ?? `\n${count}\n`;

/**
 * An interval is sent once or never: a failed flush may have been applied, and the counts of an outage sent
 * after it would look like a burst. So memory stays bounded, and nothing is counted twice.
 */
export function createFlush(options: FlushOptions): () => Promise<void> {
  const { redis, finder, time, recorder, inFlight, pool, stats, clock, vitals, processId } =
    options;

  /** As last told: what happened without Redis is told when it is back. */
  const told = { fallback: 0, slow: 0, overflow: 0 };

  return async function flush() {
    const nowMs = clock.monotonicMs();
    const redisMs = time.nowMs(nowMs);
    const keys = finder.keys;
    const sendable = options.link().up && redisMs !== null && keys !== null;
    // One text from the start: a service pays for this each second, however little it does.
    let counts = '';
    const add = (field: string, count: number) => {
      counts += field + lineOf(count);
    };
    recorder.drain(add);
    if (!sendable) {
      if (counts !== '') stats.telemetryDropped += 1;
      return;
    }
    add(FIELD.process(processId), 1);
    if (inFlight.reports) add(FIELD.reportingProcess(processId), 1);
    if (inFlight.inUse > 0) {
      add(FIELD.inFlight, inFlight.inUse);
      add(FIELD.oldest(binOf(inFlight.oldestMs(nowMs)) ?? MIN_BIN), 1);
    }
    const skewS = Math.round((redisMs - clock.nowMs()) / 1000);
    if (Math.abs(skewS) > 1) add(FIELD.clockSkew(skewS), 1);
    const waiting = pool.take(nowMs);
    if (waiting !== null) {
      add(FIELD.poolWaiting, Math.round(waiting));
      add(FIELD.poolFlushes, 1);
    }
    const { fallback, slow, overflow } = stats;
    if (fallback > told.fallback) add(FIELD.fallback, fallback - told.fallback);
    if (slow > told.slow) add(FIELD.slowDecisions, slow - told.slow);
    if (overflow > told.overflow) add(FIELD.overflow, overflow - told.overflow);
    const vital = vitals.take(nowMs);
    if (vital !== null && vital.cpu !== null) {
      add(FIELD.vitals, 1);
      add(FIELD.cpu, Math.round(vital.cpu * 1000));
      add(FIELD.memory, Math.round(vital.memory * 1000));
      add(FIELD.loopDelay(binOf(vital.loopDelayMs) ?? MIN_BIN), 1);
      add(FIELD.loopDelaySumUs, Math.round(vital.loopDelayMs * 1000));
    }
    // The last field: who sees it counted sees all that came before it.
    add(FIELD.flushes, 1);
    const key = keys.telemetry(Math.floor(redisMs / 1000));
    try {
      await options.link().within(nowMs + FLUSH_DEADLINE_MS, () => sendReport(redis, key, counts));
      Object.assign(told, { fallback, slow, overflow });
    } catch {
      stats.telemetryDropped += 1;
    }
  };
}
