/** The requests under way, by number, in flat arrays: numbers are used anew once nobody refers to them. Stage: simulate. */

/** Nobody waits for the answer any more: it came, or the client left. */
export const GONE = 1;
/** The service is done with it. */
export const ANSWERED = 2;
/** The client's timeout is over. */
export const EXPIRED = 4;

export interface Requests {
  /** A new request; gives its number. */
  add(atMs: number, attempt: number, generation: number): number;
  atMs(id: number): number;
  /** When it began to wait for a connection. */
  waitsMs(id: number): number;
  waits(id: number, nowMs: number): void;
  attempt(id: number): number;
  generation(id: number): number;
  is(id: number, flag: number): boolean;
  /** Once answered and expired the number is free. */
  mark(id: number, flag: number): void;
  copy(): Requests;
}

interface Columns {
  atMs: Float64Array;
  waitsMs: Float64Array;
  attempt: Uint8Array;
  generation: Int32Array;
  flags: Uint8Array;
  free: Int32Array;
  freeCount: number;
  used: number;
}

export function createRequests(from?: Columns): Requests {
  const c: Columns = from ?? columns(256);
  return {
    add(atMs, attempt, generation) {
      if (c.freeCount === 0 && c.used === c.flags.length) grow(c);
      const id = c.freeCount > 0 ? c.free[--c.freeCount]! : c.used++;
      c.atMs[id] = atMs;
      c.attempt[id] = attempt;
      c.generation[id] = generation;
      c.flags[id] = 0;
      return id;
    },
    atMs: (id) => c.atMs[id]!,
    waitsMs: (id) => c.waitsMs[id]!,
    waits: (id, nowMs) => {
      c.waitsMs[id] = nowMs;
    },
    attempt: (id) => c.attempt[id]!,
    generation: (id) => c.generation[id]!,
    is: (id, flag) => (c.flags[id]! & flag) !== 0,
    mark(id, flag) {
      const flags = c.flags[id]! | flag;
      c.flags[id] = flags;
      const over = ANSWERED | EXPIRED;
      if ((flags & over) === over) c.free[c.freeCount++] = id;
    },
    copy() {
      const { atMs, waitsMs, attempt, generation, flags, free, freeCount, used } = c;
      return createRequests({
        atMs: atMs.slice(),
        waitsMs: waitsMs.slice(),
        attempt: attempt.slice(),
        generation: generation.slice(),
        flags: flags.slice(),
        free: free.slice(),
        freeCount,
        used,
      });
    },
  };
}

function columns(room: number): Columns {
  return {
    atMs: new Float64Array(room),
    waitsMs: new Float64Array(room),
    attempt: new Uint8Array(room),
    generation: new Int32Array(room),
    flags: new Uint8Array(room),
    free: new Int32Array(room),
    freeCount: 0,
    used: 0,
  };
}

function grow(c: Columns): void {
  const wider = columns(2 * c.flags.length);
  for (const name of ['atMs', 'waitsMs', 'attempt', 'generation', 'flags', 'free'] as const) {
    wider[name].set(c[name]);
    Object.assign(c, { [name]: wider[name] });
  }
}
