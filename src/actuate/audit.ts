/** Reading the audit log: pages of entries, newest first, by limiter, kind, actor, reason or time. Stage: actuate. */
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from './actuator.js';
import { type Actor, parseEntry, type StoredEntry } from './entry.js';

export type { StoredEntry } from './entry.js';
export { type VerifyOptions, type VerifyReport, verifyAudit } from './verify.js';

export interface ReadEntriesOptions {
  /** Most entries to return. Default 50. */
  limit?: number;
  /** Continue after this stream id (exclusive), toward older entries. */
  before?: string;
  kind?: 'change' | 'note';
  actor?: Actor['kind'];
  reason?: string;
  epoch?: number;
  revision?: number;
  /** Only entries stored at or after, and before, these Redis times (ms). */
  sinceMs?: number;
  untilMs?: number;
}

export interface EntryPage {
  /** Newest first. */
  entries: StoredEntry[];
  /** Give it as `before` to read on; null at the oldest entry. */
  next: string | null;
}

const PAGE = 200;

/** Reads entries newest first, a page of the stream at a time, until `limit` of them match. */
export async function readEntries(
  redis: RedisClient,
  address: LimiterAddress,
  options: ReadEntriesOptions = {},
): Promise<EntryPage> {
  const { limit = 50, sinceMs } = options;
  const key = limiterKeys(address).audit;
  const oldest = sinceMs === undefined ? '-' : String(Math.floor(sinceMs));
  let from = options.before === undefined ? newestId(options.untilMs) : `(${options.before}`;
  const entries: StoredEntry[] = [];
  for (;;) {
    const page = await redis.xrevrange(key, from, oldest, 'COUNT', PAGE);
    for (const [id, fields] of page) {
      const entry = parseEntry(id, fields);
      if (!matches(entry, options)) continue;
      entries.push(entry);
      if (entries.length >= limit) return { entries, next: id };
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) return { entries, next: null };
    from = `(${last[0]}`;
  }
}

/** The `change` entry of one revision (of the newest epoch that has it), or null. */
export async function findRevision(
  redis: RedisClient,
  address: LimiterAddress,
  revision: number,
  epoch?: number,
): Promise<StoredEntry | null> {
  const page = await readEntries(redis, address, {
    kind: 'change',
    revision,
    limit: 1,
    ...(epoch === undefined ? {} : { epoch }),
  });
  return page.entries[0] ?? null;
}

function newestId(untilMs: number | undefined): string {
  return untilMs === undefined ? '+' : `(${Math.ceil(untilMs)}-0`;
}

function matches(entry: StoredEntry, options: ReadEntriesOptions): boolean {
  return (
    (options.kind === undefined || entry.kind === options.kind) &&
    (options.revision === undefined || entry.revision === options.revision) &&
    (options.epoch === undefined || entry.epoch === options.epoch) &&
    (options.actor === undefined || entry.body.actor?.kind === options.actor) &&
    (options.reason === undefined || entry.body.reason === options.reason)
  );
}
