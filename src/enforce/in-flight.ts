/** Counts admitted requests from admission to completion, within this process's share of the cap. Stage: enforce. */

/** A share older than this, by the monotonic clock, is not used. */
export const SHARE_LIFE_MS = 2_000;

/** One admitted request under way; a link of a list in order of admission. */
export interface Slot {
  startedMs: number;
  before: Slot | null;
  after: Slot | null;
  held: boolean;
}

export type Reservation = Slot | 'full' | 'stale';

export interface InFlight {
  /** True once this process has shown that it reports completions; only then the cap binds. */
  readonly reports: boolean;
  readonly inUse: number;
  readonly share: number;
  /** Of those in use, the ones that hold their place in Redis; they use up no part of the share. */
  apart: number;
  /** Slots that were given back because nobody reported their end. */
  readonly abandoned: number;
  setReports(): void;
  /** A place within the share, or why there is none. `stale`: no usable share is known. */
  reserve(nowMs: number): Reservation;
  /** A place whatever the share says. */
  force(nowMs: number): Slot;
  /** A place within the last share known, however old. */
  reserveWithin(limit: number, nowMs: number): Slot | 'full';
  release(slot: Slot): void;
  setShare(share: number, askedMs: number): void;
  shareFresh(nowMs: number): boolean;
  /** Most places this process would use: the peak since the last call, and what the cap denied. */
  takeNeed(): number;
  oldestMs(nowMs: number): number;
  /** Give back what has been under way longer than `limitMs`. */
  sweep(nowMs: number, limitMs: number): void;
}

/** `onRelease` is told of each place that is given back. */
export function createInFlight(
  reports: boolean,
  onRelease: (slot: Slot) => void = () => {},
): InFlight {
  let inUse = 0;
  let peak = 0;
  let denied = 0;
  let lastNeed = 0;
  let share = Number.NaN;
  let shareAskedMs = Number.NEGATIVE_INFINITY;
  let abandoned = 0;
  let apart = 0;
  let head: Slot | null = null;
  let tail: Slot | null = null;

  function admit(nowMs: number): Slot {
    const slot: Slot = { startedMs: nowMs, before: tail, after: null, held: true };
    if (tail) tail.after = slot;
    else head = slot;
    tail = slot;
    inUse += 1;
    if (inUse > peak) peak = inUse;
    return slot;
  }

  function release(slot: Slot): void {
    if (!slot.held) return;
    slot.held = false;
    if (slot.before) slot.before.after = slot.after;
    else head = slot.after;
    if (slot.after) slot.after.before = slot.before;
    else tail = slot.before;
    slot.before = null;
    slot.after = null;
    inUse -= 1;
    onRelease(slot);
  }

  function reserveWithin(limit: number, nowMs: number): Slot | 'full' {
    if (inUse + 1 <= limit) return admit(nowMs);
    denied += 1;
    return 'full';
  }

  const shareFresh = (nowMs: number) => nowMs - shareAskedMs <= SHARE_LIFE_MS;

  return {
    get reports() {
      return reports;
    },
    get inUse() {
      return inUse;
    },
    get share() {
      return share;
    },
    get abandoned() {
      return abandoned;
    },
    get apart() {
      return apart;
    },
    set apart(count) {
      apart = count;
    },
    setReports() {
      if (reports) return;
      reports = true;
      // What was answered to a process that does not report was no share.
      shareAskedMs = Number.NEGATIVE_INFINITY;
    },
    reserve(nowMs) {
      return shareFresh(nowMs) ? reserveWithin(share + apart, nowMs) : 'stale';
    },
    force: admit,
    reserveWithin,
    release,
    setShare(next, askedMs) {
      share = next;
      shareAskedMs = askedMs;
    },
    shareFresh,
    takeNeed() {
      // The need of a burst is remembered for one more turn: its like may come again.
      const need = Math.max(1, peak + denied);
      const answer = Math.max(need, lastNeed);
      lastNeed = need;
      peak = inUse;
      denied = 0;
      return answer;
    },
    oldestMs: (nowMs) => (head ? Math.max(0, nowMs - head.startedMs) : 0),
    sweep(nowMs, limitMs) {
      while (head && nowMs - head.startedMs > limitMs) {
        abandoned += 1;
        release(head);
      }
    },
  };
}
