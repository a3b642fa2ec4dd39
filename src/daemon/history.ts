/** Writes each minute's roll-up once it is over, while its limiter is led; never in the way of a turn. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import { HISTORY_MINUTE_MS, trimHistory, writeHistoryRow } from '../redis/history-rows.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { readSeconds } from '../redis/telemetry-seconds.js';
import { rollUp, UNWATCHED, type WatchedMinute } from './roll-up.js';

export interface HistoryTick {
  /** Redis time. */
  nowMs: number;
  dtMs: number;
  inForce: NonNullable<WatchedMinute['inForce']>;
  overload: boolean;
  drift: boolean;
  /** Every signal that the policy decides by could be read; no traffic is no fault of a signal. */
  fresh: boolean;
}

export interface History {
  /** One tick of the leader. */
  watch(tick: HistoryTick): void;
  /** Ends when a row that is being written is written. */
  close(): Promise<void>;
}

/** Flushes of a minute may come this late; from there on limiters take their turns, so that not all write at once. */
const LATE_MS = 6_000;
const SPREAD_MS = 44_000;
const RETRY_MS = 5_000;
const TRIM_EVERY_MINUTES = 60;

export function createHistory(deps: {
  redis: RedisClient;
  address: LimiterAddress;
  clock: Clock;
  log: Logger;
}): History {
  const { redis, address, clock, log } = deps;
  const keys = limiterKeys(address);
  const dueAfterMs = LATE_MS + spreadOf(address.name);
  const minutes = new Map<number, WatchedMinute>();
  /** The newest minute that needs no more work. */
  let done = 0;
  let trimmed = 0;
  let retryAtMs = 0;
  let failing = false;
  let running: Promise<void> | null = null;

  async function write(minute: number): Promise<void> {
    const first = minute * 60;
    const wishes = Array.from({ length: 60 }, (_, i) => ({
      key: keys.telemetry(first + i),
      mark: '',
    }));
    const { seconds } = await readSeconds(redis, wishes);
    const row = rollUp(
      minute,
      seconds.map((second) => second?.lines ?? null),
      minutes.get(minute) ?? UNWATCHED,
    );
    if (row !== null) await writeHistoryRow(redis, keys, row);
    if (minute - trimmed >= TRIM_EVERY_MINUTES) {
      await trimHistory(redis, keys, minute * HISTORY_MINUTE_MS);
      trimmed = minute;
    }
  }

  async function attempt(minute: number): Promise<void> {
    try {
      await write(minute);
      done = minute;
      for (const old of minutes.keys()) if (old <= minute) minutes.delete(old);
      failing = false;
    } catch (error) {
      retryAtMs = clock.monotonicMs() + RETRY_MS;
      if (failing) return;
      failing = true;
      log.warn(
        { event: 'history_failed', limiter: address.name, err: error },
        `The roll-up of a minute of ${address.name} could not be written: ${(error as Error).message}. It is tried again.`,
      );
    }
  }

  return {
    watch(tick) {
      const minute = Math.floor(tick.nowMs / HISTORY_MINUTE_MS);
      // A clock that was set back: what lies ahead is not of this time.
      if (done >= minute) done = minute - 2;
      minutes.set(minute, addTick(minutes.get(minute) ?? UNWATCHED, tick));
      for (const old of minutes.keys()) if (old < minute - 1 || old > minute) minutes.delete(old);
      const over = tick.nowMs - minute * HISTORY_MINUTE_MS;
      if (running !== null || over < dueAfterMs || done >= minute - 1) return;
      if (clock.monotonicMs() < retryAtMs) return;
      running = attempt(minute - 1).finally(() => {
        running = null;
      });
    },
    async close() {
      await running;
    },
  };
}

function addTick(to: WatchedMinute, tick: HistoryTick): WatchedMinute {
  // A tick that came late speaks of a few seconds at most: what lies before it nobody saw.
  const seconds = Math.min(Math.max(0, tick.dtMs) / 1000, 5);
  const sum = (total: number, counts: boolean) => Math.min(60, total + (counts ? seconds : 0));
  return {
    watchedS: sum(to.watchedS, true),
    notClosedS: sum(to.notClosedS, tick.inForce.state !== 'closed'),
    overloadS: sum(to.overloadS, tick.overload),
    driftS: sum(to.driftS, tick.drift),
    freshS: sum(to.freshS, tick.fresh),
    inForce: tick.inForce,
  };
}

/** The same for each daemon, even over names. */
function spreadOf(name: string): number {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003;
  return hash % SPREAD_MS;
}
