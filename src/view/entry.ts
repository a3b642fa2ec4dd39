/** An audit entry as a record for programs. Pure. Stage: cli, api. */
import type { StoredEntry } from '../actuate/audit.js';
import type { EntryBody } from '../actuate/entry.js';

/** As `flyball audit --json` tells it. */
export interface AuditRecord extends EntryBody {
  /** Stream id; its first part is when Redis stored it, ms. */
  id: string;
  /** ISO 8601 of `atMs`. */
  at: string | null;
  hash: string;
  prev: string;
}

/** For `--json`: the hashed body as it is, beside the chain's own fields; `full` adds the law's inputs. */
export function entryRecord(entry: StoredEntry, full: boolean): AuditRecord {
  const { sample, stateBefore, ...body } = entry.body;
  return {
    id: entry.id,
    ...body,
    at: iso(body.atMs),
    ...(full ? { sample, stateBefore } : {}),
    hash: entry.hash,
    prev: entry.prev,
  };
}

export function iso(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}
