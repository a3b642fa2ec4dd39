/** Since when a canary has surely not rested, for who leads late and did not see it: by what the audit log says. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { readEntries } from '../actuate/audit.js';
import type { StoredEntry } from '../actuate/entry.js';
import { whyRests } from '../redis/canary.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { storedMs } from '../redis/stream-id.js';

/** More changes than a law makes in the time for which telemetry is kept. */
const MOST_ENTRIES = 1_000;

/** Redis ms: nothing after it, up to now, tells of a rest. Of the time before `fromMs` nothing is asked. */
export async function restedUntil(
  redis: RedisClient,
  address: LimiterAddress,
  { pinnedUntil, frozenUntil }: Params,
  time: { fromMs: number; nowMs: number },
): Promise<number> {
  const { fromMs, nowMs } = time;
  const asked = { sinceMs: fromMs, kind: 'change', limit: MOST_ENTRIES } as const;
  const { entries, unreadable } = await readEntries(redis, address, asked);
  const told = [...entries.filter(mayEndARest), ...unreadable].map(storedMs);
  // One that lapsed with no daemon to write it.
  const lapsed = [pinnedUntil, frozenUntil].filter((untilMs) => untilMs <= nowMs);
  return Math.max(fromMs, ...told, ...lapsed);
}

/** Holds are no values of an entry: whatever a person did may have ended one. It never begins while it would rest. */
function mayEndARest({ body: { actor, reason, before } }: StoredEntry): boolean {
  if (reason === 'canary_begins') return false;
  if (actor.kind === 'person' || reason === 'hold_lapsed' || before === null) return true;
  return whyRests({ ...before, pinnedUntil: 0, frozenUntil: 0 }, 0) !== null;
}
