/** The facts of one limiter's status, look after look: only what has changed since is read and taken apart again. Stage: api. */
import { isReadable, readEntry, type StoredEntry } from '../actuate/entry.js';
import { readPolicy } from '../actuate/verbs/apply.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import { type Look, readLook } from '../redis/look.js';
import type { Params } from '../redis/params.js';
import { createParamsReader } from '../redis/reread-params.js';
import type { RedisClient } from '../redis/run-script.js';
import { isOutlived, type LimiterStatus } from '../report/status.js';
import {
  leaseOwner,
  parseStatus,
  readNewestChange,
  type StatusFacts,
  TRAFFIC_SECONDS,
} from './status-facts.js';
import { liveProcesses, type SecondTraffic, sumSeconds, trafficOfLines } from './traffic.js';

export interface StatusReader {
  /** `entries`: those stored since the last look, oldest first; the first look has none. */
  read(): Promise<{ facts: StatusFacts; entries: StoredEntry[] }>;
}

export interface StatusReaderOptions {
  /** Look for entries at each look, not only when the params have moved. */
  notes?: boolean;
  /** What this process itself has stored in `:status` last, if it leads: that need not be read back. */
  told?: () => LimiterStatus | null;
}

export function createStatusReader(
  redis: RedisClient,
  address: LimiterAddress,
  { notes = false, told = () => null }: StatusReaderOptions = {},
): StatusReader {
  const keys = limiterKeys(address);
  const readParams = createParamsReader(redis, address);
  /** What is known of each of the last seconds. */
  let known = new Map<number, { mark: string; traffic: SecondTraffic | null }>();
  let policy: { hash: string; policy: Policy | null } | null = null;
  let head: { at: string; id: string; newest: StoredEntry | null } | null = null;

  function trafficOf(wanted: readonly number[], { seconds, shares }: Look, nowUs: number) {
    const now: typeof known = new Map();
    for (const [i, second] of wanted.entries()) {
      const found = seconds[i];
      const before = known.get(second);
      // Absent: nothing was counted in it, or nothing any more.
      if (found)
        now.set(second, {
          mark: found.mark,
          traffic: found.mark === '' ? null : trafficOfLines(found.lines),
        });
      else if (before !== undefined) now.set(second, before);
    }
    known = now;
    const whole = [...known.values()].flatMap(({ traffic }) => traffic ?? []);
    return { ...sumSeconds(whole, TRAFFIC_SECONDS), ...liveProcesses(shares, nowUs) };
  }

  async function adopted(params: Params | null): Promise<Policy | null> {
    const hash = params?.policyHash ?? '';
    if (policy?.hash !== hash) policy = { hash, policy: await readPolicy(redis, address) };
    return policy.policy;
  }

  /** First the end of the log: what is stored while the rest is read is told as new. */
  async function endOfLog(): Promise<{ id: string; newest: StoredEntry | null }> {
    const [last] = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1).catch(() => []);
    const entry = last === undefined ? null : readEntry(...last);
    const whole = entry !== null && isReadable(entry) && entry.kind === 'change' ? entry : null;
    const newest = whole ?? (last === undefined ? null : await readNewestChange(redis, address));
    return { id: last?.[0] ?? '0-0', newest };
  }

  function newer({ entries: found }: Look): StoredEntry[] {
    const entries = found.map(([id, fields]) => readEntry(id, fields)).filter(isReadable);
    if (head === null || found.length === 0) return entries;
    const newest = entries.findLast(({ kind }) => kind === 'change') ?? head.newest;
    head = { ...head, id: found.at(-1)![0], newest };
    return entries;
  }

  return {
    async read() {
      const { params, unreadable, nowUs } = await readParams();
      if (unreadable !== null) throw unreadable;
      const nowMs = nowUs / 1000;
      const at = params === null ? '' : `${params.epoch} ${params.revision}`;
      const entry = head !== null && (notes || head.at !== at) ? head.id : '';
      if (head === null) head = { at, ...(await endOfLog()) };
      const last = Math.floor(nowUs / 1_000_000) - 1;
      const wanted = Array.from({ length: TRAFFIC_SECONDS }, (_, i) => last - i);
      const own = told();
      const lease = own === null ? '' : `${own.owner}:${own.fence}`;
      const seconds = wanted.map((second) => ({ second, mark: known.get(second)?.mark ?? '' }));
      const [policyNow, look] = await Promise.all([
        adopted(params),
        readLook(redis, keys, { lease, entry, seconds }),
      ]);
      const entries = newer(look);
      head = { ...head, at };
      const owned = own !== null && look.lease === lease;
      const status = owned ? (isOutlived(own, nowMs) ? null : own) : parseStatus(look.status);
      const facts: StatusFacts = {
        ...{ address, params, nowMs, status },
        policy: policyNow,
        owner: leaseOwner(look.lease),
        traffic: trafficOf(wanted, look, nowUs),
        newest: head.newest,
      };
      return { facts, entries };
    },
  };
}
