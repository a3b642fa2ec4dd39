/** The control loop's clockwork: one setTimeout chain on a monotonic clock, which no slow work can hold up. Stage: daemon. */
import type { Clock } from '../clock.js';
import { phaseOf } from './rendezvous.js';

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
export function createLoop<Task>(options: {
  tickMs: number;
  clock: Clock;
  /** By name; looked at in each slice. */
  tasks: () => ReadonlyMap<string, Task>;
  /** One turn; a rejection is contained and reported. */
  run: (name: string, task: Task) => Promise<void>;
  onError: (task: string, error: unknown) => void;
  onOverrun: (task: string) => void;
}): Loop {
  const { tickMs, clock, tasks, onError, onOverrun } = options;
  const slices = Math.min(MOST_SLICES, Math.max(1, Math.floor(tickMs / SLICE_MS)));
  const running = new Map<string, Promise<void>>();
  /** Where in the period each task has its turn, as asked for so far. */
  const phases = new Map<string, number>();
  /** The tasks of each slice, and how many there were when it was planned. */
  let plan: [name: string, task: Task][][] = [];
  let plannedFor = -1;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let planned = 0;
  let slice = 0;
  let lastMs = clock.monotonicMs();

  function run(name: string, task: Task): void {
    if (running.has(name)) {
      onOverrun(name);
      return;
    }
    const turn = options
      .run(name, task)
      .catch((error) => onError(name, error))
      .finally(() => running.delete(name));
    running.set(name, turn);
  }

  function phase(name: string): number {
    let known = phases.get(name);
    if (known === undefined) {
      known = phaseOf(name);
      phases.set(name, known);
    }
    return known;
  }

  /** For a period, or until one comes or goes: a thousand are not looked through in each slice. */
  function planAll(all: ReadonlyMap<string, Task>): void {
    // Names that are gone must not add up.
    if (phases.size > 2 * all.size) phases.clear();
    const used = Math.min(slices, Math.ceil(all.size / TASKS_A_SLICE));
    plan = Array.from({ length: slices }, () => []);
    for (const [name, task] of all) plan[Math.floor(phase(name) * used)]!.push([name, task]);
    plannedFor = all.size;
  }

  function turn() {
    lastMs = clock.monotonicMs();
    const all = tasks();
    if (slice === 0 || all.size !== plannedFor) planAll(all);
    // One that was replaced since has its turn in the next period.
    for (const [name, task] of plan[slice]!) if (all.get(name) === task) run(name, task);
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
