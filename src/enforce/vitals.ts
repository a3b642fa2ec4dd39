/** How the process itself fares: delay of its event loop, CPU and memory of what it may use. Looked at once a second. Stage: enforce. */
import { availableParallelism, totalmem } from 'node:os';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { type ContainerFiles, containerFiles } from './container-files.js';

export interface Vitals {
  /** Delay of the event loop, ms: its 99th percentile of the last second. */
  loopDelayMs: number;
  /** Share of the CPU that the process, or its container, may use. Null in the first second. */
  cpu: number | null;
  /** Share of the memory that it may use. */
  memory: number;
}

export interface VitalsWatch {
  /** Null in the first second. All who ask within a second get one answer. */
  take(nowMs: number): Vitals | null;
}

/** How often its delay is measured; the timer is native, and wakes no JavaScript. */
const RESOLUTION_MS = 20;
const FRESH_MS = 900;

export function createVitals(files: ContainerFiles = containerFiles()): VitalsWatch {
  let loop: IntervalHistogram | undefined;
  let last: Vitals | null = null;
  let lastMs = Number.NEGATIVE_INFINITY;
  let usedMs = Number.NaN;
  // The machine's are asked for once: each question is a system call or two.
  const machine = { cores: availableParallelism(), memory: totalmem() };

  /** CPU time used so far by what `cores` limits. */
  const cpuMs = () => {
    const contained = files.cpuMs();
    if (contained !== null) return contained;
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };

  return {
    take(nowMs) {
      if (nowMs - lastMs < FRESH_MS) return last;
      const elapsedMs = nowMs - lastMs;
      lastMs = nowMs;
      if (loop === undefined) {
        loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
        loop.enable();
        usedMs = cpuMs();
        return null;
      }
      const before = usedMs;
      usedMs = cpuMs();
      const allowedMs = elapsedMs * (files.cores() ?? machine.cores);
      const share = (usedMs - before) / allowedMs;
      // What is measured is the time between two beats: the beat itself is no delay.
      const loopDelayMs = Math.max(0, loop.percentile(99) / 1e6 - RESOLUTION_MS);
      loop.reset();
      last = {
        loopDelayMs: Number.isFinite(loopDelayMs) ? loopDelayMs : 0,
        cpu: Number.isFinite(share) && share >= 0 ? share : null,
        memory: memoryShare(files, machine.memory),
      };
      return last;
    },
  };
}

function memoryShare(files: ContainerFiles, machineBytes: number): number {
  const limit = files.memoryLimit();
  const used = limit === null ? null : files.memoryUsed();
  if (limit === null || used === null) return process.memoryUsage.rss() / machineBytes;
  return used / limit;
}

let shared: VitalsWatch | undefined;

/** One watch a process, however many limiters it has. */
export function processVitals(): VitalsWatch {
  shared ??= createVitals();
  return shared;
}
