/** A take that waits for Redis: its wish, its place in flight, and whom to tell. Stage: enforce. */
import type { InForce, Priority, TakeAnswer, TakeReply } from '../redis/calls.js';
import type { OnRedisError } from './arguments.js';
import type { Decision } from './decision.js';
import type { Slot } from './in-flight.js';
import type { Pending } from './taker.js';

export interface TakeWish {
  subject: string | null;
  cost: number;
  priority: Priority;
  onRedisError: OnRedisError;
  signal: AbortSignal | undefined;
}

/** How a limiter ends its takes: two functions for all of them. */
export interface Ending {
  /** The decision; may throw for a misuse that only Redis can tell. */
  decide(
    take: PendingTake,
    answer: TakeAnswer | null,
    inForce: InForce | null,
    nowMs: number,
    reply: TakeReply | null,
  ): Decision;
  /** Nothing was decided: give back what the take holds. */
  drop(take: PendingTake): void;
}

export class PendingTake implements Pending {
  readonly subject: string | null;
  readonly cost: number;
  readonly priority: Priority;
  readonly signal: AbortSignal | undefined;
  aborted = false;

  constructor(
    readonly wish: TakeWish,
    readonly slot: Slot | null,
    readonly startedMs: number,
    /** A peek is not. */
    readonly counted: boolean,
    private readonly ending: Ending,
    private readonly ok: (decision: Decision) => void,
    private readonly no: (reason: unknown) => void,
  ) {
    this.subject = wish.subject;
    this.cost = wish.cost;
    this.priority = wish.priority;
    this.signal = wish.signal;
  }

  answered(
    answer: TakeAnswer | null,
    inForce: InForce | null,
    nowMs: number,
    reply: TakeReply | null,
  ): void {
    try {
      this.ok(this.ending.decide(this, answer, inForce, nowMs, reply));
    } catch (error) {
      this.failed(error);
    }
  }

  failed(reason: unknown): void {
    this.ending.drop(this);
    this.no(reason);
  }
}
