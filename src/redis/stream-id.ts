/** Entries of streams: their ids, `<ms>-<n>`, in order, and their time; one field of one. Pure. Stage: actuate, audit. */

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
function idParts(id: string): [ms: number, n: number] {
  const dash = id.indexOf('-');
  return dash < 0 ? [Number(id), 0] : [Number(id.slice(0, dash)), Number(id.slice(dash + 1))];
}

/** Redis's time at which an entry was stored, ms. */
export function storedMs({ id }: { id: string }): number {
  return idParts(id)[0];
}

/** A field of an entry, whose names and values stand in turn; empty: it has none of that name. */
export function fieldOf(fields: readonly string[], name: string): string {
  const at = fields.indexOf(name);
  return at >= 0 && at % 2 === 0 ? (fields[at + 1] ?? '') : '';
}
