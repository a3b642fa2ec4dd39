/** Numbers first in, first out, in a ring that grows and can be copied. Stage: simulate. */
export interface Fifo {
  readonly length: number;
  push(item: number): void;
  /** The oldest; only where there is one. */
  readonly first: number;
  shift(): number;
  copy(): Fifo;
}

export function createFifo(from: readonly number[] = []): Fifo {
  let ring = new Int32Array(Math.max(64, 2 ** Math.ceil(Math.log2(from.length + 1))));
  ring.set(from);
  let head = 0;
  let length = from.length;

  function* items() {
    for (let i = 0; i < length; i++) yield ring[(head + i) & (ring.length - 1)]!;
  }

  return {
    get length() {
      return length;
    },
    get first() {
      return ring[head]!;
    },
    push(item) {
      if (length === ring.length) {
        const wider = new Int32Array(2 * length);
        wider.set(ring.subarray(head));
        wider.set(ring.subarray(0, head), length - head);
        ring = wider;
        head = 0;
      }
      ring[(head + length++) & (ring.length - 1)] = item;
    },
    shift() {
      const item = ring[head]!;
      head = (head + 1) & (ring.length - 1);
      length--;
      return item;
    },
    copy: () => createFifo([...items()]),
  };
}
