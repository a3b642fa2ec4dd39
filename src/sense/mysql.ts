/** Asks MySQL or MariaDB how busy it is and who waits for locks, on one connection that can neither hang nor pile up. Stage: sense. */
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { optionalPackage } from '../optional-package.js';
import type { Signal } from '../policy/schema.js';
import { within } from './deadline.js';
import { guarded, isAway, isLate, textOf } from './guarded.js';
import {
  LIMIT_QUERY,
  lagOf,
  type MysqlStatus,
  REPLICA_QUERIES,
  STATUS_QUERY,
  statusOf,
} from './mysql-query.js';
import type { Missing } from './readings.js';
import { seenNumber } from './seen.js';
import {
  addressOf,
  keyOf,
  lookOf,
  missing,
  passwordOf,
  resolved,
  type Seen,
  type Source,
  type SourceDeps,
  unaskable,
} from './source.js';

type MysqlSignal = Extract<Signal, { source: 'mysql' }>;

interface Asked extends MysqlStatus {
  monotonicMs: number;
  /** Null: nobody wants it. */
  replica: { lagMs: number } | Missing | null;
}

const DEADLINE_MS = 800;

const ADDRESS = /^(mysql2?|mariadb):\/\//i;

/** All signals of one address share one look a tick. */
export function mysqlKey(signal: MysqlSignal, env: NodeJS.ProcessEnv): string {
  return keyOf('mysql', resolved(signal.url, env), signal.deadlineMs);
}

export function createMysqlSource(signal: MysqlSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { deadlineMs = DEADLINE_MS } = signal;
  const url = addressOf(signal.url, env, ADDRESS, 'mysql://');
  if (typeof url !== 'string') return unaskable(url);
  let connection: Connection | undefined;
  let wantsLag = false;
  let last: Asked | null = null;

  async function openWithin(over: AbortSignal): Promise<Connection> {
    let opened: Connection | undefined;
    opened = await open(url as string, deadlineMs, () => {
      if (connection === opened) connection = undefined;
    });
    // Nobody waits for it any more: the next look opens its own.
    if (over.aborted) opened.destroy();
    over.throwIfAborted();
    return opened;
  }

  const guard = guarded<Asked>({
    name: 'MySQL',
    source: 'mysql',
    deadlineMs,
    log,
    secrets: [passwordOf(url)],
    load: driver,
    async ask(over) {
      const monotonicMs = clock.monotonicMs();
      const cut = () => {
        connection?.destroy();
        connection = undefined;
      };
      over.addEventListener('abort', cut);
      try {
        connection ??= await openWithin(over);
        const [rows] = await connection.query<RowDataPacket[]>(STATUS_QUERY);
        const [limit] = await connection.query<RowDataPacket[]>(LIMIT_QUERY);
        const replica = wantsLag ? await replicaOf(connection) : null;
        const status = statusOf(rows as { Variable_name: string; Value: string }[], limit[0]?.most);
        return { ...status, replica, monotonicMs };
      } catch (error) {
        cut();
        throw error;
      } finally {
        over.removeEventListener('abort', cut);
      }
    },
    missingFor,
  });

  return {
    async look(wanted) {
      wantsLag = wanted.some(({ stat }) => stat === 'replicaLagMs');
      const asked = await guard.ask();
      if ('kind' in asked) return lookOf(wanted, () => asked);
      const before = last;
      last = asked;
      return lookOf(wanted, (each) => seenOf((each as MysqlSignal).stat, before, asked));
    },
    async close() {
      guard.close();
      // A server that hangs does not hold up the exit.
      const open = connection;
      connection = undefined;
      await within(500, open?.end() ?? Promise.resolve()).catch(() => open?.destroy());
    },
  };
}

function seenOf(stat: MysqlSignal['stat'], before: Asked | null, now: Asked): Seen | Missing {
  const { monotonicMs } = now;
  switch (stat) {
    case 'threadsRunning':
      return seenNumber(now.threadsRunning, 'count', monotonicMs);
    case 'waiting':
      return seenNumber(now.lockWaiting, 'count', monotonicMs);
    case 'connectionsRatio': {
      const detail = `${now.connected} of ${now.mostConnections}`;
      return seenNumber(now.connected / now.mostConnections, 'ratio', monotonicMs, { detail });
    }
    case 'replicaLagMs':
      if (now.replica === null) return missing('not_started', 'it was not asked for');
      if ('kind' in now.replica) return now.replica;
      return seenNumber(now.replica.lagMs, 'milliseconds', monotonicMs);
    case 'lockWaits':
    case 'lockTimeMs':
      return sinceLast(stat, before, now);
  }
}

/** Waits that began, and the mean time of those that ended, since the last look. */
function sinceLast(
  stat: 'lockWaits' | 'lockTimeMs',
  before: Asked | null,
  now: Asked,
): Seen | Missing {
  if (before === null) return missing('not_started', 'a rate needs two looks; this is the first');
  const waits = now.lockWaits - before.lockWaits;
  const timeMs = now.lockTimeMs - before.lockTimeMs;
  if (now.uptimeS < before.uptimeS || waits < 0 || timeMs < 0) {
    return missing('reset', 'the server restarted since the last look');
  }
  const { monotonicMs } = now;
  if (stat === 'lockTimeMs') {
    // The time comes when a wait ends, the count when it begins: one may end in which none began.
    return seenNumber(timeMs / Math.max(1, waits), 'milliseconds', monotonicMs, {
      count: Math.max(1, waits),
    });
  }
  const seconds = (monotonicMs - before.monotonicMs) / 1000;
  if (!(seconds > 0)) return missing('not_started', 'no time has passed since the last look');
  return seenNumber(waits / seconds, 'perSecond', monotonicMs);
}

async function replicaOf(connection: Connection): Promise<{ lagMs: number } | Missing> {
  for (const query of REPLICA_QUERIES) {
    try {
      const [rows] = await connection.query<RowDataPacket[]>(query);
      return lagOf(rows);
    } catch (error) {
      const { errno } = error as { errno?: number };
      // 1227: a right is missing. 1064: words this server does not know.
      if (errno === 1227 || errno === 1142) {
        return missing(
          'error',
          'this user may not see the state of replication. Run: GRANT REPLICATION CLIENT ON *.* TO <user> (MariaDB: GRANT REPLICA MONITOR ON *.* TO <user>)',
        );
      }
      if (errno !== 1064) throw error;
    }
  }
  return missing('error', 'this server knows no SHOW REPLICA STATUS');
}

const driver = () => optionalPackage('mysql2', () => import('mysql2/promise'));

async function open(url: string, deadlineMs: number, onEnd: () => void): Promise<Connection> {
  const mysql = await driver();
  const connection = await mysql.createConnection({
    uri: url,
    connectTimeout: deadlineMs,
    connectAttributes: { program_name: 'flyball-daemon' },
  });
  // A connection that breaks is replaced at the next look; without a listener it would end the daemon.
  connection.on('error', onEnd);
  connection.on('end', onEnd);
  return connection;
}

function missingFor(error: unknown): Missing {
  const { errno = 0 } = error as { errno?: number };
  if (isLate(error)) return missing('timeout', textOf(error));
  // 1040: too many connections; 1053: it is shutting down; 2006, 2013: it went away.
  const away = isAway(error) || [1053, 2006, 2013].includes(errno);
  const hint =
    errno === 1040 ? ' Leave one free: raise max_connections, or lower the pools of services.' : '';
  return missing(away ? 'unreachable' : 'error', textOf(error) + hint);
}
