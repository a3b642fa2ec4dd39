/** Ids of stream entries, `<ms>-<n>`: in order, and their time. Stage: actuate, audit. */

/** Negative: `a` was stored before `b`. */
export function compareIds(a: string, b: string): number {
  const [aMs, aN] = idParts(a);
  const [bMs, bN] = idParts(b);
  return aMs - bMs || aN - bN;
}

/** The upper bound of a range that ends before this id. Redis takes no `(0-0`: before the first id there is nothing. */
export function endBefore(id: string): string {
  const [ms, n] = idParts(id);
  return ms === 0 && n === 0 ? '0-0' : `(${id}`;
}

/** Redis's time in ms, and the place within it. */
export function idParts(id: string): [ms: number, n: number] {
  const [ms = '0', n = '0'] = id.split('-');
  return [Number(ms), Number(n)];
}
