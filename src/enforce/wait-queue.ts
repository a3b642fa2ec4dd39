/** Those who wait for tokens in this process: one asks at a time, in order; the rest stand behind it. Stage: enforce. */
import type { Clock } from '../clock.js';
import type { Priority } from '../redis/calls.js';
import { onAbort } from './abort.js';
import type { TakeDecision } from './decision.js';

/** Asked again at the latest after this: what changes without a write or a notice, and a rate of 0. */
const RECHECK_MS = 5_000;
/** Processes that wait for the same tokens do not return as one: up to a tenth of the wait later, 100 ms at most. */
const JITTER = 0.1;
const JITTER_MAX_MS = 100;
/** While all are admitted, so many are asked at once: a queue must not be slower than the limit. */
const MOST_AT_ONCE = 32;

const ORDER: readonly Priority[] = ['critical', 'default', 'sheddable'];

/** What a wait asks for. */
export interface WaitWish {
  readonly subject: string | null;
  readonly cost: number;
  readonly priority: Priority;
}

export interface WaitQueueOptions<Wish extends WaitWish> {
  /** Must not reject for a denial. */
  ask(wish: Wish): Promise<TakeDecision>;
  /** An admission that nobody wants any more. */
  giveBack(decision: TakeDecision): void;
  /** The error of one that must not or need not wait longer; `last`: the newest denial that held it up. */
  denied(wish: Wish, last: TakeDecision | null): Error;
  clock: Clock;
  /** Calls `fn` after `ms`; returns how to cancel. */
  after(ms: number, fn: () => void): () => void;
  /** 0 ≤ r < 1. */
  random(): number;
}

export interface WaitQueue<Wish extends WaitWish> {
  readonly size: number;
  wait(wish: Wish, timeoutMs: number, signal?: AbortSignal): Promise<TakeDecision>;
  /** Other numbers are in force, or Redis is back: ask at once. */
  changed(): void;
  /** A place in flight was given back. */
  freed(): void;
  /** All that wait are rejected. */
  close(error: Error): void;
}

interface Waiter<Wish> {
  wish: Wish;
  rank: number;
  /** Its question is under way: the answer decides, even past its time. */
  asked: boolean;
  expired: boolean;
  settle(outcome: TakeDecision | { error: unknown }): void;
}

/** Until when nobody of this rank or a lower one asks, and why. */
interface Pause {
  untilMs: number;
  rank: number;
  denial: TakeDecision;
}

