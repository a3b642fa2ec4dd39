/** An audit entry as a record for programs. Pure. Stage: cli, api. */
import type { StoredEntry } from '../actuate/audit.js';

/** For `--json`: the hashed body as it is, beside the chain's own fields; `full` adds the law's inputs. */
export function entryRecord(entry: StoredEntry, full: boolean): Record<string, unknown> {
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
