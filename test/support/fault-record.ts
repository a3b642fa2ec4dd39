/** What a run of a fault schedule leaves behind for the checker: entries, leases, policies, services' logs, faults. */
import { readParams } from '../../src/actuate/actuator.js';
import type { StoredEntry } from '../../src/actuate/audit.js';
import { isReadable, readEntry } from '../../src/actuate/entry.js';
import { type Effective, effectiveAtUs } from '../../src/redis/effective.js';
import { type LimiterAddress, limiterKeys } from '../../src/redis/keys.js';
import type { Params } from '../../src/redis/params.js';
import type { RedisClient } from '../../src/redis/run-script.js';
import { storedMs } from '../../src/redis/stream-id.js';

/** What one Redis server held of the audit log, from its first entry on; a server that lost some begins another. */
export interface Segment {
  entries: StoredEntry[];
  /** Entries that could not be read. */
  unreadable: string[];
}

/** 100 ms of one service: decisions by `allowed|wouldAllow|reason|source|epoch|revision|state`. */
export interface ServiceLine {
  service: string;
  pid: number;
  limiter: string;
  fromMs: number;
  atMs: number;
  /** Longest decision, and for how long in all the process's own loop stood still. */
  maxMs: number;
  lagMs: number;
  inFlight: number;
  processes: number;
  counts: Record<string, number>;
}

/** What one process heard of a bucket from Redis. */
export interface Heard {
  pid: number;
  /** Its key. */
  bucket: string;
  /** On the process's clock. */
  heardMs: number;
  /** Redis's time in µs, tokens given, the rate in force, and whether it was a block; absent: no answer that did anything. */
  atUs?: number;
  tokens?: number;
  rate?: number;
  drawn?: boolean;
  /** Taken back by the same call. */
  back?: number;
  /** Number of a call that may take back so many. Without another line of that number its answer was never heard. */
  call?: number;
  maybeBack?: number;
}

/** What was in force, as read from Redis at a moment of its own time. */
export interface ParamsLook {
  atMs: number;
  epoch: number;
  revision: number;
  changedAtUs: number;
  gliding: boolean;
}

export interface LeaseLook {
  atMs: number;
  owner: string | null;
  token: number;
}

export interface FaultSpan {
  name: string;
  fromMs: number;
  /** null: it did not end. */
  toMs: number | null;
  /** Redis forgot: all, or the writes that its replica had not got. */
  loses: boolean;
}

export interface LimiterRecord {
  name: string;
  segments: Segment[];
  leases: LeaseLook[];
  looks: ParamsLook[];
  /** Policies by their Redis key, to decide entries again. */
  policies: Map<string, string>;
  /** Hashes of policies that are whole; others must never be in force. */
  allowedPolicies: Set<string> | null;
  end: { params: Params; effective: Effective } | null;
  lines: ServiceLine[];
  heard: Heard[];
}

export interface RunRecord {
  limiters: LimiterRecord[];
  faults: FaultSpan[];
  /** A service's deadline, and what it does without Redis. */
  deadlineMs: number;
  onRedisError: 'local' | 'closed' | 'open';
  /** Numbers that services pass along for a Redis without params. */
  own: { rate: number; capacity: number };
  /** What was in force after every daemon had been dead for long enough, and what a person could still do. */
  autopilotLost: { effective: Effective; params: Params; undone: string } | null;
}

export interface Watch {
  readonly limiter: LimiterRecord;
  look(): Promise<void>;
}

/** Reads what is new of one limiter at each `look`: entries are kept although Redis may lose them later. */
export function watchLimiter(redis: () => RedisClient, address: LimiterAddress): Watch {
  const keys = limiterKeys(address);
  const limiter: LimiterRecord = {
    name: address.name,
    segments: [],
    leases: [],
    looks: [],
    policies: new Map(),
    allowedPolicies: null,
    end: null,
    lines: [],
    heard: [],
  };
  let newest = '';

  async function entries(from: string) {
    return redis().xrange(keys.audit, from, '+');
  }

  function add(segment: Segment, rows: [string, string[]][]) {
    for (const [id, fields] of rows) {
      const entry = readEntry(id, fields);
      if (isReadable(entry)) segment.entries.push(entry);
      else segment.unreadable.push(`${id}: ${entry.why}`);
      newest = id;
    }
  }

  return {
    limiter,
    async look() {
      const lease = await redis().get(keys.lease);
      const parts = lease?.split(':') ?? [];
      limiter.leases.push({
        atMs: performance.timeOrigin + performance.now(),
        owner: lease === null ? null : parts.slice(0, -1).join(':'),
        token: Number(parts.at(-1) ?? 0),
      });
      const { params, nowUs } = await readParams(redis(), address);
      const last = limiter.segments.at(-1);
      // From the newest known on: if it is not there, or is another one, this server holds another log.
      let rows = newest === '' ? [] : await entries(newest);
      const known = last?.entries.at(-1);
      const goes = known !== undefined && rows[0] !== undefined && sameEntry(known, rows[0]);
      if (goes) rows = rows.slice(1);
      else rows = await entries('-');
      // What was in force before the entries were read: none of them is unseen.
      if (params !== null) {
        const { epoch, revision, changedAt: changedAtUs } = params;
        const { gliding } = effectiveAtUs(params, nowUs);
        limiter.looks.push({ atMs: nowUs / 1000, epoch, revision, changedAtUs, gliding });
      }
      if (rows.length === 0) return;
      if (goes && last) add(last, rows);
      else {
        const segment: Segment = { entries: [], unreadable: [] };
        limiter.segments.push(segment);
        add(segment, rows);
      }
      await keepPolicies(redis(), keys, limiter);
    },
  };
}

function sameEntry(known: StoredEntry, [id, fields]: [string, string[]]): boolean {
  return known.id === id && fields.includes(known.hash);
}

async function keepPolicies(
  redis: RedisClient,
  keys: ReturnType<typeof limiterKeys>,
  { segments, policies }: LimiterRecord,
): Promise<void> {
  for (const { body } of segments.at(-1)?.entries ?? []) {
    const key = keys.policyVersion(body.policyHash);
    if (body.policyHash === '' || policies.has(key)) continue;
    const text = (await redis.mget(key))[0];
    if (text) policies.set(key, text);
  }
}

/** All entries once, in the order in which Redis stored them. */
export function allEntries({ segments }: LimiterRecord): StoredEntry[] {
  const seen = new Map<string, StoredEntry>();
  for (const { entries } of segments) for (const entry of entries) seen.set(entry.hash, entry);
  return [...seen.values()].sort((a, b) => storedMs(a) - storedMs(b));
}
