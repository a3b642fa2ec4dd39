/** A limiter's share of its downstream, agreed through one hash in Redis: granted only from what others do not hold. Stage: daemon. */
import type { RedisClient } from '../actuate/actuator.js';
import { boundsOf } from '../decide/bounds.js';
import { divide, type GroupMember, needLevel, needOf, toldNeed } from '../decide/capacity-group.js';
import type { InForceView, Sample, TrafficEstimate } from '../decide/types.js';
import type { Logger } from '../log.js';
import { usableOf } from '../policy/downstream.js';
import type { Policy } from '../policy/schema.js';
import { fleetKeys, type LimiterAddress } from '../redis/keys.js';

/** What each limiter's leader tells the others, under the limiter's name. */
interface GroupRecord {
  weight: number;
  min: number;
  max: number;
  need: number | null;
  /** Its rate cannot be moved now. */
  fixed: boolean;
  /** The most its rate is, or may become before it tells the next. */
  held: number;
  /** Where the rate goes when its autopilot is lost. */
  safe: number;
  usable: number;
  atMs: number;
}

/** Older news than this of a need is no news: then weights alone count. */
const NEWS_MS = 10_000;
/** A limiter whose leader was silent for so long has left the group. */
const FORGET_MS = 86_400_000;
/** Who has just come, or whose record was lost, takes nothing more before all others have told theirs. */
const LISTEN_MS = 3_000;

export interface GroupShare {
  /** The share at this tick; undefined: the policy names no downstream. */
  read(
    policy: Policy,
    inForce: InForceView,
    traffic: TrafficEstimate,
    nowMs: number,
  ): Promise<Sample['group']>;
}

export function createGroupShare(deps: {
  redis: RedisClient;
  address: LimiterAddress;
  log: Logger;
}): GroupShare {
  const { redis, address, log } = deps;
  const me = address.name;
  let key: string | null = null;
  let granted: number | null = null;
  let level: number | null = null;
  let newsMs = Number.NEGATIVE_INFINITY;
  let listenFromMs = 0;
  let failing = false;

  async function enter(name: string | undefined, nowMs: number): Promise<void> {
    const next = name === undefined ? null : fleetKeys(address.prefix).downstream(name);
    if (next === key) return;
    if (key !== null) await redis.hdel(key, me);
    key = next;
    granted = null;
    listenFromMs = nowMs;
  }

  function learnNeed(inForce: InForceView, traffic: TrafficEstimate, nowMs: number) {
    if (traffic.fresh) {
      const sinceMs = level === null ? 0 : nowMs - newsMs;
      level = needLevel(level, needOf(traffic, inForce.rate), sinceMs);
      newsMs = nowMs;
    } else if (nowMs - newsMs > NEWS_MS) level = null;
  }

  /** What is agreed with the others, told and read. */
  async function agree(key: string, record: GroupRecord, nowMs: number, rate: number) {
    const others = parse(await redis.hgetall(key), nowMs);
    if (!others.delete(me)) listenFromMs = nowMs;
    const usable = Math.min(record.usable, ...[...others.values()].map((each) => each.usable));
    const members = [...others].map(([name, each]) => memberOf(name, each, nowMs));
    const own = memberOf(me, { ...record, fixed: false }, nowMs);
    const fair = floor3(divide(usable, [...members, own]).get(me) ?? 0);
    const before = record.fixed ? rate : (granted ?? rate);

    async function tell(held: number): Promise<Map<string, GroupRecord>> {
      const most = record.fixed ? rate : Math.max(held, rate);
      const text = JSON.stringify({ ...record, held: most });
      const reply = await redis
        .multi()
        .hset(key, me, text)
        .pexpire(key, FORGET_MS)
        .hgetall(key)
        .exec();
      const [error, hash] = reply?.[2] ?? [new Error('no reply'), null];
      if (error) throw error;
      const now = parse(hash as Record<string, string>, nowMs);
      now.delete(me);
      return now;
    }
    // Down at once; up only into what nobody holds, told and read in one step, so that two never take the same.
    const listens = nowMs - listenFromMs < LISTEN_MS;
    let share =
      fair <= before ? fair : listens ? before : Math.min(fair, room(others, usable, before));
    const left = room(await tell(share), usable, before);
    if (left < share) {
      share = left;
      await tell(share);
    }
    granted = record.fixed ? rate : share;
    failing = false;
    return { share: record.fixed ? fair : share, usable, members: members.length + 1 };
  }

  return {
    async read(policy, inForce, traffic, nowMs) {
      const { downstream } = policy.limiter;
      const { rate } = inForce.target;
      try {
        await enter(downstream?.name, nowMs);
        if (key === null || downstream === undefined) return undefined;
        learnNeed(inForce, traffic, nowMs);
        const bounds = boundsOf(policy).rate;
        const record: GroupRecord = {
          weight: downstream.weight ?? 1,
          min: bounds.min,
          max: bounds.max,
          need: level === null ? null : toldNeed(level),
          fixed: inForce.mode !== 'auto' || inForce.held !== 'none',
          held: rate,
          safe: policy.whenLost.rate ?? policy.limiter.rate,
          usable: usableOf(downstream),
          atMs: Math.floor(nowMs),
        };
        return { downstream: downstream.name, ...(await agree(key, record, nowMs, rate)) };
      } catch (error) {
        if (!failing) {
          log.warn(
            { event: 'downstream_unread', limiter: me, err: error },
            `What the limiters of ${downstream?.name ?? 'a downstream'} have could not be agreed: ${(error as Error).message}. ${me} takes no more than it has.`,
          );
        }
        failing = true;
        if (downstream === undefined) return undefined;
        const share = granted ?? rate;
        return { downstream: downstream.name, share, usable: usableOf(downstream), members: 1 };
      }
    },
  };
}

/** What the others leave; never less than what is had already. */
function room(others: Map<string, GroupRecord>, usable: number, before: number): number {
  let held = 0;
  for (const each of others.values()) held += each.held;
  return Math.max(before, floor3(usable - held));
}

function memberOf(name: string, record: GroupRecord, nowMs: number): GroupMember {
  const { weight, min, max, fixed, held } = record;
  const silent = nowMs - record.atMs > NEWS_MS;
  const member = { name, weight, min, max, need: silent ? null : record.need };
  return fixed ? { ...member, fixed: held } : member;
}

/** Three digits, as rates are stored, and never up. */
function floor3(rate: number): number {
  if (!(rate > 0)) return 0;
  const unit = 10 ** (Math.floor(Math.log10(rate)) - 2);
  return Number((Math.floor(rate / unit + 1e-9) * unit).toPrecision(12));
}

/** What can be read; the dead are left out after a day, and one whose autopilot is lost may be at its safe rate. */
function parse(hash: Record<string, string>, nowMs: number): Map<string, GroupRecord> {
  const records = new Map<string, GroupRecord>();
  for (const [name, text] of Object.entries(hash)) {
    const record = recordOf(text);
    if (record === null || nowMs - record.atMs > FORGET_MS) continue;
    const silent = nowMs - record.atMs > NEWS_MS;
    records.set(name, silent ? { ...record, held: Math.max(record.held, record.safe) } : record);
  }
  return records;
}

function recordOf(text: string): GroupRecord | null {
  try {
    const record = JSON.parse(text) as GroupRecord;
    const { weight, min, max, need, held, safe, usable, atMs } = record;
    const sound = [weight, min, max, held, safe, usable, atMs, need ?? 0].every(
      (n) => Number.isFinite(n) && n >= 0,
    );
    return sound && weight > 0 ? record : null;
  } catch {
    return null;
  }
}
