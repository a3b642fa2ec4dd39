/** How much time a tick's flushes speak of: a process flushes about once a second, but not in step with the tick. Stage: sense. */

export interface Interval {
  /** The span that `flushes` of `processes` cover, and how many processes are alive. */
  measure(
    flushes: number,
    processes: ReadonlySet<string>,
    nowMs: number,
    sinceMs: number,
  ): { spanMs: number; processes: number };
  /** A tick without any flush. */
  silence(nowMs: number): void;
  reset(): void;
}

/** Readings over which the true time between a process's flushes is learnt. */
const KEEP = 10;
/** A gap that is no mere lack of step. */
const SILENCE_MS = 3000;
/** A process that has not flushed for this long is no longer counted. */
const ALIVE_MS = 1700;

/**
 * Taken over the tick's own second, one process whose flush comes just late would read as half the traffic and
 * then as double. So a tick's counts are taken over flushes ÷ live processes × beat, where the beat, the time
 * between two flushes of a process, is learnt from the last readings: over time the spans add up to real time.
 */
export function createInterval(): Interval {
  const heard = new Map<string, number>();
  let past: { flushesEach: number; sinceMs: number }[] = [];

  const forget = (nowMs: number) => {
    for (const [id, atMs] of heard) if (nowMs - atMs > ALIVE_MS) heard.delete(id);
  };

  return {
    measure(flushes, processes, nowMs, sinceMs) {
      forget(nowMs);
      for (const id of processes) heard.set(id, nowMs);
      const alive = Math.max(1, heard.size);
      const flushesEach = flushes / alive;
      // After a silence (Redis was away, all processes were gone) the time in between was not reported.
      if (sinceMs > SILENCE_MS) past = [];
      const spoken = Math.min(sinceMs, sinceMs > SILENCE_MS ? 1000 * flushesEach : sinceMs);
      past = [...past, { flushesEach, sinceMs: spoken }].slice(-KEEP);
      const flushesAll = past.reduce((sum, one) => sum + one.flushesEach, 0);
      const timeAll = past.reduce((sum, one) => sum + one.sinceMs, 0);
      const beatMs = Math.min(2000, Math.max(800, timeAll / flushesAll));
      return { spanMs: Math.max(1, flushesEach * beatMs), processes: alive };
    },
    silence: forget,
    reset() {
      heard.clear();
      past = [];
    },
  };
}
