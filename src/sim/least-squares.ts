/** Least squares for a few unknowns none of which is negative. Stage: simulate. */
import { solveLinear } from '../tune/gauss.js';

/**
 * The x ≥ 0 with the least Σ (row · x − target)². Of few unknowns every set of those that are not zero is tried.
 */
export function leastSquares(rows: readonly number[][], targets: readonly number[]): number[] {
  const unknowns = rows[0]?.length ?? 0;
  let best: { x: number[]; error: number } | undefined;
  for (let set = 1; set < 2 ** unknowns; set++) {
    const used = Array.from({ length: unknowns }, (_, i) => i).filter((i) => (set >> i) & 1);
    const part = solveLinear(normal(rows, targets, used), 1e-300);
    if (part === null || part.some((value) => !(value >= 0))) continue;
    const x = Array.from({ length: unknowns }, () => 0);
    used.forEach((i, k) => {
      x[i] = part[k]!;
    });
    const error = rows.reduce((sum, row, i) => sum + (dot(row, x) - targets[i]!) ** 2, 0);
    if (best === undefined || error < best.error) best = { x, error };
  }
  return best?.x ?? Array.from({ length: unknowns }, () => 0);
}

function dot(row: readonly number[], x: readonly number[]): number {
  return row.reduce((sum, value, i) => sum + value * x[i]!, 0);
}

/** The normal equations of the used unknowns, with the right side as last column. */
function normal(
  rows: readonly number[][],
  targets: readonly number[],
  used: readonly number[],
): number[][] {
  return used.map((i) => [
    ...used.map((j) => rows.reduce((sum, row) => sum + row[i]! * row[j]!, 0)),
    rows.reduce((sum, row, k) => sum + row[i]! * targets[k]!, 0),
  ]);
}
