/** Reading the audit log: pages of entries, newest first, by limiter, kind, actor, reason or time. Stage: actuate. */
import { FlyballError } from '../errors.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { endBefore } from '../redis/stream-id.js';
import type { RedisClient } from './actuator.js';
import {
  type Actor,
  isReadable,
  readEntry,
  type StoredEntry,
  type UnreadableEntry,
} from './entry.js';

export type { VerifyReport } from './chain-report.js';
export type { StoredEntry, UnreadableEntry } from './entry.js';
export { type VerifyOptions, verifyAudit } from './verify.js';

export interface ReadEntriesOptions {
  /** Most entries to return. Default 50. */
  limit?: number;
  /** Continue after this stream id (exclusive), toward older entries. */
  before?: string;
  /** The oldest stream id to read (inclusive). */
  from?: string;
  kind?: 'change' | 'note';
  actor?: Actor['kind'];
  /** Part of the actor's name, in any case of letters. */
  by?: string;
  /** One of these reason codes. */
  reason?: string | readonly string[];
  epoch?: number;
  revision?: number;
  /** Only entries stored at or after, and before, these Redis times (ms). */
  sinceMs?: number;
  untilMs?: number;
}

export interface EntryPage {
  /** Newest first. */
  entries: StoredEntry[];
  /** Those met on the way that cannot be read, newest first; filters do not apply to them. */
  unreadable: UnreadableEntry[];
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
  const oldest =
    options.from ?? (sinceMs === undefined ? '-' : String(Math.max(0, Math.floor(sinceMs))));
  let from = options.before === undefined ? newestId(options.untilMs) : endBefore(options.before);
  const entries: StoredEntry[] = [];
  const unreadable: UnreadableEntry[] = [];
  for (;;) {
    const page = await redis.xrevrange(key, from, oldest, 'COUNT', PAGE);
    for (const [id, fields] of page) {
      const entry = readEntry(id, fields);
      if (!isReadable(entry)) unreadable.push(entry);
      else if (matches(entry, options)) entries.push(entry);
      if (entries.length >= limit) return { entries, unreadable, next: id };
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) return { entries, unreadable, next: null };
    from = `(${last[0]}`;
  }
}

/** The `change` entry of one revision (of the newest epoch that has it), or null. One that cannot be read is an error. */
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
  const found = page.entries[0] ?? null;
  const broken = page.unreadable.find(
    (entry) => entry.revision === revision && (epoch === undefined || entry.epoch === epoch),
  );
  if (found === null && broken !== undefined) {
    throw new FlyballError(
      'FLYBALL_E_AUDIT_BROKEN',
      `the audit entry of revision ${revision} (${broken.id}) cannot be read: ${broken.why}. \`flyball audit verify\` shows where the chain breaks; other revisions can be used.`,
    );
  }
  return found;
}

function newestId(untilMs: number | undefined): string {
  return untilMs === undefined ? '+' : endBefore(`${Math.max(0, Math.ceil(untilMs))}-0`);
}

/** By who, why and what kind; when it was stored is for the reading of the stream. */
export function matches(entry: StoredEntry, options: ReadEntriesOptions): boolean {
  return (
    (options.kind === undefined || entry.kind === options.kind) &&
    (options.revision === undefined || entry.revision === options.revision) &&
    (options.epoch === undefined || entry.epoch === options.epoch) &&
    (options.actor === undefined || entry.body.actor.kind === options.actor) &&
    (options.by === undefined || isBy(entry.body.actor.name, options.by)) &&
    (options.reason === undefined || [options.reason].flat().includes(entry.body.reason))
  );
}

function isBy(name: string, part: string): boolean {
  return name.toLowerCase().includes(part.toLowerCase());
}
