/** The heaviest keys of a stream in bounded memory, with an error that is known: a Misra-Gries summary. Pure. Stage: enforce. */

/** What a summary knows: true weight of any key lies in [count, count + error], a missing key's count being 0. */
export interface Heavy {
  counts: Map<string, number>;
  /** At most `total ÷ (most + 1)`. */
  error: number;
  /** All weight that was added, exactly. */
  total: number;
}

export function createHeavy(): Heavy {
  return { counts: new Map(), error: 0, total: 0 };
}

/** Adds weight to a key; the caller trims now and then. */
export function addHeavy(into: Heavy, key: string, weight: number): void {
  into.counts.set(key, (into.counts.get(key) ?? 0) + weight);
  into.total += weight;
}

/** Two summaries as one; the errors add up, and so do the totals that bound them. */
export function mergeHeavy(into: Heavy, from: Heavy): void {
  for (const [key, count] of from.counts) {
    into.counts.set(key, (into.counts.get(key) ?? 0) + count);
  }
  into.error += from.error;
  into.total += from.total;
}

/**
 * Keeps the `most` heaviest: the weight of the next one is taken off each, and goes into the error. Every unit of
 * error is so paid by `most + 1` units of weight that are counted no longer, which is the bound.
 */
export function trimHeavy(summary: Heavy, most: number): void {
  if (summary.counts.size <= most) return;
  const cut = [...summary.counts.values()].sort((a, b) => b - a)[most]!;
  for (const [key, count] of summary.counts) {
    if (count > cut) summary.counts.set(key, count - cut);
    else summary.counts.delete(key);
  }
  summary.error += cut;
}

/** The heaviest first; equal ones by name. */
export function heaviest(summary: Heavy, limit: number): [key: string, count: number][] {
  return [...summary.counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, limit);
}
