/** How far each exporter of an audit log has got, as all daemons of a Redis know it. Stage: actuate, audit. */
import type { LimiterKeys } from './keys.js';
import type { RedisClient } from './run-script.js';
import { compareIds } from './stream-id.js';

/** How far an exporter has got, as it last said itself. */
export interface Exporter {
  name: string;
  /** Stream id of the newest entry that it has. */
  through: string;
  atMs: number;
}

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

/** Fields: `keeps` → `<keep> <keepMost>`; `@<exporter>` → `<stream id> <ms>`. What nothing of ours wrote is left out. */
function exportersIn(found: Record<string, string>): Exporter[] {
  return Object.entries(found).flatMap(([field, value]) => {
    const [, through, at] = /^(\d+-\d+) (\d+)/.exec(value) ?? [];
    if (!field.startsWith('@') || through === undefined) return [];
    return [{ name: field.slice(1), through, atMs: Number(at) }];
  });
}

/** All that ever told of themselves, also those of which nothing was heard for long. */
export async function readExporters(redis: RedisClient, keys: LimiterKeys): Promise<Exporter[]> {
  return exportersIn(await redis.hgetall(keys.retention));
}

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
  for (const { through, atMs } of exportersIn(found)) {
    if (nowMs - atMs > LIVES_MS) continue;
    if (heldBack === null || compareIds(through, heldBack) < 0) heldBack = through;
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
