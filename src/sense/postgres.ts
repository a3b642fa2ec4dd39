/** Asks PostgreSQL who waits and for what, on a connection of its own that can neither hang nor pile up. Stage: sense. */
import type { Pool } from 'pg';
import type { Signal } from '../policy/schema.js';
import { within } from './deadline.js';
import { guarded, isAway, isLate, textOf } from './guarded.js';
import { type PostgresRow, QUERY } from './postgres-query.js';
import type { Missing } from './readings.js';
import {
  keyOf,
  lookOf,
  missing,
  resolved,
  type Seen,
  type Source,
  type SourceDeps,
  unaskable,
} from './source.js';

type PostgresSignal = Extract<Signal, { source: 'postgres' }>;

/** All signals of one address share one query a tick. */
export function postgresKey(signal: PostgresSignal, env: NodeJS.ProcessEnv): string {
  return keyOf('postgres', resolved(signal.url, env), signal.deadlineMs);
}

export function createPostgresSource(signal: PostgresSignal, deps: SourceDeps): Source {
  const { env, log, clock } = deps;
  const { deadlineMs } = signal;
  const url = resolved(signal.url, env);
  if (typeof url !== 'string') return unaskable(url);
  let pool: Pool | undefined;

  const guard = guarded<PostgresRow & { monotonicMs: number }>({
    name: 'PostgreSQL',
    source: 'postgres',
    deadlineMs,
    log,
    secrets: [passwordOf(url)],
    async ask() {
      const monotonicMs = clock.monotonicMs();
      pool ??= await openPool(url, deadlineMs);
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

/** One number of a row. Sessions that the role may not see are no zero: they are said. */
function seenOf(row: PostgresRow & { monotonicMs: number }, signal: PostgresSignal): Seen | Missing {
  const { stat } = signal;
  if (stat !== 'connectionsRatio' && row.hidden > row.sessions / 2) {
    return missing(
      'error',
      `${row.hidden} of ${row.sessions} sessions are hidden from this role. Run: GRANT pg_monitor TO <role>`,
    );
  }
  const value = {
    waiting: row.waiting,
    connectionsRatio: row.connections_ratio,
    longestTransactionMs: row.longest_transaction_ms,
  }[stat];
  if (!Number.isFinite(value)) return missing('not_finite', `PostgreSQL said ${value}`);
  const detail = stat === 'waiting' && row.waits !== null ? { detail: row.waits } : {};
  return { kind: 'value', value, monotonicMs: row.monotonicMs, count: 1, ...detail };
}

async function openPool(url: string, deadlineMs: number): Promise<Pool> {
  const { default: pg } = await import('pg').catch((error: { code?: string }) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error("the npm package 'pg' is not installed. Run: npm install pg");
  });
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
  // 57014: cancelled by statement_timeout. Class 08 and 57P0x: the connection broke, the server is not up.
  const late = isLate(error) || code === '57014';
  const away = isAway(error) || /^(08|57P0)/.test(code);
  return missing(late ? 'timeout' : away ? 'unreachable' : 'error', textOf(error));
}

function passwordOf(url: string): string {
  try {
    return decodeURIComponent(new URL(url).password);
  } catch {
    return '';
  }
}
