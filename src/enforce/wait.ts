/** Waits until a take is admitted, in order and within a time, instead of being denied at once. Stage: enforce. */
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import type { OnRedisError } from './arguments.js';
import type { Decider } from './decider.js';
import { Decision, FlyballDeniedError, type TakeDecision } from './decision.js';
import type { InForceView } from './in-force.js';
import { paced } from './pacing.js';
import type { TakeWish } from './pending-take.js';
import { createWaitQueue, type WaitQueue } from './wait-queue.js';

export const DEFAULT_WAIT_MS = 30_000;

export interface Waits {
  readonly size: number;
  /** Resolves admitted, and when a leaky bucket paces it, when it may proceed. */
  wait(wish: Waiting, timeoutMs: number, signal: AbortSignal | undefined): Promise<TakeDecision>;
  changed(): void;
  freed(): void;
  close(): void;
}

/** `onRedisError` is looked up at each question. */
export type Waiting = Omit<TakeWish, 'onRedisError' | 'signal'> & {
  onRedisError: OnRedisError | undefined;
};

export interface WaitsOptions {
  name: string;
  maxWaiting: number;
  decider: Decider;
  view: InForceView;
  clock: Clock;
  onRedisError: () => OnRedisError;
}

export function createWaits(options: WaitsOptions): Waits {
  const { name, maxWaiting, decider, view, clock } = options;
  /** Made at the first wait: most limiters never have one. */
  let queue: WaitQueue<Waiting> | null = null;
  let closed: FlyballError | null = null;

  function denied(wish: Waiting, last: TakeDecision | null): FlyballDeniedError {
    const decision = new Decision(
      false,
      false,
      last?.reason ?? 'rate',
      last?.remaining ?? 0,
      last ? last.retryAfterMs : null,
      last?.source ?? 'cached',
      wish.subject,
      last ?? view.current ?? { revision: 0, epoch: 0, state: 'closed', generation: 0 },
      null,
      clock.monotonicMs(),
      null,
    );
    return new FlyballDeniedError(name, decision);
  }

  const giveBack = (decision: TakeDecision) => {
    void decision.refund();
    decision.done('cancelled');
  };

  function ask(wish: Waiting, signal?: AbortSignal): Promise<Decision> {
    const onRedisError = wish.onRedisError ?? options.onRedisError();
    return decider.decide({ ...wish, onRedisError, signal });
  }

  /** By the numbers last seen: it would stand at the head until its time is over, and all behind it. */
  function tooBig({ subject, cost }: Waiting): boolean {
    const { capacity, subjectRate, subjectCapacity } = view.fallback();
    return cost > capacity || (subject !== null && subjectRate >= 0 && cost > subjectCapacity);
  }

  function make(): WaitQueue<Waiting> {
    return createWaitQueue<Waiting>({
      ask: (wish) => ask(wish),
      giveBack,
      denied,
      clock,
      after(ms, fn) {
        const timer = setTimeout(fn, ms);
        return () => clearTimeout(timer);
      },
      random: Math.random,
    });
  }

  return {
    get size() {
      return queue?.size ?? 0;
    },
    async wait(wish, timeoutMs, signal) {
      if (closed) throw closed;
      queue ??= make();
      if (queue.size >= maxWaiting) {
        throw new FlyballError(
          'FLYBALL_E_ENFORCE_WAIT_FULL',
          `limiter ${name}: ${queue.size} takes wait already, and maxWaiting is ${maxWaiting}. Shed this one, or raise maxWaiting in createLimiter.`,
        );
      }
      const startedMs = clock.monotonicMs();
      const early = tooBig(wish) ? await ask(wish, signal) : null;
      if (early?.allowed === false && early.reason === 'cost_exceeds_capacity') {
        throw new FlyballDeniedError(name, early);
      }
      if (!early?.allowed) {
        signal?.throwIfAborted();
        if (closed) throw closed;
      }
      const decision = early?.allowed ? early : await queue.wait(wish, timeoutMs, signal);
      if (decision.delayMs === 0) return decision;
      if (decision.delayMs > timeoutMs - (clock.monotonicMs() - startedMs)) {
        giveBack(decision);
        throw denied(wish, { ...decision, retryAfterMs: decision.delayMs, reason: 'rate' });
      }
      await paced(decision, signal);
      return decision;
    },
    changed: () => queue?.changed(),
    freed: () => queue?.freed(),
    close() {
      closed ??= new FlyballError(
        'FLYBALL_E_ENFORCE_CLOSED',
        `limiter ${name} is closed: nobody waits for it any more.`,
      );
      queue?.close(closed);
    },
  };
}
