/** The words for signals from elsewhere than the services: databases, metrics, a function of your own. Stage: policy. */
import { ASK, type CustomContext } from './custom-function.js';
import type { PolicyInput } from './schema.js';
import { type EnvRef, type Quantile, quantile } from './signal-words.js';
import type { DurationText } from './units.js';

type SignalInput = NonNullable<PolicyInput['signals']>[string];
type InputOf<Source extends SignalInput['source']> = Extract<SignalInput, { source: Source }>;

export interface DatabaseOptions {
  /** `env('DATABASE_URL')`, or an address without a password. */
  url: EnvRef | string;
  /** Time the reading may take, within one tick. Default 800 ms. */
  deadlineMs?: number | DurationText;
}

export interface WaitingOptions extends DatabaseOptions {
  /** Only these kinds of wait: `['Lock', 'LWLock']`. Default: all that come of load or of each other. */
  for?: InputOf<'postgres'>['for'];
}

/** What PostgreSQL says of its sessions; the role needs `pg_monitor` to see those of others. */
export const postgres = {
  /** Active sessions that wait, and for what: locks, other sessions, the disk. */
  waiting: (options: WaitingOptions) =>
    ({ source: 'postgres', stat: 'waiting', ...options }) as const,
  /** Connections ÷ `max_connections`. */
  connectionsRatio: (options: DatabaseOptions) =>
    ({ source: 'postgres', stat: 'connectionsRatio', ...options }) as const,
  /** Age of the longest open transaction. */
  longestTransaction: (options: DatabaseOptions) =>
    ({ source: 'postgres', stat: 'longestTransactionMs', ...options }) as const,
  /** How far a replica is behind: asked of the replica its own, of the primary that of its slowest. */
  replicaLag: (options: DatabaseOptions) =>
    ({ source: 'postgres', stat: 'replicaLagMs', ...options }) as const,
};

/** What MySQL or MariaDB says of itself; a user without any privilege is enough, but for `replicaLag`. */
export const mysql = {
  /** Threads that execute a statement now, ours left out. */
  threadsRunning: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'threadsRunning', ...options }) as const,
  /** Transactions that wait for a row lock now. */
  waiting: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'waiting', ...options }) as const,
  /** Waits for a row lock that began, per second. */
  lockWaits: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'lockWaits', ...options }) as const,
  /** Mean time of the waits for a row lock since the last look. */
  lockTime: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'lockTimeMs', ...options }) as const,
  /** Connections ÷ `max_connections`. */
  connectionsRatio: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'connectionsRatio', ...options }) as const,
  /** How far a replica is behind its source; needs `REPLICATION CLIENT` (MariaDB: `REPLICA MONITOR`). */
  replicaLag: (options: DatabaseOptions) =>
    ({ source: 'mysql', stat: 'replicaLagMs', ...options }) as const,
};

type PrometheusOptions = Omit<InputOf<'prometheus'>, 'source' | 'stat' | 'query'>;

/** One number of an instant query in PromQL: `prometheus('sum(queue_depth)', { url: env('PROMETHEUS_URL') })`. */
export function prometheus<const O extends PrometheusOptions>(query: string, options: O) {
  return { source: 'prometheus', stat: 'query', query, ...options } as const;
}

type ScrapeOptions<Stat extends InputOf<'scrape'>['stat']> = Omit<
  Extract<InputOf<'scrape'>, { stat: Stat }>,
  'source' | 'stat' | 'url' | 'metric' | 'of'
>;
type Page = EnvRef | string;

/** Numbers of a `/metrics` page, read by the daemon itself: of one process, for nobody sums pages here. */
export const scrape = {
  /** The value of a gauge. */
  gauge: <const O extends ScrapeOptions<'gauge'>>(url: Page, metric: string, options?: O) =>
    ({ source: 'scrape', stat: 'gauge', url, metric, ...(options as O) }) as const,
  /** What a counter gained a second. */
  rate: (url: Page, metric: string, options?: ScrapeOptions<'rate'>) =>
    ({ source: 'scrape', stat: 'rate', url, metric, ...options }) as const,
  /** Of what counters gained, the part of those with these labels: `{ labels: { code: '500' }, over: {} }`. */
  share: (url: Page, metric: string, options: ScrapeOptions<'share'>) =>
    ({ source: 'scrape', stat: 'share', url, metric, ...options }) as const,
  /** A quantile of a histogram between two scrapes: `scrape.quantile(url, 'wait_seconds', 'p95', { unit: 'seconds' })`. */
  quantile: <const O extends ScrapeOptions<'histogram'>>(
    url: Page,
    metric: string,
    of: Quantile,
    options?: O,
  ) =>
    ({
      source: 'scrape',
      stat: 'histogram',
      url,
      metric,
      of: quantile(of),
      ...(options as O),
    }) as const,
  /** The mean of a histogram or summary between two scrapes. */
  mean: <const O extends ScrapeOptions<'histogram'>>(url: Page, metric: string, options?: O) =>
    ({ source: 'scrape', stat: 'histogram', url, metric, of: 'mean', ...(options as O) }) as const,
};

type CustomOptions = Omit<InputOf<'custom'>, 'source' | 'stat' | 'function' | 'code'>;

/**
 * A function of your own, asked once a tick in a process of its own: `custom(async ({ signal, env }) => depth)`. The
 * daemon needs the policy's file: a function does not travel through Redis.
 */
export function custom<const O extends CustomOptions>(
  ask: (context: CustomContext) => number | Promise<number>,
  options?: O,
) {
  return { source: 'custom', stat: 'function', ...(options as O), [ASK]: ask } as const;
}
