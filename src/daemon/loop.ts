/** The control loop's clockwork: one setTimeout chain on a monotonic clock, which no slow work can hold up. Stage: daemon. */
import type { Clock } from '../clock.js';

export interface LoopTask {
  name: string;
  /** One turn; a rejection is contained and reported. */
  run(): Promise<void>;
}

export interface Loop {
  /** Starts a turn of every task now, then each period. */
  start(): void;
  /** No turn starts any more; resolves when the running ones have ended. */
  stop(): Promise<void>;
  /** Did the loop turn within the last three periods? Says nothing about Redis. */
  alive(): boolean;
}

/**
 * Each period starts one turn of every task, unless that task's last turn still runs: turns of one task never
 * overlap, and a task that hangs delays neither the others nor the loop.
 */
export function createLoop(options: {
  tickMs: number;
  clock: Clock;
  tasks: () => Iterable<LoopTask>;
  onError: (task: string, error: unknown) => void;
  onOverrun: (task: string) => void;
}): Loop {
  const { tickMs, clock, tasks, onError, onOverrun } = options;
  const running = new Map<string, Promise<void>>();
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let planned = 0;
  let lastMs = clock.monotonicMs();

  function turn() {
    lastMs = clock.monotonicMs();
    for (const task of tasks()) {
      if (running.has(task.name)) {
        onOverrun(task.name);
        continue;
      }
      const run = task
        .run()
        .catch((error) => onError(task.name, error))
        .finally(() => running.delete(task.name));
      running.set(task.name, run);
    }
    planned += tickMs;
    // After a stall the plan begins anew: missed ticks are not made up.
    if (planned <= lastMs) planned = lastMs + tickMs;
    timer = setTimeout(turn, Math.max(0, planned - clock.monotonicMs()));
  }

  return {
    start() {
      planned = clock.monotonicMs();
      turn();
    },
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await Promise.all(running.values());
    },
    alive() {
      return !stopped && clock.monotonicMs() - lastMs <= 3 * tickMs;
    },
  };
}
