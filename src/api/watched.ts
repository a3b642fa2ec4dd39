/** A limiter that is looked at again and again: how it is read, and what was seen last. Stage: api. */
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import type { StatusView } from '../view/status.js';
import { createStatusReader, type StatusReader } from '../view/status-reader.js';

export interface Watched {
  address: LimiterAddress;
  reader: StatusReader;
  /** null: it was not read yet. */
  view: StatusView | null;
  /** What it is compared by: ages aside. */
  mark: string;
}

export function freshlyWatched(redis: RedisClient, address: LimiterAddress): Watched {
  return { address, reader: createStatusReader(redis, address, true), view: null, mark: '' };
}

/** What is not a matter of time passing alone. */
export function markOf(view: StatusView): string {
  return JSON.stringify({
    ...view,
    holds: view.holds.map((hold) => ({ ...hold, leftMs: 0 })),
    daemon: { ...view.daemon, lastTickAgeMs: 0, heartbeatLeftMs: 0 },
  });
}
