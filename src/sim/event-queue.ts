/** Events in order of virtual time, as numbers in flat arrays: what the plant runs on, and can be copied. Stage: simulate. */

export interface EventQueue {
  readonly length: number;
  /** When the first event is due; Infinity without one. */
  readonly firstMs: number;
  /** `kind` says what happens, `of` to what. */
  add(atMs: number, kind: number, of: number): void;
  /** Takes the first event out; what it was is in `kind` and `of`. */
  take(): void;
  readonly kind: number;
  readonly of: number;
  copy(): EventQueue;
}

/** A binary heap. */
export function createEventQueue(from?: {
  times: Float64Array;
  kinds: Uint8Array;
  ofs: Int32Array;
  length: number;
}): EventQueue {
  let times = from?.times.slice() ?? new Float64Array(256);
  let kinds = from?.kinds.slice() ?? new Uint8Array(256);
  let ofs = from?.ofs.slice() ?? new Int32Array(256);
  let length = from?.length ?? 0;
  let takenKind = 0;
  let takenOf = 0;

  function grow(): void {
    const [oldTimes, oldKinds, oldOfs] = [times, kinds, ofs];
    times = new Float64Array(2 * length);
    kinds = new Uint8Array(2 * length);
    ofs = new Int32Array(2 * length);
    times.set(oldTimes);
    kinds.set(oldKinds);
    ofs.set(oldOfs);
  }

  function put(i: number, atMs: number, kind: number, of: number): void {
    times[i] = atMs;
    kinds[i] = kind;
    ofs[i] = of;
  }

  return {
    get length() {
      return length;
    },
    get firstMs() {
      return length > 0 ? times[0]! : Number.POSITIVE_INFINITY;
    },
    get kind() {
      return takenKind;
    },
    get of() {
      return takenOf;
    },
    add(atMs, kind, of) {
      if (length === times.length) grow();
      let i = length++;
      while (i > 0) {
        const parent = (i - 1) >> 1;
        if (times[parent]! <= atMs) break;
        put(i, times[parent]!, kinds[parent]!, ofs[parent]!);
        i = parent;
      }
      put(i, atMs, kind, of);
    },
    take() {
      takenKind = kinds[0]!;
      takenOf = ofs[0]!;
      length--;
      const [atMs, kind, of] = [times[length]!, kinds[length]!, ofs[length]!];
      let i = 0;
      for (let child = 1; child < length; child = 2 * i + 1) {
        if (child + 1 < length && times[child + 1]! < times[child]!) child++;
        if (atMs <= times[child]!) break;
        put(i, times[child]!, kinds[child]!, ofs[child]!);
        i = child;
      }
      put(i, atMs, kind, of);
    },
    copy: () => createEventQueue({ times, kinds, ofs, length }),
  };
}
