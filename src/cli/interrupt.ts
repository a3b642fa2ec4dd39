/** Ctrl-C and SIGTERM as a signal: a command that watches ends in order. Stage: cli. */

export interface Interrupt {
  signal: AbortSignal;
  release(): void;
}

export function createInterrupt(): Interrupt {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  return {
    signal: controller.signal,
    release: () => void process.off('SIGINT', stop).off('SIGTERM', stop),
  };
}
