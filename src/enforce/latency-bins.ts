/** Log-spaced latency counts in typed arrays: adding costs no allocation, draining only what was touched. Stage: enforce. */
import { binOf } from '../histogram.js';
import { MAX_BIN, MIN_BIN } from '../sense/readings.js';

const BINS = MAX_BIN - MIN_BIN + 1;

/** Log-spaced counts and their sum; knows which bins were touched, so that a flush costs only those. */
export interface LatencyBins {
  add(ms: number): void;
  each(visit: (bin: number, count: number) => void): void;
  sumMs(): number;
  clear(): void;
}

export function createLatencyBins(): LatencyBins {
  const counts = new Uint32Array(BINS);
  const touched = new Uint16Array(BINS);
  let used = 0;
  let sum = 0;
  return {
    add(ms) {
      const index = (binOf(ms) ?? MIN_BIN) - MIN_BIN;
      if (counts[index]!++ === 0) touched[used++] = index;
      sum += ms;
    },
    each(visit) {
      for (let i = 0; i < used; i++) visit(touched[i]! + MIN_BIN, counts[touched[i]!]!);
    },
    sumMs: () => sum,
    clear() {
      for (let i = 0; i < used; i++) counts[touched[i]!] = 0;
      used = 0;
      sum = 0;
    },
  };
}
