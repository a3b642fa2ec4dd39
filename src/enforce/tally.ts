/** Counts by names that callers make up: cheap to add to, bounded in how many it tells apart. Stage: enforce. */

/** Distinct names told apart between two flushes; the rest counts as `other`. */
const MAX_NAMES = 32;
const OTHER = 'other';

/** A map of at most `MAX_NAMES` names and `other`, made on first use. */
export interface Names<T> {
  of(name: string): T;
  each(visit: (name: string, value: T) => void): void;
  clear(): void;
}

export function createNames<T>(make: () => T): Names<T> {
  const values = new Map<string, T>();
  return {
    of(name) {
      let value = values.get(name);
      if (value !== undefined) return value;
      const key = values.size < MAX_NAMES ? name : OTHER;
      value = values.get(key);
      if (value === undefined) {
        value = make();
        values.set(key, value);
      }
      return value;
    },
    each(visit) {
      for (const [name, value] of values) visit(name, value);
    },
    clear: () => values.clear(),
  };
}

export interface Count {
  n: number;
}

export type Tally = Names<Count>;

export function createTally(): Tally {
  return createNames(() => ({ n: 0 }));
}
