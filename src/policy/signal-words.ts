/** What the builders of all sources share: references to the environment, quantiles as people write them. Stage: policy. */

export interface EnvRef {
  env: string;
}

/** `'p95'`, `'p99.9'`, or a quantile between 0 and 1. */
export type Quantile = `p${number}` | number;

export function quantile(of: Quantile | 'mean'): 'mean' | number {
  if (of === 'mean' || typeof of === 'number') return of;
  // Through decimals, so that p99.9 is 0.999 and not 0.9990000000000001. A bad one ('px') is left for the
  // check to name, as NaN would lose what was written.
  const share = Number((Number(of.slice(1)) / 100).toFixed(8));
  return Number.isFinite(share) ? share : (of as never);
}
