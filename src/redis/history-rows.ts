/** Minute roll-ups (`{L}:h`): what a limiter saw and decided in each minute of Redis time, 8 days long. Stage: daemon → tune, cli. */
import type { LimiterKeys } from './keys.js';
import type { LimiterState } from './params.js';
import type { RedisClient } from './run-script.js';

export const HISTORY_MINUTE_MS = 60_000;
export const HISTORY_MINUTES = 8 * 1440;
/** The hash goes away this long after its last row. */
const HISTORY_TTL_MS = HISTORY_MINUTES * HISTORY_MINUTE_MS;
const VERSION = 1;
const READ_AT_ONCE = 1_000;

/** Throughput (answers per second), requests under way by Little's law, and mean response time (ms), of some seconds. */
export type KneePoint = [x: number, n: number, wMs: number];

/** One minute. Counts are of the whole fleet, taken from the telemetry seconds; null: not known. */
export interface HistoryRow {
  /** Minutes since 1970, Redis time. */
  minute: number;
  /** Seconds of it for which the daemon that wrote the row led: what it says below of state and limits it saw. */
  watchedS: number;
  /** Of those: the breaker not closed; a signal of the objective missed; the file another than the adopted policy. */
  notClosedS: number;
  overloadS: number;
  driftS: number;
  /** Of those: every signal that the policy decides by could be read. Absent: an earlier version wrote the row. */
  freshS?: number;
  /** In force at the end of the minute. */
  state: LimiterState | null;
  rate: number | null;
  capacity: number | null;
  /** 0: no cap. */
  inFlightMax: number | null;
  offered: number;
  admitted: number;
  /** By reason: rate, subject, in_flight, breaker_open, … */
  denied: Record<string, number>;
  ok: number;
  failed: number;
  cancelled: number;
  /** Response time of admitted requests. */
  meanMs: number | null;
  p50Ms: number | null;
  p95Ms: number | null;
  p99Ms: number | null;
  p999Ms: number | null;
  /** Time-averaged, fleet total. */
  inFlight: number | null;
  /** Waits for a database connection, of requests that had one; requests that wait for one, time-averaged. */
  dbWaitMs: number | null;
  dbWaitP95Ms: number | null;
  poolWaiting: number | null;
  /** Processes that reported, and those of them that report completions; time-averaged. */
  processes: number;
  reporting: number;
  /** Up to three a minute, of 20 seconds each. */
  points: KneePoint[];
}

/** Compact JSON, an array in the order of the interface without the minute, behind the version of this layout. */
export function historyText(row: HistoryRow): string {
  const r = round4;
  return JSON.stringify([
    VERSION,
    ...[r(row.watchedS), r(row.notClosedS), r(row.overloadS), r(row.driftS)],
    ...[row.state, r(row.rate), r(row.capacity), r(row.inFlightMax)],
    ...[row.offered, row.admitted, row.denied, row.ok, row.failed, row.cancelled],
    ...[r(row.meanMs), r(row.p50Ms), r(row.p95Ms), r(row.p99Ms), r(row.p999Ms)],
    ...[r(row.inFlight), r(row.dbWaitMs), r(row.dbWaitP95Ms), r(row.poolWaiting)],
    ...[r(row.processes), r(row.reporting)],
    row.points.flat().map(r),
    ...(row.freshS === undefined ? [] : [r(row.freshS)]),
  ]);
}

