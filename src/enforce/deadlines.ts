/** Who waits for an answer, and until when: one timer for all of them, since nearly all are answered long before. Stage: enforce. */
import type { Clock } from '../clock.js';

/** The timer is never set further ahead, so that it does not keep a process alive for long that is done. */
const LONGEST_MS = 250;

/** One who waits; a link of a list in order of deadlines. */
export interface Waiting {
  readonly atMs: number;
  readonly expire: () => void;
  before: Waiting | null;
  after: Waiting | null;
  /** Answered or expired. */
  over: boolean;
}

export interface Deadlines {
  /** `expire` is called once, at monotonic `atMs` or soon after, unless `end` came first. */
  add(atMs: number, expire: () => void): Waiting;
  end(waiting: Waiting): void;
}

export function createDeadlines(clock: Clock): Deadlines {
  let head: Waiting | null = null;
  let tail: Waiting | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let timerAtMs = Number.POSITIVE_INFINITY;

  function arm(atMs: number): void {
    clearTimeout(timer);
    const waitMs = Math.min(LONGEST_MS, Math.max(0, atMs - clock.monotonicMs()));
    timer = setTimeout(ring, waitMs);
    timerAtMs = atMs;
  }

  /**
   * A timer that fires late (the loop was busy) first lets the sockets speak: a reply that lies there already is an
   * answer in time.
   */
  function ring(): void {
    setImmediate(sweep);
  }

  function sweep(): void {
    clearTimeout(timer);
    timer = undefined;
    timerAtMs = Number.POSITIVE_INFINITY;
    const nowMs = clock.monotonicMs();
    while (head !== null && head.atMs <= nowMs) {
      const { expire } = head;
      end(head);
      expire();
    }
    // Who was added at an expiry may have set the timer for later than who still waits.
    if (head !== null && head.atMs < timerAtMs) arm(head.atMs);
  }

  function end(waiting: Waiting): void {
    if (waiting.over) return;
    waiting.over = true;
    if (waiting.before) waiting.before.after = waiting.after;
    else head = waiting.after;
    if (waiting.after) waiting.after.before = waiting.before;
    else tail = waiting.before;
    waiting.before = null;
    waiting.after = null;
  }

  return {
    add(atMs, expire) {
      // Nearly always the last: deadlines are as long as each other.
      let before = tail;
      while (before !== null && before.atMs > atMs) before = before.before;
      const after: Waiting | null = before === null ? head : before.after;
      const waiting: Waiting = { atMs, expire, before, after, over: false };
      if (before) before.after = waiting;
      else head = waiting;
      if (after) after.before = waiting;
      else tail = waiting;
      if (atMs < timerAtMs) arm(atMs);
      return waiting;
    },
    end,
  };
}
