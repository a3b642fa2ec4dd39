/** Time as a value that is passed in: the edges hold a real clock, tests hold one they move. All stages. */

export interface Clock {
  /** Wall time in milliseconds since the epoch; may step. For records that people read. */
  nowMs(): number;
  /** Milliseconds on a clock that never steps back. For deadlines, ages and the loop. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** A clock that stands still until `advance` moves it; `step` moves only the wall time. */
export interface ManualClock extends Clock {
  advance(ms: number): void;
  step(ms: number): void;
}

export function manualClock(startMs = 1_700_000_000_000): ManualClock {
  let wall = startMs;
  let monotonic = 0;
  return {
    nowMs: () => wall,
    monotonicMs: () => monotonic,
    advance(ms) {
      wall += ms;
      monotonic += ms;
    },
    step(ms) {
      wall += ms;
    },
  };
}
