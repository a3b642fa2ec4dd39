/** The one query that PostgreSQL is asked each tick, and the row it answers with. Stage: sense. */

export interface PostgresRow {
  /** Client sessions of this database, our own left out; those that the role may not see are among them. */
  sessions: number;
  hidden: number;
  /** Active and held up. */
  waiting: number;
  /** What for, most first: `Lock:transactionid 6, IO:DataFileRead 1`. */
  waits: string | null;
  longest_transaction_ms: number;
  connections_ratio: number;
}

/**
 * Waits that come of load or of each other: locks, lightweight locks, pins and buffers, the disk, other
 * processes. Not those of sessions with nothing to do (Activity, Client) nor those asked for (Timeout: pg_sleep).
 */
const WAITS = `('Lock', 'LWLock', 'BufferPin', 'Buffer', 'IO', 'IPC')`;

/** Connections count over the whole server, against what services can use of `max_connections`. */
export const QUERY = `
WITH all_sessions AS MATERIALIZED (
  SELECT pid, datname, state, query, wait_event_type, wait_event, xact_start
  FROM pg_stat_activity
  -- Of a session that is hidden from the role little more than its database is known.
  WHERE backend_type = 'client backend' OR (backend_type IS NULL AND datname IS NOT NULL)
), sessions AS (
  SELECT *, (state = 'active' AND wait_event_type IN ${WAITS}) IS TRUE AS waits
  FROM all_sessions WHERE datname = current_database() AND pid <> pg_backend_pid()
)
SELECT
  count(*)::int AS sessions,
  count(*) FILTER (WHERE query = '<insufficient privilege>' OR state = 'disabled')::int AS hidden,
  count(*) FILTER (WHERE waits)::int AS waiting,
  (SELECT string_agg(what, ', ' ORDER BY n DESC, what) FROM (
    SELECT format('%s:%s %s', wait_event_type, wait_event, count(*)) AS what, count(*) AS n
    FROM sessions WHERE waits GROUP BY wait_event_type, wait_event
    ORDER BY count(*) DESC LIMIT 3) AS most) AS waits,
  greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) * 1000)::float8
    AS longest_transaction_ms,
  (SELECT count(*) FROM all_sessions)::float8 / greatest(1, current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int) AS connections_ratio
FROM sessions`;
