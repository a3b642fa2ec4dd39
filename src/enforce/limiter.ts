/** The SDK: a named limiter whose numbers live in Redis; takes, counts in flight, reports how requests ended. Stage: enforce. */
import { randomBytes } from 'node:crypto';
import { FlyballError } from '../errors.js';
import type { FallbackNumbers } from '../redis/calls.js';
import type { Mode } from '../redis/params.js';
import {
  checkCall,
  checkCost,
  checkDuration,
  checkFunction,
  checkOnRedisError,
  checkPriority,
  checkSubject,
  checkWishes,
  show,
} from './arguments.js';
import { createCanarySide } from './canary-side.js';
import { FlyballDeniedError, type TakeDecision } from './decision.js';
import { keepParts, partsDeciding } from './limiter-parts.js';
import { statsOf } from './limiter-stats.js';
import type { LimiterOptions } from './options.js';
import type { OutcomeOptions, OutcomeResult } from './outcomes.js';
import { paced } from './pacing.js';
import type { TakeWish } from './pending-take.js';
import { endFailed } from './recorder.js';
import type { Refund } from './refund-answer.js';
import { refused } from './refund-id.js';
import type { LimiterStats } from './stats.js';
import type { Attributes, KnownAttributes } from './subject-template.js';
import type { TakeManyOptions, TakeManyWish, TakeOptions, WaitOptions } from './take-options.js';
import { DEFAULT_WAIT_MS } from './wait.js';
import { createWiring } from './wiring.js';

export interface Limiter {
  readonly name: string;
  /**
   * Take tokens. Resolves within the deadline, admitted or denied, whether Redis answers or not; rejects only
   * for misuse (a `FlyballTypeError`), an aborted signal, or after `close`. Call `done` on what was admitted.
   */
  take(subject?: string | null, options?: TakeOptions): Promise<TakeDecision>;
  /**
   * Take, wait until it may proceed if a leaky bucket paces it, call `fn`, report how it ended. Denied: rejects with
   * `FlyballDeniedError` and calls nothing. A thrown `AbortError` counts as cancelled, a
   * `TimeoutError` as timed out, anything else as failed.
   */
  run<T>(
    subject: string | null | undefined,
    fn: (decision: TakeDecision) => T | Promise<T>,
    options?: TakeOptions,
  ): Promise<T>;
  /**
   * Take many, each decided by itself, as if one after another, in one call for 512. All are checked before the
   * first is taken; an aborted signal rejects them all.
   */
  takeMany(wishes: readonly TakeManyWish[], options?: TakeManyOptions): Promise<TakeDecision[]>;
  /**
   * Take, waiting in order until it is admitted: by priority, then first come, first served. Nothing is taken
   * before. Rejects with `FlyballDeniedError` when the time is over, at once for a cost above the capacity, with
   * the signal's reason when aborted, and when `maxWaiting` wait already.
   */
  wait(subject?: string | null, options?: WaitOptions): Promise<TakeDecision>;
  /** Look without taking. */
  peek(subject?: string | null): Promise<TakeDecision>;
  /** `decision.refund()`, or the same by the decision's id, which may be of another process of this limiter. */
  refund(decision: TakeDecision | string): Promise<Refund>;
  /**
   * How something ended for a subject: so many in a row raise its tier, if the policy has tiers. Counted once, by your
   * `id`. Rejects only for misuse, or after `close`; `status: 'away'` when Redis did not answer.
   */
  outcome(subject: string, outcome: string, options?: OutcomeOptions): Promise<OutcomeResult>;
  /** How many requests wait for a pool connection now, or a function that tells at each flush. */
  reportPool(waiting: number | (() => number)): void;
  /** From now on the in-flight cap binds this process: every admitted request will call `done`. */
  expectCompletions(): void;
  /**
   * The subject's template filled: the adopted policy's, else that of `perSubject.subject`. A missing attribute
   * falls to `ip:<address>`. Null without a template. `known`: the client's address, or what middleware knows.
   */
  subjectFor(attributes: Attributes, known: string | KnownAttributes): string | null;
  /** Attributes that the template needs now, beside `ip`. */
  readonly attributes: readonly string[];
  /** Settles once the adopted policy's template is known, or after one deadline without an answer. */
  ready(): Promise<void>;
  /** Numbers in force as last seen, else those that were given, else null. Subject rate -1: no subject bucket. */
  numbers(): (FallbackNumbers & { mode: Mode }) | null;
  /** The window of the algorithm in use, whose limit is rate × window; 0: a bucket with its capacity. */
  readonly windowMs: number;
  stats(): LimiterStats;
  /** Tell the operator through `onWarning`, at most once a minute for each code. */
  warn(code: string, message: string): void;
  /** Sends the last telemetry, gives the in-flight share back, closes the connection unless it is yours. */
  close(): Promise<void>;
}

