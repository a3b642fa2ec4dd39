/** What MySQL and MariaDB are asked each tick, and what their answers mean. Stage: sense. */
import type { Missing } from './readings.js';
import { missing } from './source.js';

/** Any user may ask for it; none of these tells of another's data. */
export const STATUS_QUERY = `SHOW GLOBAL STATUS WHERE Variable_name IN (
  'Threads_running', 'Threads_connected', 'Uptime',
  'Innodb_row_lock_current_waits', 'Innodb_row_lock_waits', 'Innodb_row_lock_time')`;
export const LIMIT_QUERY = 'SELECT @@GLOBAL.max_connections AS most';
/** The new words, and for servers before MySQL 8.0.22 and MariaDB 10.5 the old ones. */
export const REPLICA_QUERIES = ['SHOW REPLICA STATUS', 'SHOW SLAVE STATUS'];

export interface MysqlStatus {
  threadsRunning: number;
  connected: number;
  mostConnections: number;
  uptimeS: number;
  lockWaiting: number;
  /** Since the server started. */
  lockWaits: number;
  lockTimeMs: number;
}

export function statusOf(
  rows: readonly { Variable_name: string; Value: string }[],
  most: unknown,
): MysqlStatus {
  const found = new Map(rows.map((row) => [row.Variable_name.toLowerCase(), Number(row.Value)]));
  const of = (name: string) => found.get(name) ?? Number.NaN;
  return {
    // Ours is one of them while it asks.
    threadsRunning: Math.max(0, of('threads_running') - 1),
    connected: of('threads_connected'),
    mostConnections: Number(most),
    uptimeS: of('uptime'),
    lockWaiting: of('innodb_row_lock_current_waits'),
    lockWaits: of('innodb_row_lock_waits'),
    lockTimeMs: of('innodb_row_lock_time'),
  };
}

/** Lag of the replica that is furthest behind its source, of all its channels; or why it is not known. */
export function lagOf(rows: readonly Record<string, unknown>[]): { lagMs: number } | Missing {
  if (rows.length === 0) return missing('no_data', 'this server is no replica');
  const lags = rows.map((row) => row.Seconds_Behind_Source ?? row.Seconds_Behind_Master ?? null);
  const stopped = rows[lags.indexOf(null)];
  if (stopped !== undefined) {
    const said = stopped.Last_IO_Error || stopped.Last_SQL_Error || 'no error is told';
    return missing('no_data', `replication does not run (${said})`);
  }
  return { lagMs: Math.max(...lags.map(Number)) * 1000 };
}
