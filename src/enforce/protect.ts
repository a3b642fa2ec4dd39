/** A call to an upstream behind a limiter and a local breaker, with a time limit; how it ended is reported. Stage: enforce. */
import { FlyballError, FlyballTypeError } from '../errors.js';
import type { Priority } from '../redis/calls.js';
import { onAbort } from './abort.js';
import { checkDuration, checkFunction } from './arguments.js';
import { Decision, FlyballDeniedError, type TakeDecision } from './decision.js';
import { checkKnown } from './known-options.js';
import { createLimiter, type Limiter } from './limiter.js';
import { partsOf } from './limiter-parts.js';
import type { LimiterOptions } from './options.js';
import { after, pause } from './pacing.js';
import { type CircuitState, createCircuit } from './protect-circuit.js';
import { type BreakerOptions, OF_PROTECT, resolveBreaker } from './protect-options.js';
import { codeOf, type Outcome, outcomeOf } from './recorder.js';

export type { BreakerOptions, CircuitState };

/** What a protected function is handed before its own arguments. */
export interface ProtectedCall {
  /** Aborted when the time is over or the caller has gone: pass it on, to `fetch`, to a query. */
  signal: AbortSignal;
  decision: TakeDecision;
}

/** For one call, derived from its arguments. */
export interface ProtectTake {
  subject?: string | null;
  cost?: number;
  priority?: Priority;
  /** Of the caller: its end cancels the call. */
  signal?: AbortSignal;
}

export interface ProtectOptions<Args extends unknown[], T> {
  /** The limiter before the upstream, yours or made here. Default: one named as the upstream. */
  limiter?: Limiter | Omit<LimiterOptions, 'name'>;
  /** Longest time of a call, 1 … 600000 ms. Default 10000. */
  timeoutMs?: number;
  /** Subject, cost, priority and signal of a call, from its arguments. */
  take?: (...args: Args) => ProtectTake;
  /** Is what was thrown the upstream's fault? Default: yes. A 404 that you throw on is not. */
  isFailure?: (error: unknown) => boolean;
  /** The code under which a failure is reported. Default: its `code`, else its name. */
  codeOf?: (error: unknown) => string | undefined;
  /** The local breaker; false: none, the fleet's alone. */
  breaker?: BreakerOptions | false;
  /** The answer when the call was denied, failed or took too long; not when it was cancelled. */
  fallback?: (error: unknown, ...args: Args) => T | Promise<T>;
}

export interface ProtectStats extends Record<Outcome, number> {
  /** By the limiter, or the fleet's breaker. */
  denied: number;
  /** By the local breaker, without asking. */
  refused: number;
  fallbacks: number;
}

export interface Protected<Args extends unknown[], T> {
  (...args: Args): Promise<T>;
  readonly limiter: Limiter;
  /** Of the local breaker; open while the fleet's is. */
  readonly state: CircuitState;
  stats(): ProtectStats;
  /** Ends the local breaker, and closes the limiter if it was made here. */
  close(): Promise<void>;
}

/**
 * Guard calls to the upstream `name`: `const charge = protect('payments', (call, order) => post(order, call.signal))`,
 * then `await charge(order)`. Create once per process. Denied calls reject with `FlyballDeniedError`, call nothing, and
 * never count as failures of the upstream.
 */
