/** Audit entries of one limiter or of many as one list, newest first, chosen by who, why, what kind and when. Stage: cli, api. */
import {
  type ReadEntriesOptions,
  readEntries,
  type StoredEntry,
  type UnreadableEntry,
} from '../actuate/audit.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import { storedMs } from '../redis/stream-id.js';
import { newestFirst } from './newest-first.js';

/** All but the place in one log: `before` is what the page before gave as `next`. */
export type EntriesQuery = Omit<ReadEntriesOptions, 'before'> & { before?: string | undefined };

/** An entry, or what can be said of one that cannot be read. */
export interface ListedEntry {
  limiter: string;
  entry: StoredEntry | UnreadableEntry;
}

export interface EntriesPage {
  /** Newest first. */
  listed: ListedEntry[];
  /** Give it as `before` to read on; null: these were the oldest. */
  next: string | null;
}

export async function readEntriesOf(
  redis: RedisClient,
  addresses: readonly LimiterAddress[],
  query: EntriesQuery,
): Promise<EntriesPage> {
  const { limit = 20, before, ...chosen } = query;
  const page = await newestFirst<StoredEntry | UnreadableEntry>(redis, addresses, {
    limit,
    before,
    idOf: ({ id }) => id,
    read: async (address, start) => {
      const { entries, unreadable, next } = await readEntries(redis, address, {
        ...chosen,
        limit,
        ...(start === undefined ? {} : { before: start }),
      });
      // What cannot be read answers to no filter; it may lie on either side of the time asked for.
      const within = unreadable.filter((each) => storedMs(each) < (query.untilMs ?? Infinity));
      return { items: [...entries, ...within], more: next !== null };
    },
  });
  return {
    listed: page.items.map(({ name, item }) => ({ limiter: name, entry: item })),
    next: page.next,
  };
}
