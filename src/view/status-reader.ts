/** The facts of one limiter's status, look after look: only what has changed since is read and taken apart again. Stage: api. */
import { isReadable, readEntry, type StoredEntry } from '../actuate/entry.js';
import { readPolicy } from '../actuate/verbs/apply.js';
import type { Policy } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { createParamsReader } from '../redis/reread-params.js';
import type { RedisClient } from '../redis/run-script.js';
import { readSeconds } from '../redis/telemetry-seconds.js';
import {
  leaseOwner,
  parseStatus,
  readNewestChange,
  type StatusFacts,
  TRAFFIC_SECONDS,
} from './status-facts.js';
import { liveProcesses, sumSeconds, trafficFields } from './traffic.js';

export interface StatusReader {
  /** `entries`: those stored since the last look, oldest first; the first look has none. */
  read(): Promise<{ facts: StatusFacts; entries: StoredEntry[] }>;
}

/** Entries of one look; who missed more reads the log. */
const MOST_ENTRIES = 100;

/** `notes`: look for entries at each look, not only when the params have moved. */
export function createStatusReader(
  redis: RedisClient,
  address: LimiterAddress,
  notes = false,
): StatusReader {
  const keys = limiterKeys(address);
  const readParams = createParamsReader(redis, address);
  const seconds = new Map<number, { mark: string; fields: Record<string, string> }>();
  let policy: { hash: string; policy: Policy | null } | null = null;
  let head: { at: string; id: string; newest: StoredEntry | null } | null = null;

  async function traffic(nowUs: number, shares: Record<string, string>) {
    const last = Math.floor(nowUs / 1_000_000) - 1;
    const wanted = Array.from({ length: TRAFFIC_SECONDS }, (_, i) => last - i);
    for (const second of seconds.keys()) if (!wanted.includes(second)) seconds.delete(second);
    const { seconds: found } = await readSeconds(
      redis,
      wanted.map((second) => ({
        key: keys.telemetry(second),
        mark: seconds.get(second)?.mark ?? '',
      })),
    );
    for (const [i, second] of found.entries()) {
      if (second === null) continue;
      seconds.set(wanted[i]!, { mark: second.mark, fields: trafficFields(second.lines) });
    }
    const hashes = [...seconds.values()].map(({ fields }) => fields);
    return { ...sumSeconds(hashes, TRAFFIC_SECONDS), ...liveProcesses(shares, nowUs) };
  }

  async function adopted(params: Params | null): Promise<Policy | null> {
    const hash = params?.policyHash ?? '';
    if (policy?.hash !== hash) policy = { hash, policy: await readPolicy(redis, address) };
    return policy.policy;
  }

  async function newer(params: Params | null): Promise<StoredEntry[]> {
    const at = params === null ? '' : `${params.epoch} ${params.revision}`;
    if (head === null) {
      // First the end: what is stored while the rest is read is told as new.
      const [last] = await redis.xrevrange(keys.audit, '+', '-', 'COUNT', 1).catch(() => []);
      const entry = last === undefined ? null : readEntry(...last);
      const whole = entry !== null && isReadable(entry) && entry.kind === 'change' ? entry : null;
      const newest = whole ?? (last === undefined ? null : await readNewestChange(redis, address));
      head = { at, id: last?.[0] ?? '0-0', newest };
      return [];
    }
    if (head.at === at && !notes) return [];
    const found = await redis
      .xrange(keys.audit, `(${head.id}`, '+', 'COUNT', MOST_ENTRIES)
      .catch(() => []);
    const entries = found.map(([id, fields]) => readEntry(id, fields)).filter(isReadable);
    const newest = entries.findLast(({ kind }) => kind === 'change') ?? head.newest;
    head = { at, id: found.at(-1)?.[0] ?? head.id, newest };
    return entries;
  }

  return {
    async read() {
      const [{ params, unreadable, nowUs }, [lease = null, status = null], shares] =
        await Promise.all([
          readParams(),
          redis.mget(keys.lease, keys.status),
          redis.hgetall(keys.inFlight),
        ]);
      if (unreadable !== null) throw unreadable;
      const [policyNow, entries, trafficNow] = await Promise.all([
        adopted(params),
        newer(params),
        traffic(nowUs, shares),
      ]);
      const facts: StatusFacts = {
        address,
        params,
        nowMs: nowUs / 1000,
        policy: policyNow,
        owner: leaseOwner(lease),
        status: parseStatus(status),
        traffic: trafficNow,
        newest: head?.newest ?? null,
      };
      return { facts, entries };
    },
  };
}
