/** Log-spaced latency counts in typed arrays: adding costs no allocation, draining only what was touched. Stage: enforce. */
import { binOf } from '../histogram.js';
import { MAX_BIN, MIN_BIN } from '../sense/readings.js';

const BINS = MAX_BIN - MIN_BIN + 1;

/** Log-spaced counts and their sum; knows which bins were touched, so that a flush costs only those. */
export interface LatencyBins {
  add(ms: number): void;
  /** The field of each bin that was touched, and its count. */
  each(visit: (field: string, count: number) => void): void;
  sumMs(): number;
  clear(): void;
}

/** Names the field of a bin; each name is made once and kept: many limiters flush the same bins again and again. */
export function binFields(nameOf: (bin: number) => string): (bin: number) => string {
  const names = new Array<string | undefined>(BINS);
  return (bin) => {
    const index = bin - MIN_BIN;
    let name = names[index];
    if (name === undefined) names[index] = name = nameOf(bin);
    return name;
  };
}

export function createLatencyBins(fieldOf: (bin: number) => string): LatencyBins {
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
      for (let i = 0; i < used; i++) {
        const index = touched[i]!;
        visit(fieldOf(index + MIN_BIN), counts[index]!);
      }
    },
    sumMs: () => sum,
    clear() {
      for (let i = 0; i < used; i++) counts[touched[i]!] = 0;
      used = 0;
      sum = 0;
    },
  };
}
