/** The words a policy file is written in: signals, control laws, references to the environment. Stage: policy. */
import type { PolicyInput } from './schema.js';
import { type EnvRef, type Quantile, quantile } from './signal-words.js';
import type { DurationText } from './units.js';

/** A value that only the reading daemon takes from its environment: `env('DATABASE_URL')`. */
export function env(name: string): EnvRef {
  return { env: name };
}

/** What the services themselves report, through the SDK and Redis. */
export const telemetry = {
  /** Time from admission to completion of admitted requests. */
  latency: (of: Quantile | 'mean') =>
    ({ source: 'telemetry', stat: 'latency', of: quantile(of) }) as const,
  /** Mean of the same. */
  mean: () => ({ source: 'telemetry', stat: 'latency', of: 'mean' }) as const,
  /** Failed ÷ answered, with one code or any, of one upstream or of all; cancelled calls and denials count in neither. */
  errorRatio: (options: { code?: string; upstream?: string } = {}) =>
    ({ source: 'telemetry', stat: 'errorRatio', ...options }) as const,
  /** Timed out ÷ answered. */
  timeoutRatio: () => ({ source: 'telemetry', stat: 'timeoutRatio' }) as const,
  /** Answers, good or bad, that took longer than `over` ÷ answered: `slowRatio({ over: '2s' })`. */
  slowRatio: (options: { over: number | DurationText }) =>
    ({ source: 'telemetry', stat: 'slowRatio', ...options }) as const,
  /** Failures since the last good answer of the whole fleet. */
  failuresInARow: () => ({ source: 'telemetry', stat: 'failuresInARow' }) as const,
  /** Time requests waited for a database connection. */
  dbWait: (of: Quantile | 'mean') =>
    ({ source: 'telemetry', stat: 'dbWait', of: quantile(of) }) as const,
  /** Requests waiting for a pool connection, fleet total. */
  poolWaiting: () => ({ source: 'telemetry', stat: 'poolWaiting' }) as const,
  /** Admitted requests under way, fleet total. */
  inFlight: () => ({ source: 'telemetry', stat: 'inFlight' }) as const,
  /** Age of the oldest admitted request that is still under way. */
  oldest: () => ({ source: 'telemetry', stat: 'oldest' }) as const,
  /** Requests per second that asked, and those that were let in. */
  offered: () => ({ source: 'telemetry', stat: 'offered' }) as const,
  admitted: () => ({ source: 'telemetry', stat: 'admitted' }) as const,
  /** Denied ÷ offered. */
  deniedRatio: () => ({ source: 'telemetry', stat: 'deniedRatio' }) as const,
  /** Delay of the services' event loops: a quantile or the mean over processes of their worst of a second (p99). */
  eventLoopDelay: (of: Quantile | 'mean' = 'mean') =>
    ({ source: 'telemetry', stat: 'eventLoopDelay', of: quantile(of) }) as const,
  /** Share of the CPU that the services may use (their container's limit, else the machine's cores), mean of processes. */
  cpu: () => ({ source: 'telemetry', stat: 'cpu' }) as const,
  /** The same of memory. */
  memory: () => ({ source: 'telemetry', stat: 'memory' }) as const,
  /** Good answers per second; with `within` only those that came in that time: `goodput({ within: '250ms' })`. */
  goodput: (options: { within?: number | DurationText } = {}) =>
    ({ source: 'telemetry', stat: 'goodput', ...options }) as const,
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
