/** The daemons that live, who leads what, and how the Redis of all of them fares. Stage: cli, api. */
import { type ExportState, readExportStates } from '../audit/export-state.js';
import { fleetKeys, limiterKeys } from '../redis/keys.js';
import { masters } from '../redis/read-hashes.js';
import { redisNowMs } from '../redis/redis-time.js';
import { listLimiters, type Session } from './limiters.js';
import { leaseOwner, parseStatus } from './status-facts.js';

export interface FleetView {
  /** Redis ms. */
  atMs: number;
  daemons: FleetDaemon[];
  redis: FleetRedis;
  /** Who leads which limiter: the lease in Redis. */
  leases: { limiter: string; owner: string | null; lastTickAgeMs: number | null }[];
}

export interface FleetDaemon {
  owner: string;
  name: string;
  host: string;
  pid: number | null;
  /** Empty: it listens nowhere. */
  http: string;
  version: string | null;
  /** Limiters that it leads. */
  leads: number;
  policyFaults: number;
  /** Places that it exports audit logs to; null: its version does not say. */
  exports: ExportState[] | null;
  /** Since it last spoke; more than a lease: it is gone or cut off. */
  silentMs: number;
}

export interface FleetRedis {
  url: string;
  /** Round trip of this answer's question, ms. */
  roundTripMs: number;
  /** How far Redis's clock is ahead of this process's, ms, within half a round trip. */
  aheadMs: number;
  version: string | null;
  role: string | null;
  replicas: number | null;
  usedBytes: number | null;
  /** 0: no limit. */
  maxBytes: number | null;
  evictionPolicy: string | null;
  evictedKeys: number | null;
  appendOnly: boolean | null;
  uptimeS: number | null;
  /** Why the above is not known, where it is not; null: all is. */
  unknown: string | null;
}

export async function readFleet(session: Session, nowMs: () => number): Promise<FleetView> {
  const { redis } = session;
  const begun = nowMs();
  const atMs = await redisNowMs(redis);
  const roundTripMs = Math.max(0, nowMs() - begun);
  const aheadMs = Math.round(atMs - (begun + roundTripMs / 2));
  const [registry, about, limiters] = await Promise.all([
    redis.hgetall(fleetKeys(session.prefix).daemons),
    aboutRedis(session),
    listLimiters(session),
  ]);
  return {
    atMs,
    daemons: Object.entries(registry)
      .flatMap(([owner, text]) => daemonOf(owner, text, atMs))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    redis: { url: session.url, roundTripMs, aheadMs, ...about },
    leases: await Promise.all(
      limiters.map(async (address) => {
        const keys = limiterKeys(address);
        const [lease = null, text = null] = await redis.mget(keys.lease, keys.status);
        const tickMs = parseStatus(text)?.atMs;
        return {
          limiter: address.name,
          owner: leaseOwner(lease),
          lastTickAgeMs: typeof tickMs === 'number' ? Math.max(0, Math.round(atMs - tickMs)) : null,
        };
      }),
    ),
  };
}

/** `<when it last spoke> <JSON>`; what cannot be read is no daemon. */
export function daemonOf(owner: string, text: string, nowMs: number): FleetDaemon[] {
  const [, at, json] = /^(\d+) (\{.*\})$/s.exec(text) ?? [];
  if (at === undefined || json === undefined) return [];
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(json) as Record<string, unknown>;
  } catch {
    return [];
  }
  const word = (value: unknown) => (typeof value === 'string' ? value : '');
  const count = (value: unknown) => (typeof value === 'number' ? value : 0);
  return [
    {
      owner,
      ...{ name: word(said.name), host: word(said.host), http: word(said.http) },
      pid: typeof said.pid === 'number' ? said.pid : null,
      version: word(said.version) || null,
      ...{ leads: count(said.leads), policyFaults: count(said.policyFaults) },
      exports: readExportStates(said.exports),
      silentMs: Math.max(0, nowMs - Number(at)),
    },
  ];
}

type About = Omit<FleetRedis, 'url' | 'roundTripMs' | 'aheadMs'>;

/** Of a cluster: its first master. A user without the right to INFO leaves all of it unknown. */
async function aboutRedis({ redis }: Session): Promise<About> {
  const server = masters(redis)[0];
  try {
    if (server === undefined) throw new Error('no master is known');
    const info = await server.info();
    const text = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
    const number = (name: string) => {
      const value = Number(text(name) ?? Number.NaN);
      return Number.isFinite(value) ? value : null;
    };
    return {
      ...{ version: text('redis_version'), role: text('role') },
      ...{ replicas: number('connected_slaves'), usedBytes: number('used_memory') },
      ...{ maxBytes: number('maxmemory'), evictionPolicy: text('maxmemory_policy') },
      evictedKeys: number('evicted_keys'),
      appendOnly: text('aof_enabled') === null ? null : text('aof_enabled') === '1',
      ...{ uptimeS: number('uptime_in_seconds'), unknown: null },
    };
  } catch (error) {
    return {
      ...{ version: null, role: null, replicas: null, usedBytes: null, maxBytes: null },
      ...{ evictionPolicy: null, evictedKeys: null, appendOnly: null, uptimeS: null },
      unknown: (error as Error).message,
    };
  }
}
