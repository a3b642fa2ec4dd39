/** Asks PostgreSQL who waits and for what, on a connection of its own that can neither hang nor pile up. Stage: sense. */
import CircuitBreaker from 'opossum';
import type { Pool } from 'pg';
import { type Logger, redactUrl } from '../log.js';
import type { Signal } from '../policy/schema.js';
import { DeadlineError, within } from './deadline.js';
import { type PostgresRow, QUERY } from './postgres-query.js';
import type { Missing, Reading } from './readings.js';

export type PostgresStat = Extract<Signal, { source: 'postgres' }>['stat'];

export interface PostgresSource {
  /** All numbers of one query, or why there are none; never rejects. Calls at once share one query. */
  look(): Promise<PostgresRow | Missing>;
  close(): Promise<void>;
}

export interface PostgresSourceOptions {
  /** Resolved address; never logged, never part of a reading. */
  url: string;
  deadlineMs: number;
  log: Logger;
}

export function createPostgresSource(options: PostgresSourceOptions): PostgresSource {
  const { url, deadlineMs, log } = options;
  let pool: Pool | undefined;
  let under: Promise<PostgresRow | Missing> | undefined;
  let lastError = '';

  async function ask(): Promise<PostgresRow> {
    pool ??= await openPool(url, deadlineMs);
    const { rows } = await pool.query<PostgresRow>(QUERY);
    return rows[0]!;
  }

  const breaker = new CircuitBreaker(() => within(deadlineMs, ask()), {
    // The action ends by its own deadline, so a probe always settles and no late success closes the circuit.
    // This one is only the net below it.
    timeout: deadlineMs + 500,
    // The default of 0 opens on the first failure of all.
    volumeThreshold: 3,
    errorThresholdPercentage: 60,
    rollingCountTimeout: 10_000,
    resetTimeout: 5_000,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  });
  breaker.on('open', () => {
    log.warn(
      { event: 'signal_away', source: 'postgres' },
      `PostgreSQL does not answer (${lastError}); it is asked again every 5 s.`,
    );
  });
  breaker.on('close', () => {
    log.info({ event: 'signal_back', source: 'postgres' }, 'PostgreSQL answers again.');
  });

  async function guarded(): Promise<PostgresRow | Missing> {
    try {
      return await breaker.fire();
    } catch (error) {
      if (breaker.opened && (error as { code?: string }).code === 'EOPENBREAKER') {
        return { kind: 'missing', reason: 'breaker_open', detail: `last error: ${lastError}` };
      }
      const missing = missingFor(error);
      lastError = missing.detail ?? missing.reason;
      return missing;
    }
  }

  return {
    look() {
      under ??= guarded().finally(() => {
        under = undefined;
      });
      return under;
    },
    async close() {
      breaker.shutdown();
      // A server that hangs does not hold up the exit: the pool cuts busy connections, idle ones are asked.
      await within(1000, pool?.end() ?? Promise.resolve()).catch(() => {});
    },
  };
}

/** One number of a look as a reading. Sessions that the role may not see are no zero: they are said. */
export function readingOf(look: PostgresRow | Missing, stat: PostgresStat, atMs: number): Reading {
  if ('kind' in look) return look;
  if (stat !== 'connectionsRatio' && look.hidden > look.sessions / 2) {
    return {
      kind: 'missing',
      reason: 'error',
      detail: `${look.hidden} of ${look.sessions} sessions are hidden from this role. Run: GRANT pg_monitor TO <role>`,
    };
  }
  const value = {
    waiting: look.waiting,
    connectionsRatio: look.connections_ratio,
    longestTransactionMs: look.longest_transaction_ms,
  }[stat];
  if (!Number.isFinite(value)) {
    return { kind: 'missing', reason: 'not_finite', detail: `PostgreSQL said ${value}` };
  }
  const detail = stat === 'waiting' && look.waits !== null ? { detail: look.waits } : {};
  return { kind: 'value', value, atMs, count: 1, ...detail };
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

const AWAY = /^(ECONN|ENOTFOUND|EAI_|EHOST|ENET|EPIPE|08|57P0)/;

function missingFor(error: unknown): Missing {
  const { message = '', code = '' } = error as { message?: string; code?: string };
  const detail = redactUrl(message || code || 'unknown error').slice(0, 200);
  const late =
    error instanceof DeadlineError ||
    code === 'ETIMEDOUT' ||
    code === '57014' ||
    /timeout/i.test(message);
  const reason = late
    ? 'timeout'
    : AWAY.test(code) || /terminated|ECONN/.test(message)
      ? 'unreachable'
      : 'error';
  return { kind: 'missing', reason, detail };
}
