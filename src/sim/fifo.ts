/** First in, first out, whatever its length: an array's `shift` moves all that is left. Stage: simulate. */
export interface Fifo<T> {
  readonly length: number;
  push(item: T): void;
  shift(): T | undefined;
}

const COMPACT_AT = 1024;

export function createFifo<T>(): Fifo<T> {
  let items: T[] = [];
  let head = 0;
  return {
    get length() {
      return items.length - head;
    },
    push: (item) => void items.push(item),
    shift() {
      if (head === items.length) return undefined;
      const item = items[head++];
      if (head >= COMPACT_AT && 2 * head >= items.length) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
  };
}
