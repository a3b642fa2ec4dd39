/** The control loop's clockwork: one setTimeout chain on a monotonic clock, which no slow work can hold up. Stage: daemon. */
import type { Clock } from '../clock.js';
import { phaseOf } from './rendezvous.js';

export interface LoopTask {
  name: string;
  /** One turn; a rejection is contained and reported. */
  run(): Promise<void>;
}

export interface Loop {
  /** Starts the turns of the first slice now, those of the others in their slices, and so each period. */
  start(): void;
  /** No turn starts any more; resolves when the running ones have ended. */
  stop(): Promise<void>;
  /** Did the loop turn within the last three periods? Says nothing about Redis. */
  alive(): boolean;
}

/** A period has so many slices at most, none shorter than this, and no more than its tasks need. */
const MOST_SLICES = 20;
const SLICE_MS = 50;
const TASKS_A_SLICE = 10;

/**
 * Each period starts one turn of every task, unless that task's last turn still runs: turns of one task never
 * overlap, and a task that hangs delays neither the others nor the loop. Each task has a slice of the period by its
 * name, so that a thousand limiters neither ask Redis nor move all at once.
 */
export function createLoop(options: {
  tickMs: number;
  clock: Clock;
  tasks: () => Iterable<LoopTask>;
  onError: (task: string, error: unknown) => void;
  onOverrun: (task: string) => void;
}): Loop {
  const { tickMs, clock, tasks, onError, onOverrun } = options;
  const slices = Math.min(MOST_SLICES, Math.max(1, Math.floor(tickMs / SLICE_MS)));
  const running = new Map<string, Promise<void>>();
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let planned = 0;
  let slice = 0;
  let lastMs = clock.monotonicMs();

  function run(task: LoopTask): void {
    if (running.has(task.name)) {
      onOverrun(task.name);
      return;
    }
    const turn = task
      .run()
      .catch((error) => onError(task.name, error))
      .finally(() => running.delete(task.name));
    running.set(task.name, turn);
  }

  function turn() {
    lastMs = clock.monotonicMs();
    const all = [...tasks()];
    const used = Math.min(slices, Math.ceil(all.length / TASKS_A_SLICE));
    for (const task of all) if (Math.floor(phaseOf(task.name) * used) === slice) run(task);
    slice = (slice + 1) % slices;
    const sliceMs = tickMs / slices;
    planned += sliceMs;
    // After a stall the plan begins anew: missed ticks are not made up.
    if (planned <= lastMs - tickMs) planned = lastMs + sliceMs;
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
