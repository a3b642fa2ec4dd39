/** Events in order of virtual time: what the plant runs on. Stage: simulate. */

export interface SimEvent {
  atMs: number;
  order: number;
  run: () => void;
}

/** A binary heap; events of one moment run in the order they were set. */
export function createEventQueue() {
  const heap: SimEvent[] = [];
  let order = 0;
  return {
    at(atMs: number, run: () => void): void {
      let i = heap.push({ atMs, order: order++, run }) - 1;
      while (i > 0) {
        const parent = (i - 1) >> 1;
        if (before(heap[parent]!, heap[i]!)) break;
        swap(heap, parent, i);
        i = parent;
      }
    },
    /** The first event up to `untilMs`, taken out; null when there is none. */
    next(untilMs: number): SimEvent | null {
      const first = heap[0];
      if (first === undefined || first.atMs > untilMs) return null;
      const last = heap.pop()!;
      if (heap.length === 0) return first;
      heap[0] = last;
      for (let i = 0; ; ) {
        let child = 2 * i + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
        if (before(heap[i]!, heap[child]!)) break;
        swap(heap, i, child);
        i = child;
      }
      return first;
    },
  };
}

function swap(heap: SimEvent[], i: number, j: number): void {
  [heap[i], heap[j]] = [heap[j]!, heap[i]!];
}

function before(a: SimEvent, b: SimEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
