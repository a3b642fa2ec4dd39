/** The one query that PostgreSQL is asked each tick, and the row it answers with. Stage: sense. */

export interface PostgresRow {
  /** Who asks, quoted for SQL, and whether it may see the sessions of other roles. */
  role: string;
  sees_all: boolean;
  /** Client sessions of this database, our own left out; those that the role may not see are among them. */
  sessions: number;
  hidden: number;
  /** Active and held up, by what for, most first: `{ "Lock:transactionid": 6, "IO:DataFileRead": 1 }`. */
  waits: Record<string, number> | null;
  longest_transaction_ms: number;
  connections: number;
  most_connections: number;
  /** A replica itself; else replicas are what follow this server. */
  in_recovery: boolean;
  /** Null: no replica follows, or the replica has replayed nothing yet. */
  replica_lag_ms: number | null;
  /** That follow this server; and of those, or of what this one follows, the ones that the role may not see. */
  replicas: number;
  replicas_hidden: number;
}

/** Waits that come of load or of each other. Not Activity and Client (nothing to do) nor Timeout (pg_sleep). */
const WAITS = `('Lock', 'LWLock', 'BufferPin', 'Buffer', 'IO', 'IPC')`;

/**
 * Connections count over the whole server, against what services can use of `max_connections`. A replica that has
 * replayed all that it received, and still receives, is not behind, however long nothing was written; one that
 * receives nothing falls behind by the clock.
 */
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
  quote_ident(current_user) AS role,
  pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
  count(*)::int AS sessions,
  count(*) FILTER (WHERE query = '<insufficient privilege>' OR state = 'disabled')::int AS hidden,
  (SELECT json_object_agg(what, n ORDER BY n DESC, what) FROM (
    SELECT format('%s:%s', wait_event_type, wait_event) AS what, count(*) AS n
    FROM sessions WHERE waits GROUP BY wait_event_type, wait_event) AS each) AS waits,
  greatest(0, coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) * 1000)::float8
    AS longest_transaction_ms,
  (SELECT count(*) FROM all_sessions)::int AS connections,
  greatest(1, current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int) AS most_connections,
  pg_is_in_recovery() AS in_recovery,
  CASE WHEN NOT pg_is_in_recovery()
    THEN (SELECT max(extract(epoch FROM coalesce(replay_lag, '0'))) FROM pg_stat_replication)
    WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
      AND EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming') THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
  END::float8 * 1000 AS replica_lag_ms,
  (SELECT count(*) FROM pg_stat_replication)::int AS replicas,
  ((SELECT count(*) FROM pg_stat_replication WHERE state IS NULL)
    + (SELECT count(*) FROM pg_stat_wal_receiver WHERE status IS NULL))::int AS replicas_hidden
FROM sessions`;
