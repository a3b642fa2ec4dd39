/** Asks the API in turns, one question at a time, and keeps the last answer while a later one is on its way or fails. Stage: dashboard. */
import { wordsOf } from './session.js';

export interface Answered<T> {
  /** The newest that came. */
  value: T | null;
  /** When it was asked for, monotonic ms. */
  valueAtMs: number;
  /** What the last question failed with; null: it was answered. */
  fault: string | null;
  /** Since when a question is on its way, monotonic ms; null: none is. */
  askingSinceMs: number | null;
}

export const NOT_ASKED: Answered<never> = {
  value: null,
  valueAtMs: 0,
  fault: null,
  askingSinceMs: null,
};

export interface AskerOptions<T> {
  ask: () => Promise<T>;
  /** After each answer: so long until the next question; undefined: not before it is told. */
  everyMs: () => number | undefined;
  /** Nobody looks: no question by itself. */
  looked: () => boolean;
  monotonicMs: () => number;
  say: (answered: Answered<T>) => void;
}

export interface Asker {
  /** Asks again now; while a question is on its way, right after it. */
  again(): void;
  close(): void;
}

/** Asks at once. After `close()` it says nothing more. */
export function createAsker<T>(options: AskerOptions<T>): Asker {
  const { ask, everyMs, looked, monotonicMs, say } = options;
  let answered: Answered<T> = NOT_ASKED;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wanted = false;
  let closed = false;

  function told(part: Partial<Answered<T>>): void {
    if (closed) return;
    answered = { ...answered, ...part };
    say(answered);
  }

  async function question(): Promise<void> {
    clearTimeout(timer);
    wanted = false;
    const atMs = monotonicMs();
    told({ askingSinceMs: atMs });
    try {
      const value = await ask();
      told({ value, valueAtMs: atMs, fault: null, askingSinceMs: null });
    } catch (error) {
      told({ fault: wordsOf(error), askingSinceMs: null });
    }
    if (closed) return;
    if (wanted) void question();
    else later();
  }

  function later(): void {
    const waitMs = everyMs();
    if (waitMs === undefined) return;
    timer = setTimeout(() => (looked() ? void question() : later()), waitMs);
  }

  void question();
  return {
    again() {
      wanted = true;
      if (answered.askingSinceMs === null && !closed) void question();
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Answers usually come within this: until then there is nothing to say. */
const SLOW_MS = 3000;

/** How old a kept answer is, once that must be said: its successor is late, or did not come. null: it need not. */
export function keptForMs<T>(answered: Answered<T>, monotonicMs: number): number | null {
  const { value, valueAtMs, fault, askingSinceMs } = answered;
  if (value === null) return null;
  const late = askingSinceMs !== null && monotonicMs - askingSinceMs >= SLOW_MS;
  return fault !== null || late ? Math.max(0, monotonicMs - valueAtMs) : null;
}