/** A row as stored; null for one that is of another version, or that nothing of ours wrote. */
export function readHistoryRow(field: string, text: string): HistoryRow | null {
  if (!/^\d{1,10}$/.test(field)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(parsed) || parsed.length < 27 || parsed[0] !== VERSION) return null;
  const list: unknown[] = parsed;
  const count = (i: number) => (isNumber(list[i]) ? list[i] : 0);
  const known = (i: number) => (isNumber(list[i]) ? list[i] : null);
  const flat = Array.isArray(list[26]) ? list[26].filter(isNumber) : [];
  const points: KneePoint[] = [];
  for (let i = 0; i + 2 < flat.length; i += 3) points.push([flat[i]!, flat[i + 1]!, flat[i + 2]!]);
  return {
    minute: Number(field),
    ...{ watchedS: count(1), notClosedS: count(2), overloadS: count(3), driftS: count(4) },
    state: isState(list[5]) ? list[5] : null,
    ...{ rate: known(6), capacity: known(7), inFlightMax: known(8) },
    ...{ offered: count(9), admitted: count(10), denied: countsOf(list[11]) },
    ...{ ok: count(12), failed: count(13), cancelled: count(14) },
    ...{ meanMs: known(15), p50Ms: known(16), p95Ms: known(17), p99Ms: known(18) },
    ...{ p999Ms: known(19), inFlight: known(20), dbWaitMs: known(21), dbWaitP95Ms: known(22) },
    ...{ poolWaiting: known(23), processes: count(24), reporting: count(25) },
    points,
    ...(isNumber(list[27]) && { freshS: list[27] }),
  };
}

/**
 * Writes a minute once: whoever comes second, after a change of owner say, changes nothing. What is older than
 * 8 days goes with it. @returns whether this call wrote it
 */
export async function writeHistoryRow(
  redis: RedisClient,
  keys: LimiterKeys,
  row: HistoryRow,
): Promise<boolean> {
  const key = keys.history;
  const wrote = await redis.hsetnx(key, String(row.minute), historyText(row));
  await redis.pexpire(key, HISTORY_TTL_MS);
  await redis.hdel(key, String(row.minute - HISTORY_MINUTES));
  return wrote === 1;
}

/** Removes rows that gaps left behind. @returns how many */
export async function trimHistory(
  redis: RedisClient,
  keys: LimiterKeys,
  nowMs: number,
): Promise<number> {
  const oldest = Math.floor(nowMs / HISTORY_MINUTE_MS) - HISTORY_MINUTES;
  const minutes = await redis.hkeys(keys.history);
  const gone = minutes.filter((field) => /^\d+$/.test(field) && Number(field) <= oldest);
  return gone.length === 0 ? 0 : redis.hdel(keys.history, ...gone);
}

/** Rows of [from, to) in ms of Redis time, oldest first. Those that cannot be read are left out. */
export async function readHistory(
  redis: RedisClient,
  keys: LimiterKeys,
  fromMs: number,
  toMs: number = Number.POSITIVE_INFINITY,
): Promise<HistoryRow[]> {
  const stored = await redis.hgetall(keys.history);
  const rows: HistoryRow[] = [];
  for (const [field, text] of Object.entries(stored)) {
    const row = readHistoryRow(field, text);
    if (row === null) continue;
    const atMs = row.minute * HISTORY_MINUTE_MS;
    if (atMs >= fromMs && atMs < toMs) rows.push(row);
  }
  return rows.sort((a, b) => a.minute - b.minute);
}

/** Rows of these minutes, in their order; those that are not there, or cannot be read, are left out. */
export async function readHistoryMinutes(
  redis: RedisClient,
  keys: LimiterKeys,
  minutes: readonly number[],
): Promise<HistoryRow[]> {
  const rows: HistoryRow[] = [];
  for (let from = 0; from < minutes.length; from += READ_AT_ONCE) {
    const part = minutes.slice(from, from + READ_AT_ONCE).map(String);
    const texts = await redis.hmget(keys.history, ...part);
    for (const [i, text] of texts.entries()) {
      const row = text === null ? null : readHistoryRow(part[i]!, text);
      if (row !== null) rows.push(row);
    }
  }
  return rows;
}

const STATES: readonly unknown[] = ['closed', 'open', 'half-open', 'recovering'];

function isState(value: unknown): value is LimiterState {
  return STATES.includes(value);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function countsOf(value: unknown): Record<string, number> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, number] => isNumber(entry[1])),
  );
}

/** Four significant digits: a row of a minute needs no more, and stays near 200 bytes. */
function round4<T extends number | null>(value: T): T {
  if (value === null || value === 0) return value;
  return Number(value.toPrecision(4)) as T;
}
