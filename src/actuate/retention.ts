/** What an audit log keeps in Redis: the newest entries, and those that no exporter has yet; each trim leaves a note. Stage: actuate. */
import type { Trim } from '../redis/calls.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { readExports, tellKept } from '../redis/retention.js';
import { compareIds, fieldOf } from '../redis/stream-id.js';
import { type RedisClient, readParams, writeNote } from './actuator.js';
import { type Actor, AUDIT_TRIMMED } from './entry.js';

export interface Retention {
  /** Newest entries that stay. */
  keep: number;
  /** More than these never stay, exported or not. */
  keepMost: number;
}

const DEFAULT_RETENTION: Retention = { keep: 10_000, keepMost: 50_000 };

export interface Retained {
  /** Entries in Redis before. */
  entries: number;
  trimmed: number;
  /** Of those trimmed: what no exporter had. */
  unexported: number;
}

/** Read at once while looking for where to cut. */
const PAGE = 200;
/** Most entries of one trim: the rest goes at the next. */
const MOST = 5_000;

/** Trims one log if it has grown a tenth past what it keeps, so that a note stands for many entries. */
export async function retain(
  redis: RedisClient,
  address: LimiterAddress,
  options: Retention & {
    actor: Actor;
    nowMs: number;
    /** Exporters that this daemon knows of by itself: what they have not, stays. */
    exporters?: readonly string[];
  },
): Promise<Retained> {
  const { keep, keepMost, nowMs } = options;
  const keys = limiterKeys(address);
  const exports = await readExports(redis, keys, nowMs, options.exporters);
  await noteChange(redis, address, options, exports.keeps);
  const entries = await redis.xlen(keys.audit);
  const over = Math.min(entries - keep, MOST);
  const nothing = { entries, trimmed: 0, unexported: 0 };
  if (entries - keep < Math.max(1, keep / 10)) return nothing;
  const cut = await findCut(redis, keys.audit, over, entries - keepMost, exports.heldBack);
  if (cut === null) return nothing;
  const { trim, trimmed, unexported } = cut;
  const reply = await writeNote(
    redis,
    address,
    {
      ...(await said(redis, address, options.actor)),
      reason: AUDIT_TRIMMED,
      sentence: trimSentence(cut, keep),
      detail: {
        trimmed,
        unexported,
        through: trim.through,
        throughHash: trim.hash,
        keep,
        keepMost,
      },
      trim,
    },
    { nowMs },
  );
  return reply.status === 'ok' ? { entries, trimmed, unexported } : nothing;
}

interface Cut {
  trim: Trim;
  trimmed: number;
  unexported: number;
}

/** Through which of the oldest `over` entries to trim: those exported, and the first `mustGo` in any case. */
async function findCut(
  redis: RedisClient,
  key: string,
  over: number,
  mustGo: number,
  heldBack: string | null,
): Promise<Cut | null> {
  let from = '-';
  let seen = 0;
  let cut: Cut | null = null;
  let unexported = 0;
  while (seen < over) {
    const page = await redis.xrange(key, from, '+', 'COUNT', Math.min(PAGE, over - seen));
    for (const [id, fields] of page) {
      seen++;
      const exported = heldBack === null || compareIds(id, heldBack) <= 0;
      if (!exported && seen > mustGo) return cut;
      if (!exported) unexported++;
      cut = { trim: { through: id, hash: fieldOf(fields, 'hash') }, trimmed: seen, unexported };
    }
    const last = page.at(-1);
    if (last === undefined) break;
    from = `(${last[0]}`;
  }
  return cut;
}

function trimSentence({ trim, trimmed, unexported }: Cut, keep: number): string {
  const lost = unexported > 0 ? `, ${unexported} of them not exported,` : '';
  return `${trimmed} entries up to ${trim.through}${lost} were trimmed: the newest ${keep} stay. The last hash trimmed is ${trim.hash}.`;
}

/** Retention is an entry: another number than the last one said is told in the log. */
async function noteChange(
  redis: RedisClient,
  address: LimiterAddress,
  { keep, keepMost, actor, nowMs }: Retention & { actor: Actor; nowMs: number },
  keeps: Retention | null,
): Promise<void> {
  const before = keeps ?? DEFAULT_RETENTION;
  const keys = limiterKeys(address);
  const changed = before.keep !== keep || before.keepMost !== keepMost;
  if (changed) {
    await writeNote(
      redis,
      address,
      {
        ...(await said(redis, address, actor)),
        reason: 'audit_retention',
        sentence: `The log keeps the newest ${keep} entries from now on, ${before.keep} before; those not exported up to ${keepMost}, ${before.keepMost} before.`,
        detail: { keep, keepMost, before },
      },
      { nowMs },
    );
  }
  await tellKept(redis, keys, { keep, keepMost });
}

async function said(redis: RedisClient, address: LimiterAddress, actor: Actor) {
  const { params } = await readParams(redis, address);
  const expected = { epoch: params?.epoch ?? 0, revision: params?.revision ?? 0 };
  return { expected, actor, before: null, after: null, policyHash: params?.policyHash ?? '' };
}
