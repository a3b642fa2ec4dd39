/** How far each exporter of an audit log has got, as all daemons of a Redis know it. Stage: actuate, audit. */
import type { LimiterKeys } from './keys.js';
import type { RedisClient } from './run-script.js';
import { compareIds } from './stream-id.js';

export interface Exports {
  /** What the log was last told to keep. */
  keeps: { keep: number; keepMost: number } | null;
  /** The newest entry that all exporters have; null: there is none that lives. */
  heldBack: string | null;
}

/** An exporter of which nothing was heard for a day holds nothing back any more. */
const LIVES_MS = 86_400_000;

/** A log whose daemons are all gone for so long is nobody's to keep in mind. */
const TTL_MS = 7 * LIVES_MS;

/** Fields: `keeps` → `<keep> <keepMost>`; `@<exporter>` → `<stream id> <ms>`. */
export async function readExports(
  redis: RedisClient,
  keys: LimiterKeys,
  nowMs: number,
  /** Exporters that there must be, heard of or not. */
  expected: readonly string[] = [],
): Promise<Exports> {
  const found = await redis.hgetall(keys.retention);
  const [keep, keepMost] = (found.keeps ?? '').split(' ').map(Number);
  const known = Number.isInteger(keep) && Number.isInteger(keepMost);
  const unheard = expected.some((name) => found[`@${name}`] === undefined);
  let heldBack: string | null = unheard ? '0-0' : null;
  for (const [field, value] of Object.entries(found)) {
    const [id = '', at = ''] = value.split(' ');
    if (!field.startsWith('@') || nowMs - Number(at) > LIVES_MS) continue;
    if (heldBack === null || compareIds(id, heldBack) < 0) heldBack = id;
  }
  return { keeps: known ? { keep: keep!, keepMost: keepMost! } : null, heldBack };
}

/** Says what the log is to keep. */
export async function tellKept(
  redis: RedisClient,
  keys: LimiterKeys,
  { keep, keepMost }: NonNullable<Exports['keeps']>,
): Promise<void> {
  await redis.hset(keys.retention, 'keeps', `${keep} ${keepMost}`);
  await redis.pexpire(keys.retention, TTL_MS);
}

/** Tells up to where an exporter has a log. */
export async function tellExported(
  redis: RedisClient,
  keys: LimiterKeys,
  exporter: string,
  through: string,
  nowMs: number,
): Promise<void> {
  await redis.hset(keys.retention, `@${exporter}`, `${through} ${nowMs}`);
  await redis.pexpire(keys.retention, TTL_MS);
}