/** Create a limiter. It connects in the background; see `LimiterOptions` for every default. */
export function createLimiter(options: LimiterOptions): Limiter {
  const wired = createWiring(
    options,
    `${process.pid.toString(36)}-${randomBytes(5).toString('hex')}`,
  );
  const { resolved, inFlight, view, stats, pool, warn, adopted, tracing } = wired;
  const canary = createCanarySide(wired, options);
  const template = () => adopted.template ?? resolved.template;
  let closing: Promise<void> | null = null;

  function open(): void {
    if (closing) {
      throw new FlyballError(
        'FLYBALL_E_ENFORCE_CLOSED',
        `limiter ${resolved.name} is closed. Create it once per process and close it last.`,
      );
    }
  }

  /** Not async: a promise round a promise would cost each take three more turns. */
  function take(subject?: string | null, options?: TakeOptions): Promise<TakeDecision> {
    try {
      return decide(options === undefined ? plain(subject) : checked(subject, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A subject of a canary is decided for by the canary's limiter, from take to done. */
  const partsFor = (subject: string | null) => partsDeciding(wired, subject);

  function decide(wish: TakeWish): Promise<TakeDecision> {
    const { decider } = partsFor(wish.subject);
    if (tracing.tracer === null) return decider.decide(wish);
    return tracing.span('take', wish.cost, () => decider.decide(wish));
  }

  /** What is not given needs no check. */
  function plain(subject: string | null = null): TakeWish {
    open();
    checkSubject(subject);
    const onRedisError = wired.onRedisError();
    return { subject, cost: 1, priority: 'default', onRedisError, signal: undefined };
  }

  function checked(subject?: string | null, take: TakeOptions = {}): TakeWish {
    open();
    checkCall(take, take?.signal);
    const { cost = 1, priority = 'default', onRedisError = wired.onRedisError(), signal } = take;
    checkSubject(subject);
    checkCost(cost);
    checkPriority(priority);
    checkOnRedisError(onRedisError);
    signal?.throwIfAborted();
    return { subject: subject ?? null, cost, priority, onRedisError, signal };
  }

  const limiter: Limiter = {
    name: resolved.name,
    take,
    async run(subject, fn, options) {
      checkFunction(fn);
      inFlight.setReports();
      const decision = await take(subject, options);
      if (!decision.allowed) throw new FlyballDeniedError(resolved.name, decision);
      await paced(decision, options?.signal);
      try {
        const result = await fn(decision);
        decision.done('ok');
        return result;
      } catch (error) {
        endFailed(decision, error);
        throw error;
      }
    },
    async takeMany(wishes, options) {
      checkWishes(wishes);
      const each = wishes.map(({ subject, ...wish }) => checked(subject, { ...options, ...wish }));
      return Promise.all(each.map(decide));
    },
    async wait(subject, options = {}) {
      const { signal, ...wish } = checked(subject, options);
      const timeoutMs = options.timeoutMs ?? DEFAULT_WAIT_MS;
      checkDuration('timeoutMs', timeoutMs, 1, 86_400_000);
      const waiting = { ...wish, onRedisError: options.onRedisError };
      return tracing.span('wait', wish.cost, () => {
        return partsFor(wish.subject).waits.wait(waiting, timeoutMs, signal);
      });
    },
    async peek(subject) {
      open();
      checkSubject(subject);
      return partsFor(subject ?? null).decider.peek(subject ?? null, wired.onRedisError());
    },
    async outcome(subject, outcome, options) {
      open();
      return partsFor(subject).outcomes.count(subject, outcome, options);
    },
    async refund(decision) {
      open();
      if (typeof decision === 'string') return canary.ofId(decision).refunds.byId(decision);
      if (typeof decision?.refund === 'function') return decision.refund();
      throw refused(`it was given ${show(decision)}. Give the decision of a take, or its id`);
    },
    warn,
    reportPool(waiting) {
      pool.report(waiting, resolved.clock.monotonicMs());
      canary.made?.pool.report(waiting, resolved.clock.monotonicMs());
    },
    expectCompletions: () => inFlight.setReports(),
    get attributes() {
      return template()?.attributes.filter((name) => name !== 'ip') ?? [];
    },
    get windowMs() {
      return (adopted.algorithm ?? resolved.terms)?.windowMs ?? 0;
    },
    ready: () => adopted.firstRead(),
    subjectFor(attributes, given) {
      const now = template();
      if (now === null) return null;
      const known = typeof given === 'string' ? { ip: given } : given;
      const subject = now.fill(attributes, known);
      if (subject !== null) return subject;
      stats.missingAttributes += 1;
      warn(
        'FLYBALL_W_MISSING_ATTRIBUTE',
        `limiter ${resolved.name}: a request lacks an attribute of ${now.source}; its client address is the subject instead.`,
      );
      return `ip:${known.ip}`;
    },
    numbers: () =>
      view.unknown ? null : (view.current ?? { ...view.fallback(), mode: view.mode }),
    stats: () => statsOf(wired, canary.made),
    close() {
      // The canary's uses the same connection.
      closing ??= canary.close().then(() => wired.close());
      return closing;
    },
  };
  return keepParts(limiter, wired, canary);
}
