/** The words a policy file is written in: signals, control laws, references to the environment. Stage: policy. */
import type { PolicyInput } from './schema.js';
import type { DurationText } from './units.js';

export interface EnvRef {
  env: string;
}

/** A value that only the reading daemon takes from its environment: `env('DATABASE_URL')`. */
export function env(name: string): EnvRef {
  return { env: name };
}

/** `'p95'`, `'p99.9'`, or a quantile between 0 and 1. */
export type Quantile = `p${number}` | number;

function quantile(of: Quantile | 'mean'): 'mean' | number {
  if (of === 'mean' || typeof of === 'number') return of;
  // Through decimals, so that p99.9 is 0.999 and not 0.9990000000000001. A bad one ('px') is left for the
  // check to name, as NaN would lose what was written.
  const share = Number((Number(of.slice(1)) / 100).toFixed(8));
  return Number.isFinite(share) ? share : (of as never);
}

/** What the services themselves report, through the SDK and Redis. */
export const telemetry = {
  /** Time from admission to completion of admitted requests. */
  latency: (of: Quantile | 'mean') =>
    ({ source: 'telemetry', stat: 'latency', of: quantile(of) }) as const,
  /** Mean of the same. */
  mean: () => ({ source: 'telemetry', stat: 'latency', of: 'mean' }) as const,
  /** Failed ÷ answered; cancelled calls and denials count in neither. */
  errorRatio: () => ({ source: 'telemetry', stat: 'errorRatio' }) as const,
  /** Time requests waited for a database connection. */
  dbWait: (of: Quantile | 'mean') =>
    ({ source: 'telemetry', stat: 'dbWait', of: quantile(of) }) as const,
  /** Requests waiting for a pool connection, fleet total. */
  poolWaiting: () => ({ source: 'telemetry', stat: 'poolWaiting' }) as const,
  /** Admitted requests under way, fleet total. */
  inFlight: () => ({ source: 'telemetry', stat: 'inFlight' }) as const,
  /** Good answers per second; with `within` only those that came in that time: `goodput({ within: '250ms' })`. */
  goodput: (options: { within?: number | DurationText } = {}) =>
    ({ source: 'telemetry', stat: 'goodput', ...options }) as const,
};

export interface PostgresOptions {
  /** `env('DATABASE_URL')`, or an address without a password. */
  url: EnvRef | string;
  /** Time the reading may take, within one tick. Default 800 ms. */
  deadlineMs?: number | DurationText;
}

/** What PostgreSQL says of its sessions; the role needs `pg_monitor` to see those of others. */
export const postgres = {
  /** Active sessions that wait, and for what: locks, other sessions, the disk. */
  waiting: (options: PostgresOptions) =>
    ({ source: 'postgres', stat: 'waiting', ...options }) as const,
  /** Connections ÷ `max_connections`. */
  connectionsRatio: (options: PostgresOptions) =>
    ({ source: 'postgres', stat: 'connectionsRatio', ...options }) as const,
  /** Age of the longest open transaction. */
  longestTransaction: (options: PostgresOptions) =>
    ({ source: 'postgres', stat: 'longestTransactionMs', ...options }) as const,
};

/** Failures with this code, of one upstream or of all: what a breaker counts. */
export function upstreamErrors(code: string, options: { upstream?: string } = {}) {
  return { source: 'telemetry', stat: 'errors', code, ...options } as const;
}

type LawOptions<Law extends string> = Omit<
  Extract<NonNullable<PolicyInput['control']>, { law: Law }>,
  'law'
>;

/** Moves rate and in-flight cap by what is measured. The default choice. */
export function adaptive(options: LawOptions<'adaptive'> = {}) {
  return { law: 'adaptive', ...options } as const;
}

/** The rule of thumb: slow for 30 s → × 0.8; hardly an error for 5 min → × 1.1. */
export function step(options: LawOptions<'step'> = {}) {
  return { law: 'step', ...options } as const;
}

/** Adds a little while a limit binds, cuts to a share on overload. Simple, and known to all; it saws. */
export function aimd(options: LawOptions<'aimd'> = {}) {
  return { law: 'aimd', ...options } as const;
}

/** Proportional–integral control of the logarithm of the limits, by gains of your own. */
export function pi(options: LawOptions<'pi'> = {}) {
  return { law: 'pi', ...options } as const;
}

/** Moves nothing: the policy's numbers, and the breaker. */
export function fixed() {
  return { law: 'fixed' } as const;
}