export function protect<Args extends unknown[], T>(
  name: string,
  fn: (call: ProtectedCall, ...args: Args) => T | Promise<T>,
  options: ProtectOptions<Args, T> = {},
): Protected<Args, T> {
  checkFunction(fn, 'the second argument of protect', 'protect(name, (call) => …)');
  checkKnown('protect', options, OF_PROTECT);
  const timeoutMs = checkDuration('timeoutMs', options.timeoutMs ?? 10_000, 1, 600_000);
  const breaker = resolveBreaker(options.breaker);
  const own = isLimiter(options.limiter) ? null : createLimiter({ ...options.limiter, name });
  const limiter = own ?? (options.limiter as Limiter);
  const { view, clock, warn } = partsOf('protect: limiter', limiter);
  limiter.expectCompletions();
  const isFailure = options.isFailure ?? (() => true);
  let closed = false;
  const counts: ProtectStats = {
    ok: 0,
    failed: 0,
    timed_out: 0,
    cancelled: 0,
    denied: 0,
    refused: 0,
    fallbacks: 0,
  };
  const onOpen = () =>
    warn(
      'FLYBALL_W_UPSTREAM_OPEN',
      `upstream ${name}: too many calls of this process failed; it is left alone for ${breaker?.openMs} ms, then tried with one call at a time.`,
    );
  const circuit = breaker && createCircuit({ ...breaker, onOpen }, () => clock.monotonicMs());

  async function guarded({ subject = null, ...take }: ProtectTake, args: Args): Promise<T> {
    const { signal } = take;
    signal?.throwIfAborted();
    const entry = circuit?.enter();
    if (entry === null) throw refusal(subject);
    let decision: TakeDecision;
    try {
      decision = await limiter.take(subject, take);
    } catch (error) {
      entry?.leave();
      throw error;
    }
    if (decision.source !== 'open' && decision.source !== 'closed') {
      circuit?.follow(decision.state, decision.reason === 'breaker_open' && !decision.allowed);
    }
    if (!decision.allowed) {
      entry?.leave();
      counts.denied += 1;
      throw new FlyballDeniedError(limiter.name, decision);
    }
    let outcome: Outcome = 'cancelled';
    let code: string | undefined;
    try {
      if (decision.delayMs > 0) await pause(decision.delayMs, signal);
      signal?.throwIfAborted();
      const result = await withinTime(decision, signal, args);
      outcome = 'ok';
      return result;
    } catch (error) {
      outcome = verdict(error, signal);
      if (outcome === 'failed') code = (options.codeOf ?? codeOf)(error);
      throw error;
    } finally {
      counts[outcome] += 1;
      if (outcome === 'cancelled') entry?.leave();
      else entry?.settle(outcome === 'ok');
      decision.done(outcome, { upstream: name, ...(code !== undefined && { code }) });
    }
  }

  /** What a thrown error says of the upstream. A denial further down says nothing of it. */
  function verdict(error: unknown, signal: AbortSignal | undefined): Outcome {
    if (signal?.aborted || error instanceof FlyballDeniedError) return 'cancelled';
    if (error instanceof TimeOver) return 'timed_out';
    const outcome = outcomeOf(error);
    return outcome === 'failed' && !isFailure(error) ? 'ok' : outcome;
  }

  /** Settles when the time is over or the caller has gone, whatever `fn` does: what comes later is dropped. */
  function withinTime(
    decision: TakeDecision,
    signal: AbortSignal | undefined,
    args: Args,
  ): Promise<T> {
    return new Promise((ok, no) => {
      const stop = new AbortController();
      // Once it is over nothing waits for a call that never ends.
      const over = () => {
        cancel();
        leave?.();
      };
      const end = (reason: unknown) => {
        over();
        no(reason);
        stop.abort(reason);
      };
      const cancel = after(timeoutMs, () => end(new TimeOver(name, timeoutMs)));
      const leave = signal && onAbort(signal, () => end(signal.reason));
      const call = { signal: stop.signal, decision };
      Promise.resolve()
        .then(() => fn(call, ...args))
        .then(ok, no)
        .finally(over);
    });
  }

  function refusal(subject: string | null): FlyballDeniedError {
    counts.refused += 1;
    const nowMs = clock.monotonicMs();
    const retryMs = Math.max(1, Math.ceil(circuit!.retryAfterMs(nowMs)));
    const basis = view.current ?? { revision: 0, epoch: 0, state: 'closed', generation: 0 };
    return new FlyballDeniedError(
      limiter.name,
      new Decision(
        false,
        false,
        'breaker_open',
        0,
        retryMs,
        'local',
        subject,
        basis,
        null,
        nowMs,
        null,
      ),
    );
  }

  async function call(...args: Args): Promise<T> {
    if (closed) {
      throw new FlyballError('FLYBALL_E_ENFORCE_CLOSED', `upstream ${name}: protect() is closed.`);
    }
    const take = options.take?.(...args) ?? {};
    try {
      return await guarded(take, args);
    } catch (error) {
      const { fallback } = options;
      const ours = take.signal?.aborted || error instanceof FlyballTypeError;
      if (fallback === undefined || ours) throw error;
      counts.fallbacks += 1;
      return fallback(error, ...args);
    }
  }

  return Object.defineProperties(call, {
    limiter: { value: limiter },
    state: { get: () => circuit?.state ?? 'closed' },
    stats: { value: () => ({ ...counts }) },
    close: {
      async value() {
        closed = true;
        circuit?.close();
        await own?.close();
      },
    },
  }) as Protected<Args, T>;
}

/** The upstream did not answer within `timeoutMs`. */
class TimeOver extends FlyballError {
  constructor(name: string, timeoutMs: number) {
    super('FLYBALL_E_ENFORCE_TIMEOUT', `upstream ${name} did not answer within ${timeoutMs} ms.`);
  }
}

function isLimiter(given: unknown): given is Limiter {
  return typeof (given as Limiter | undefined)?.take === 'function';
}
