/** A limiter that is looked at again and again: how it is read, and what was seen last. Stage: api. */
import type { LimiterAddress } from '../redis/keys.js';
import type { RedisClient } from '../redis/run-script.js';
import type { LimiterStatus } from '../report/status.js';
import type { StatusView } from '../view/status.js';
import { createStatusReader, type StatusReader } from '../view/status-reader.js';

export interface Watched {
  address: LimiterAddress;
  reader: StatusReader;
  /** null: it was not read yet. */
  view: StatusView | null;
  /** As those who follow were told last; null: they were not, or must be anew. */
  told: StatusView | null;
}

export function freshlyWatched(
  redis: RedisClient,
  address: LimiterAddress,
  own: (limiter: string) => LimiterStatus | null,
): Watched {
  const reader = createStatusReader(redis, address, {
    notes: true,
    told: () => own(address.name),
  });
  return { address, reader, view: null, told: null };
}

/** Matters of time passing alone. */
const AGES = new Set(['leftMs', 'lastTickAgeMs', 'heartbeatLeftMs']);
/** Measured: they play about by less than a row shows. */
const MEASURED = new Set(['traffic', 'worst']);
const CLOCKS = 'clocks';

/** Does it read the same as what was told? In what is in force and in words it is the same to the last digit. */
export function readsAlike(told: StatusView, now: StatusView): boolean {
  return alike(told, now, '');
}

function alike(a: unknown, b: unknown, part: string): boolean {
  if (a === b) return true;
  if (typeof a === 'number' && typeof b === 'number') return isNear(a, b, part);
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [one, other] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  for (const key of keys) {
    if (!(key in other)) return false;
    if (AGES.has(key)) continue;
    const inside = MEASURED.has(key) || key === CLOCKS ? key : part;
    if (!alike(one[key], other[key], inside)) return false;
  }
  return true;
}

/** Within half a percent, as in three digits; clocks within a tenth of a second. */
function isNear(a: number, b: number, part: string): boolean {
  const apart = Math.abs(a - b);
  if (part === CLOCKS) return apart < 100;
  return MEASURED.has(part) && apart < 0.005 * Math.max(Math.abs(a), Math.abs(b));
}
