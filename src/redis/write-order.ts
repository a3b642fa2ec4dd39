/** Writes are ordered by epoch, then by revision: an epoch begins when writes may have been lost. Stage: enforce, actuate. */

export interface WriteOrder {
  epoch: number;
  revision: number;
}

/** Does `a` come before `b`? */
export function isOlder(a: WriteOrder, b: WriteOrder): boolean {
  return a.epoch < b.epoch || (a.epoch === b.epoch && a.revision < b.revision);
}
