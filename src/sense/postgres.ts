/** Asks PostgreSQL who waits and for what, on a connection of its own that can neither hang nor pile up. Stage: sense. */
import type { Pool } from 'pg';
import { optionalPackage } from '../optional-package.js';
import type { Signal } from '../policy/schema.js';
import { within } from './deadline.js';
import { guarded, isAway, isLate, textOf } from './guarded.js';
import { type PostgresRow, QUERY } from './postgres-query.js';
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

type PostgresSignal = Extract<Signal, { source: 'postgres' }>;
type Asked = PostgresRow & { monotonicMs: number };

/** A socket is named by its path. */
const ADDRESS = /^(postgres(ql)?:\/\/|socket:|\/)/i;

/** All signals of one address share one query a tick. */
export function postgresKey(signal: PostgresSignal, env: NodeJS.ProcessEnv): string {
  return keyOf('postgres', resolved(signal.url, env), signal.deadlineMs);
}

export function createPostgresSource(signal: PostgresSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { deadlineMs } = signal;
  const url = addressOf(signal.url, env, ADDRESS, 'postgres://');
  if (typeof url !== 'string') return unaskable(url);
  let pool: Pool | undefined;

  const guard = guarded<Asked>({
    name: 'PostgreSQL',
    source: 'postgres',
    deadlineMs,
    log,
    secrets: [passwordOf(url)],
    load: driver,
    async ask(over) {
      const monotonicMs = clock.monotonicMs();
      const { default: pg } = await driver();
      over.throwIfAborted();
      pool ??= openPool(pg, url, deadlineMs);
      const { rows } = await pool.query<PostgresRow>(QUERY);
      return { ...rows[0]!, monotonicMs };
    },
    missingFor,
  });

  return {
    async look(wanted) {
      const row = await guard.ask();
      return lookOf(wanted, (each) => ('kind' in row ? row : seenOf(row, each as PostgresSignal)));
    },
    async close() {
      guard.close();
      // A server that hangs does not hold up the exit: the pool cuts busy connections, idle ones are asked.
      await within(1000, pool?.end() ?? Promise.resolve()).catch(() => {});
    },
  };
}

/** One number of a row. What the role may not see is no zero: it is said. */
function seenOf(row: Asked, signal: PostgresSignal): Seen | Missing {
  const { monotonicMs } = row;
  const { hidden, sessions, role } = row;
  switch (signal.stat) {
    case 'connectionsRatio': {
      const detail = `${row.connections} of ${row.most_connections}`;
      const share = row.connections / row.most_connections;
      return seenNumber(share, 'ratio', monotonicMs, { detail });
    }
    case 'waiting': {
      if (isBlind(row)) return blind(hidden, sessions, 'sessions', role);
      const waits = Object.entries(row.waits ?? {}).filter(
        ([what]) => signal.for?.some((type) => what.startsWith(`${type}:`)) ?? true,
      );
      const waiting = waits.reduce((sum, [, n]) => sum + n, 0);
      const most = waits.slice(0, 3).map(([what, n]) => `${what} ${n}`);
      const told = most.length > 0 ? most.join(', ') : unproven(row);
      const detail = told === '' ? {} : { detail: told };
      return seenNumber(waiting, 'count', monotonicMs, detail);
    }
    case 'longestTransactionMs':
      if (isBlind(row)) return blind(hidden, sessions, 'sessions', role);
      return seenNumber(row.longest_transaction_ms, 'milliseconds', monotonicMs, {
        ...(unproven(row) === '' ? {} : { detail: unproven(row) }),
      });
    case 'replicaLagMs':
      if (row.replicas_hidden > 0)
        return blind(row.replicas_hidden, Math.max(1, row.replicas), 'replications', role);
      if (row.replica_lag_ms === null) {
        const why = row.in_recovery
          ? 'the replica has replayed nothing since it started'
          : 'no replica follows this server';
        return missing('no_data', why);
      }
      // The clocks of a replica and its primary may differ by a little.
      return seenNumber(Math.max(0, row.replica_lag_ms), 'milliseconds', monotonicMs);
  }
}

/** A role sees its own sessions always: some hidden ones of others are not yet blindness. */
function isBlind({ hidden, sessions }: Asked): boolean {
  return hidden > sessions / 2;
}

/** Nobody else is connected yet: what is 0 now will be hidden once somebody is. */
function unproven({ sessions, sees_all, role }: Asked): string {
  if (sessions > 0 || sees_all) return '';
  return `no session to see; those of other roles will be hidden from this role. Run: GRANT pg_monitor TO ${role}`;
}

function blind(some: number, all: number, what: string, role: string): Missing {
  return missing(
    'error',
    `${some} of ${all} ${what} are hidden from this role. Run: GRANT pg_monitor TO ${role}`,
  );
}

type Driver = Awaited<ReturnType<typeof driver>>['default'];

const driver = () => optionalPackage('pg', () => import('pg'));

function openPool(pg: Driver, url: string, deadlineMs: number): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    connectionTimeoutMillis: deadlineMs,
    // On the server and here: a server that hangs cannot keep the first promise.
    statement_timeout: deadlineMs,
    query_timeout: deadlineMs,
    idleTimeoutMillis: 30_000,
    application_name: 'flyball-daemon',
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // An idle connection that breaks is replaced at the next look; without a listener it would end the daemon.
  pool.on('error', () => {});
  return pool;
}

function missingFor(error: unknown): Missing {
  const code = String((error as { code?: unknown }).code ?? '');
  const text = textOf(error);
  if (/unsupported startup parameter/.test(text)) {
    // PgBouncer. Behind one not even a deadline on the server could be relied on.
    return missing('error', `${text}. Give the address of PostgreSQL itself, not of a pooler.`);
  }
  // 57014: cancelled by statement_timeout. Class 08 and 57P0x: the connection broke, the server is not up.
  const late = isLate(error) || code === '57014';
  const away = isAway(error) || /^(08|57P0)/.test(code);
  return missing(late ? 'timeout' : away ? 'unreachable' : 'error', text);
}
