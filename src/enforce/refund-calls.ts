/** Sends the refunds of one event-loop turn in one call; bounded while Redis is away, dropped and counted. Stage: enforce. */
import { MAX_REFUNDS, type RefundRequest, refund as refundScript } from '../redis/refund.js';
import type { CallParts } from './call-parts.js';
import type { Refund } from './refund-answer.js';
import type { Warn } from './warnings.js';

/** What waits to be given back; beyond it refunds are dropped. */
const MAX_WAITING = 10_000;
const MAX_UNDER_WAY = 2;
/** Nobody's request waits for these. */
const PATIENCE_MS = 500;

export interface RefundCallsOptions extends CallParts {
  name: string;
  warn: Warn;
  /** Tokens are back: what was denied for want of them may pass. */
  onRefunded: () => void;
}

interface Waiting {
  request: RefundRequest;
  shadow: boolean;
  /** undefined: nobody asked. */
  settle: ((refund: Refund) => void) | undefined;
}

export interface RefundCalls {
  /** Goes with the others of this turn. `settle` is called once, within a deadline. */
  add(request: RefundRequest, shadow: boolean, settle?: (refund: Refund) => void): void;
  /** Settles when all has been sent, or dropped. */
  close(): Promise<void>;
}

export function createRefundCalls(options: RefundCallsOptions): RefundCalls {
  const { redis, finder, time, view, stats, clock, warn } = options;
  let waiting: Waiting[] = [];
  let underWay = 0;
  let scheduled = false;
  let onIdle: (() => void) | undefined;

  function flush(): void {
    scheduled = false;
    if (!options.link().up) dropAll('Redis is away');
    while (waiting.length > 0 && underWay < MAX_UNDER_WAY) {
      const { shadow } = waiting[0]!;
      const batch = waiting.filter((each) => each.shadow === shadow).slice(0, MAX_REFUNDS);
      const taken = new Set(batch);
      waiting = waiting.filter((each) => !taken.has(each));
      void send(batch, shadow);
    }
    if (waiting.length === 0 && underWay === 0) onIdle?.();
  }

  async function send(batch: Waiting[], shadow: boolean): Promise<void> {
    underWay += 1;
    // Who waits, waits no longer than for a take.
    const asked = batch.some((each) => each.settle);
    const deadlineAtMs = clock.monotonicMs() + (asked ? options.deadlineMs : PATIENCE_MS);
    try {
      const answers = await options.link().within(deadlineAtMs, async () => {
        const keys = finder.keys ?? (await finder.find());
        const refunds = batch.map((each) => each.request);
        const dueUs = time.latestAt(deadlineAtMs);
        return refundScript(redis, { keys, refunds, dueUs, shadow, fallback: view.fallback() });
      });
      if (answers === null) drop(batch, 'Redis came to it too late');
      else {
        if (answers.includes('refunded')) options.onRefunded();
        for (const [i, { settle }] of batch.entries()) {
          const answer = answers[i]!;
          if (answer === 'refunded') stats.refunded += 1;
          settle?.(answer === 'refunded' ? { refunded: true } : { refunded: false, why: answer });
        }
      }
    } catch (error) {
      drop(batch, (error as Error).message);
    }
    underWay -= 1;
    flush();
  }

  /** Charged tokens come back by the rate alone: later than they might, never twice. */
  function drop(batch: readonly Waiting[], cause: string): void {
    stats.refundsDropped += batch.length;
    for (const { settle } of batch) settle?.({ refunded: false, why: 'redis_away' });
    warn(
      'FLYBALL_W_REFUND',
      `limiter ${options.name}: ${batch.length} takes were not given back (${cause}); their tokens come back by the rate.`,
    );
  }

  function dropAll(cause: string): void {
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) drop(batch, cause);
  }

  return {
    add(request, shadow, settle) {
      const one = { request, shadow, settle };
      if (waiting.length >= MAX_WAITING) return drop([one], 'too many wait');
      waiting.push(one);
      if (scheduled || underWay >= MAX_UNDER_WAY) return;
      scheduled = true;
      setImmediate(flush);
    },
    close() {
      return new Promise((ok) => {
        onIdle = ok;
        flush();
      });
    },
  };
}