export function createWaitQueue<Wish extends WaitWish>(
  options: WaitQueueOptions<Wish>,
): WaitQueue<Wish> {
  const { clock, after, random } = options;
  const lines = ORDER.map(() => new Set<Waiter<Wish>>());
  /** The total's tokens are short; a subject's are. */
  let pause: Pause | null = null;
  const paused = new Map<string, Pause>();
  let asking = false;
  let changes = 0;
  let width = 1;
  let cancelTimer = () => {};
  let closed = false;

  const holds = (each: Pause | null | undefined, rank: number, nowMs: number) =>
    each !== null && each !== undefined && nowMs < each.untilMs && rank >= each.rank;

  /** Who may ask now, in order. Costs only grow within it, so that none is admitted past one that was denied. */
  function next(nowMs: number): Waiter<Wish>[] {
    const batch: Waiter<Wish>[] = [];
    for (const line of lines) {
      for (const waiter of line) {
        const { wish, rank } = waiter;
        if (holds(pause, rank, nowMs)) return batch;
        if (wish.subject !== null && holds(paused.get(wish.subject), rank, nowMs)) continue;
        if (batch.length > 0 && wish.cost < batch.at(-1)!.wish.cost) return batch;
        batch.push(waiter);
        if (batch.length === width) return batch;
      }
    }
    return batch;
  }

  async function pump(): Promise<void> {
    if (asking) return;
    asking = true;
    cancelTimer();
    for (
      let batch = next(clock.monotonicMs());
      batch.length > 0;
      batch = next(clock.monotonicMs())
    ) {
      const before = changes;
      for (const waiter of batch) waiter.asked = true;
      const answers = await Promise.all(batch.map(askFor));
      let all = true;
      const short: Waiter<Wish>[] = [];
      let denial: TakeDecision | null = null;
      for (const [i, waiter] of batch.entries()) {
        waiter.asked = false;
        const answer = answers[i]!;
        if ('error' in answer) {
          waiter.settle(answer);
          continue;
        }
        if (answer.allowed) {
          // A token that came between two questions of one batch is for who stands before.
          const at = short.findIndex((each) => waits(each) && sameTerms(each.wish, waiter.wish));
          admit(short[at] ?? waiter, answer);
          if (at < 0) continue;
          short.splice(at, 1);
        } else denial = answer;
        short.push(waiter);
        if (denial!.limit !== 'subject') all = false;
        // What was denied before the change is asked anew.
        deny(waiter, denial!, changes === before);
      }
      width = all ? Math.min(MOST_AT_ONCE, width * 2) : 1;
    }
    asking = false;
    sleep();
  }

  async function askFor({ wish }: Waiter<Wish>): Promise<TakeDecision | { error: unknown }> {
    try {
      return await options.ask(wish);
    } catch (error) {
      return { error };
    }
  }

  function admit(waiter: Waiter<Wish>, decision: TakeDecision): void {
    if (waits(waiter)) waiter.settle(decision);
    else {
      const heir = first((other) => !other.asked && sameTerms(other.wish, waiter.wish));
      if (heir) heir.settle(decision);
      else options.giveBack(decision);
    }
  }

  function deny(waiter: Waiter<Wish>, denial: TakeDecision, rest: boolean): void {
    const { wish, rank } = waiter;
    const never = denial.reason === 'cost_exceeds_capacity';
    if (waits(waiter) && (waiter.expired || never)) {
      waiter.settle({ error: options.denied(wish, denial) });
    }
    if (!rest || never) return;
    const hintMs = Math.max(1, denial.retryAfterMs ?? RECHECK_MS);
    const spreadMs = random() * Math.min(JITTER_MAX_MS, hintMs * JITTER);
    const untilMs = clock.monotonicMs() + Math.min(RECHECK_MS, hintMs) + spreadMs;
    if (denial.limit !== 'subject' || wish.subject === null) pause = { untilMs, rank, denial };
    else paused.set(wish.subject, { untilMs, rank, denial });
  }

  /** Until the first that may ask again. */
  function sleep(): void {
    cancelTimer();
    const nowMs = clock.monotonicMs();
    let wakeMs = Number.POSITIVE_INFINITY;
    for (const [subject, each] of paused) {
      if (nowMs >= each.untilMs) paused.delete(subject);
      wakeMs = Math.min(wakeMs, each.untilMs);
    }
    // Subjects need not wake while the total is short.
    if (pause) wakeMs = pause.rank === 0 ? pause.untilMs : Math.min(wakeMs, pause.untilMs);
    // One that has ended since it was last looked at still wakes.
    if (pause && nowMs >= pause.untilMs) pause = null;
    if (size() > 0 && wakeMs < Number.POSITIVE_INFINITY) {
      cancelTimer = after(Math.max(1, Math.ceil(wakeMs - nowMs)), () => void pump());
    }
  }

  const size = () => lines.reduce((sum, line) => sum + line.size, 0);
  const waits = (waiter: Waiter<Wish>) => lines[waiter.rank]!.has(waiter);

  function first(which: (waiter: Waiter<Wish>) => boolean): Waiter<Wish> | undefined {
    for (const line of lines) for (const waiter of line) if (which(waiter)) return waiter;
  }

  function lastDenial({ subject }: Wish): TakeDecision | null {
    return (subject !== null && paused.get(subject)?.denial) || pause?.denial || null;
  }

  function changed(): void {
    changes += 1;
    pause = null;
    paused.clear();
    if (size() > 0) void pump();
  }

  return {
    get size() {
      return size();
    },
    wait(wish, timeoutMs, signal) {
      return new Promise((ok, no) => {
        const rank = ORDER.indexOf(wish.priority);
        const waiter: Waiter<Wish> = {
          wish,
          rank,
          asked: false,
          expired: false,
          settle(outcome) {
            lines[rank]!.delete(waiter);
            cancelTimeout();
            leave?.();
            if ('error' in outcome) no(outcome.error);
            else ok(outcome);
          },
        };
        const leave = signal && onAbort(signal, () => waiter.settle({ error: signal.reason }));
        const cancelTimeout = after(timeoutMs, () => {
          waiter.expired = true;
          if (!waiter.asked) waiter.settle({ error: options.denied(wish, lastDenial(wish)) });
        });
        lines[rank]!.add(waiter);
        void pump();
      });
    },
    changed,
    freed() {
      if (pause?.denial.reason === 'in_flight' && !asking) changed();
    },
    close(error) {
      if (closed) return;
      closed = true;
      cancelTimer();
      for (const line of lines) for (const waiter of [...line]) waiter.settle({ error });
    },
  };
}

function sameTerms(a: WaitWish, b: WaitWish): boolean {
  return a.subject === b.subject && a.cost === b.cost && a.priority === b.priority;
}
