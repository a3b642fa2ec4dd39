/** "Did you mean …?": the known name that a mistyped one most resembles. Stage: policy, daemon, cli, enforce. */

/** At most so many edits may lie between a word and a name for one to be meant by the other: a third of the length. */
export const third = (length: number, atLeast = 0) => Math.max(atLeast, Math.floor(length / 3));

/**
 * The nearest of `names` by edits (insert, delete, replace, swap of neighbours), regardless of case; the first of
 * equals. Undefined when each needs more edits than `most` allows it.
 */
export function closest(
  word: string,
  names: readonly string[],
  most: (name: string) => number,
): { name: string; edits: number } | undefined {
  let best: { name: string; edits: number } | undefined;
  for (const name of names) {
    const allowed = Math.min(most(name), (best?.edits ?? Number.POSITIVE_INFINITY) - 1);
    if (Math.abs(word.length - name.length) > allowed) continue;
    const edits = editDistance(word.toLowerCase(), name.toLowerCase());
    if (edits <= allowed) best = { name, edits };
  }
  return best;
}

/** Damerau–Levenshtein, neighbours swapped at most once. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let edits = Math.min(row[j]! + 1, next[j - 1]! + 1, replace);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, before[j - 2]! + 1);
      }
      next.push(edits);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
